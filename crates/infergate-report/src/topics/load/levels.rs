//! Every level in one line: how many requests, how many at once, what came out of all of them together. And in words what else
//! has to be known of a level.

use std::collections::{BTreeMap, BTreeSet};

use infergate_core::load::FailureClass;
use infergate_core::stats::samples_needed;
use infergate_load::summary::Counted;
use infergate_load::summary::token_counts::{TokenCounts, compare};

use super::failures::classes;
use crate::load::{Metric, Point, Rank, View, percentile_cell};
use crate::model::{Cell, Finding, Missing, Section, Tone, Unit};
use crate::units;
use crate::words::missing;

pub fn topic(view: &View<'_>) -> Option<Section> {
    let table = view
        .rows("levels", "")
        .numbers("issued", "sent", |point| point.summary.issued)
        .numbers("completed", "completed", |point| point.summary.completed)
        .detail()
        .numbers("failed", "failed", |point| Cell::count(point.failed()).toned(Tone::bad_if(point.failed() > 0)))
        .about("in a percentile they count as slower than all others")
        .numbers("cancelled", "given up", |point| point.summary.cancelled)
        .about("when the measured ones had ended, or the run was")
        .detail()
        .numbers("measured", "measured", |point| point.summary.measured)
        .about("started at full load, which was kept until they had completed")
        .numbers("asked", "of", |point| point.summary.asked.unwrap_or(point.summary.started as u64))
        .about("that were to be measured")
        .numbers("window", "steady window", |point| {
            let window_ns = point.summary.window.map(|window| window.to_ns.saturating_sub(window.from_ns));
            Cell::number(window_ns, Unit::Ns, Missing::NoWindow)
        })
        .about("the load was what was asked for, to the end of the last measured request")
        .detail()
        .numbers("in_flight", "in flight", |point| {
            Cell::number(point.summary.in_flight, Unit::Plain, Missing::NoWindow)
        })
        .about("requests at once within the window, in the mean")
        .numbers("system", "output of all", |point| {
            let why = if point.series.target.is_some() { Missing::Shared } else { Missing::NoWindow };
            Cell::number(point.summary.system_tokens_per_s, Unit::TokensPerS, why)
        })
        .about("output tokens within the window / its length")
        .numbers("ttft", "TTFT P50", |point| percentile_cell(point, Metric::Ttft, Rank::P50))
        .numbers("decode_speed", "decode P50 of a user", |point| percentile_cell(point, Metric::DecodeSpeed, Rank::P50))
        .table()
        .on_terminal();
    let pieces = "as pieces of the stream, and a piece can hold several tokens, or a part of one";
    let tokenizer = "in the texts of the answers by a tokenizer";
    let findings = [
        counted(view, Counted::Tokenizer, tokenizer).map(Finding::plain),
        counted(view, Counted::Pieces, pieces).map(Finding::warn),
        few_counted(view),
    ];
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    let section = Section::new("load_levels", "Levels").on_terminal().with([table]);
    Some(section.with([remarks(view)]).with([findings]))
}

/// What a row has no room for.
fn remarks(view: &View<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    for point in &view.digest.points {
        let late = point.summary.late_ns.at(0.5).filter(|_| point.users().is_none()).map(|late| {
            let late = units::duration(Some(late));
            format!("the client sent requests {late} after their scheduled start (P50), which is in every latency")
        });
        let (given_up, retries) = (point.summary.cancelled, point.summary.retries);
        let given_up = (view.receipt.partial && given_up > 0)
            .then(|| format!("{given_up} requests were given up when the run ended"));
        let retried = (retries > 0)
            .then(|| format!("{retries} attempts ended in 429, 5xx or a closed connection, and were made again"));
        let all = [failed(view, point), late, few(point), given_up, retried];
        remarks.extend(all.into_iter().flatten().map(|remark| format!("{}: {remark}", view.place_name(point))));
    }
    let requests = view.digest.points.iter().flat_map(|point| view.requests(point));
    remarks.extend(compare(requests).map(|TokenCounts { both, same, apart, .. }| {
        format!(
            "tokens by the server's usage and by the tokenizer: the same number in {same} of {both} answers, more than one apart \
             in {apart}"
        )
    }));
    remarks
}

/// What a level has too few requests for; `None` where it has those that were asked for.
fn few(point: &Point) -> Option<String> {
    let (started, measured) = (point.summary.started, point.summary.measured);
    let needed = samples_needed(0.5).unwrap_or(usize::MAX);
    match point.summary.asked {
        _ if started == 0 => Some(missing::reason(Missing::NoWindow)),
        Some(asked) if (started as u64) < asked => {
            Some(format!("{started} of {asked} requests ran at full load to their ends: the level ended early"))
        }
        _ if measured < needed => {
            Some(format!("{measured} measured requests completed, and a percentile takes {needed}"))
        }
        _ => None,
    }
}

/// How requests failed, and what most of them say.
fn failed(view: &View<'_>, point: &Point) -> Option<String> {
    let mut details: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in view.requests(point).filter_map(|record| record.failure.as_ref()) {
        if failure.class != FailureClass::Cancelled {
            *details.entry(&failure.detail).or_default() += 1;
        }
    }
    let (most, _) = details.into_iter().max_by_key(|(_, count)| *count)?;
    Some(format!("failed: {} (most: {most})", classes(point)))
}

/// The answers whose tokens no server counted, and what was done in its place.
fn counted(view: &View<'_>, how: Counted, by: &str) -> Option<String> {
    let points = || view.digest.points.iter().filter(|point| point.summary.counted == Some(how));
    points().next()?;
    let targets: BTreeSet<String> =
        points().map(|point| view.target_name(point)).filter(|name| !name.is_empty()).collect();
    let targets = Vec::from_iter(targets).join(" and ");
    let whose = if targets.is_empty() { "the server" } else { &targets };
    Some(format!("No usable count of tokens came from {whose}; they were counted {by}"))
}

/// Answers with clearly more pieces than tokens by the server's usage.
fn few_counted(view: &View<'_>) -> Option<Finding> {
    let requests = view.digest.points.iter().flat_map(|point| view.requests(point));
    let completed = requests.filter(|record| record.failure.is_none());
    let answers: Vec<(u64, u64)> =
        completed.filter_map(|record| Some((record.chunk_ns.len() as u64, record.output_tokens?))).collect();
    // A tool call's name is a piece of its own.
    let few = answers.iter().filter(|(pieces, tokens)| *pieces > tokens + tokens / 4 + 4).count();
    let said = format!(
        "Of {} answers {few} have clearly more pieces than tokens by the server's usage: it leaves out reasoning, or a token comes in \
         several pieces",
        answers.len()
    );
    (few > 0).then(|| Finding::warn(said))
}
