//! Every level in one line: how many requests, how many at once, what came out of all of them together. And in words what else
//! has to be known of a level.

use std::collections::{BTreeMap, BTreeSet};

use infergate_load::summary::token_counts::{TokenCounts, compare};
use infergate_load::summary::{Counted, is_given_up};

use super::{at_most_users, is_one, lines, threshold};
use crate::load::{Metric, Point, View, percentile_cell};
use crate::model::{Axis, Cell, Chart, Finding, Missing, Section, Tone, Unit};
use crate::topics::ends;
use crate::units::{duration, percent};

/// Efficiency above this is more than noise.
const ABOVE: f64 = 1.05;

pub fn topic(view: &View) -> Option<Section> {
    let table = view
        .rows("levels", "")
        .titled_numbers("issued", "sent", |point| point.summary.issued)
        .numbers("completed", |point| point.summary.completed)
        .detail()
        .numbers("failed", |point| Cell::count(point.summary.failed()).toned(Tone::bad_if(point.summary.failed() > 0)))
        .about("slower than all others in percentiles of times, no samples in those of speeds")
        .titled_numbers("cancelled", "cut off at the end", |point| point.summary.cancelled)
        .about("when the measured ones had ended, or the run was")
        .detail()
        .numbers("measured", |point| point.summary.measured)
        .about("started at full load, which was kept until they had completed")
        .titled_numbers("asked", "of", |point| point.summary.asked.unwrap_or(point.summary.started as u64))
        .about("that were to be measured")
        .titled_numbers("window", "steady window", |point| {
            let window_ns = point.summary.window.map(|window| window.to_ns - window.from_ns);
            Cell::number(window_ns, Unit::Ns, Missing::NoWindow)
        })
        .about("from full load to the end of the last measured request")
        .detail()
        .titled_numbers("in_flight", "in flight", |point| {
            Cell::number(point.summary.in_flight, Unit::Plain, Missing::NoWindow)
        })
        .about("requests at once within the window, in the mean")
        // Several targets share the users.
        .with_if(!view.has_targets(), |rows| {
            rows.titled_numbers("system", "output of all", |point| {
                let unit = if view.has_tokens() { Unit::TokensPerS } else { Unit::RequestsPerS };
                Cell::number(point.summary.system_tokens_per_s, unit, Missing::NoWindow)
            })
            .about("output tokens within the window / its length")
            .numbers("scaling", |point| {
                let why = match point.summary.system_tokens_per_s {
                    // A remark says how many were in flight.
                    Some(_) if point.summary.kept_out() > 0 => return Cell::text(""),
                    Some(_) => Missing::NoSingleUser,
                    None => Missing::NoWindow,
                };
                Cell::number(view.scaling(point), Unit::Fraction, why)
            })
            .about("output of all users / (users x output of one alone)")
        })
        .titled_numbers("cached", "cached prompt", |point| Cell::known(point.summary.cached_share, Unit::Fraction))
        .about("cached prompt tokens / all, by the server's counts")
        .titled_numbers("ttft", "TTFT P50", |point| percentile_cell(point, Metric::Ttft, 0.5))
        .titled_numbers("decode_speed", "decode P50 of a user", |point| {
            percentile_cell(point, Metric::DecodeSpeed, 0.5)
        })
        .table()
        .on_terminal();
    let pieces = "as pieces of the stream, and a piece can hold several tokens, or a part of one";
    let tokenizer = "in the texts of the answers by a tokenizer";
    let section = Section::new("load_levels", "Levels").on_terminal().with([table]).with([remarks(view)]);
    let section = section.with(counted(view, Counted::Tokenizer, tokenizer).map(Finding::plain));
    let section = section.with(counted(view, Counted::Pieces, pieces).map(Finding::warn));
    Some(section.with(scaling(view)).with([chart(view)]))
}

/// How much more users add, at the most users that all scenarios had.
fn scaling(view: &View) -> Option<Finding> {
    let [(poor, least), (good, most)] = ends(at_most_users(view), |point| view.scaling(point))?;
    let users = poor.users().filter(|users| *users > 1)?;
    let show = |point: &Point, share| {
        let its = &view.receipt.scenarios[point.series.scenario];
        format!("{} ({}: {} tokens in, {} out)", percent(share), its.name, its.input_tokens, its.output_tokens)
    };
    let range = if is_one(Unit::Fraction, least, most) {
        percent(most)
    } else {
        format!("from {} down to {}", show(good, most), show(poor, least))
    };
    Some(Finding::plain(format!("At {users} users scaling efficiency is {range}")))
}

/// Efficiency above 100 % is of the level of one user.
fn above(view: &View) -> Option<String> {
    let [_, (point, most)] = ends(view.charted(), |point| view.scaling(point))?;
    let (shown, place) = (percent(most), view.place_name(point));
    (most > ABOVE).then(|| {
        format!(
            "scaling is {shown} at {place}: 1 user ran slower than it could (cold, uncached, idle cores or a noisy moment)"
        )
    })
}

/// Efficiency over the number of users, where more than one number of users ran, one of them alone.
fn chart(view: &View) -> Chart {
    let mut layers = lines(view, Unit::Fraction, |point| view.scaling(point));
    if !layers.is_empty() {
        layers.insert(0, threshold(view, "ideal", 1.0));
    }
    Chart {
        id: "load-scaling".into(),
        title: "Scaling efficiency".into(),
        caption: "At 100 % each user gets as much output as one alone.".into(),
        x: view.axis(),
        y: Axis::new("scaling efficiency", Unit::Fraction).zero(),
        layers,
    }
}

/// What a row has no room for.
fn remarks(view: &View) -> Vec<String> {
    let mut remarks = Vec::new();
    let has_room = |point| view.record(point).batch.as_ref().is_some_and(|batch| Some(batch.slots) >= point.users());
    if view.points.iter().all(has_room) {
        remarks.push("the engine had room for every user: no request waited for a place".into());
    }
    if view.has_targets() {
        remarks.push("users are shared: each asks every target in turn, so in flight says what one target held".into());
    }
    remarks.extend(above(view));
    for point in &view.points {
        let late = point.summary.late_ns.at(0.5).filter(|_| point.users().is_none()).map(|late| {
            format!(
                "the client sent requests {} after their scheduled start (P50), which is in every latency",
                duration(late)
            )
        });
        let (count, ended) = (point.summary.kept_out(), point.summary.ended());
        let limited = (count > 0).then(|| {
            format!("the server refused {count} of {ended} requests (429), so its times are of a smaller load")
        });
        let failed = failed(view, point).filter(|_| count < point.summary.failed());
        let all = [failed, limited, late, few(point)];
        remarks.extend(all.into_iter().flatten().map(|remark| format!("{}: {remark}", view.place_name(point))));
    }
    let requests = view.points.iter().flat_map(|point| view.requests(point));
    remarks.extend(compare(requests).map(|TokenCounts { both, same, apart, .. }| {
        format!(
            "tokens by the server's usage and by the tokenizer: the same number in {same} of {both} answers, more than one apart \
             in {apart}"
        )
    }));
    remarks
}

/// That a level has too few requests; `None` where it has those that were asked for.
fn few(point: &Point) -> Option<String> {
    match (point.summary.started, point.summary.asked) {
        (0, _) => Some(Missing::NoWindow.reason()),
        (started, Some(asked)) if (started as u64) < asked => {
            Some(format!("{started} of {asked} requests ran at full load to their ends: the level ended early"))
        }
        (started, _) if point.users().is_some_and(|users| started < users as usize) => {
            Some(format!("{started} requests are measured, fewer than one a user: take more --requests"))
        }
        _ => None,
    }
}

/// What requests that failed say most often.
fn failed(view: &View, point: &Point) -> Option<String> {
    let mut details: BTreeMap<&str, usize> = BTreeMap::new();
    let ended = view.requests(point).filter(|record| !is_given_up(record));
    for failure in ended.filter_map(|record| record.failure.as_ref()) {
        *details.entry(&failure.detail).or_default() += 1;
    }
    let (most, _) = details.into_iter().max_by_key(|(_, count)| *count)?;
    Some(format!("failures say most often: {most}"))
}

/// The answers whose tokens no server counted, and what was done in its place.
fn counted(view: &View, how: Counted, by: &str) -> Option<String> {
    let points = view.points.iter().filter(|point| point.summary.counted == Some(how));
    let targets: BTreeSet<String> = points.map(|point| view.target_name(point)).collect();
    let whose = match &Vec::from_iter(targets)[..] {
        [] => return None,
        [only] if only.is_empty() => "the server".into(),
        targets => targets.join(" and "),
    };
    Some(format!("No usable count of tokens came from {whose}; they were counted {by}"))
}
