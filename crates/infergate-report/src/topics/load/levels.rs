//! Every level in one line: how many requests, how many at once, what came out of all of them together. And in words what else
//! has to be known of a level.

use std::collections::BTreeMap;

use infergate_core::load::FailureClass;
use infergate_core::stats::samples_needed;
use infergate_load::summary::token_counts::{TokenCounts, compare};
use infergate_load::summary::{Counted, is_marked};

use super::failures::classes;
use crate::inputs::Inputs;
use crate::load::{Metric, Point, Rank, View, percentile_cell};
use crate::model::{Cell, Column, Finding, Missing, Section, Tone, Unit};
use crate::units;
use crate::words::missing;
use infergate_receipts::LevelRecord;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let own = vec![
        Column::numbers("issued", "sent"),
        Column::numbers("completed", "completed").detail(),
        Column::numbers("failed", "failed").about("in a percentile they count as slower than all others"),
        Column::numbers("cancelled", "given up").about("when the measured ones had ended, or the run was").detail(),
        Column::numbers("measured", "measured").about("started at full load, which was kept until they had completed"),
        Column::numbers("asked", "of").about("that were to be measured"),
        Column::numbers("window", "steady window")
            .about("the load was what was asked for, to the end of the last measured request")
            .detail(),
        Column::numbers("in_flight", "in flight").about("requests at once within the window, in the mean"),
        Column::numbers("system", "output of all").about("output tokens within the window / its length"),
        Column::numbers("ttft", "TTFT P50"),
        Column::numbers("decode_speed", "decode P50 of a user"),
    ];
    let table = view.table("levels", "", own, |point| {
        let count = |count: u64| Cell::of(count as f64, Unit::Count);
        let window = point.window.map(|window| window.to_ns.saturating_sub(window.from_ns) as f64);
        let no_system = if point.target.is_some() { Missing::Shared } else { Missing::NoWindow };
        vec![
            count(point.issued),
            count(point.completed),
            count(point.failed()).toned(if point.failed() > 0 { Tone::Bad } else { Tone::Plain }),
            count(point.cancelled),
            count(point.measured as u64),
            count(point.asked.unwrap_or(point.started as u64)),
            Cell::number(window, Unit::Ns, Missing::NoWindow),
            Cell::number(point.in_flight, Unit::Plain, Missing::NoWindow),
            Cell::number(point.system_tokens_per_s, Unit::TokensPerS, no_system),
            percentile_cell(point, Metric::Ttft, Rank::P50),
            percentile_cell(point, Metric::DecodeSpeed, Rank::P50),
        ]
    });
    let ways = [(Counted::Tokenizer, Tone::Plain), (Counted::Pieces, Tone::Warn)];
    let mut findings: Vec<Finding> = ways.into_iter().filter_map(|(how, tone)| counted(&view, how, tone)).collect();
    findings.extend(few_counted(&view));
    let section = Section::new("load_levels", "Levels").on_terminal().with([table.on_terminal()]);
    Some(section.with([remarks(&view)]).with([findings]))
}

/// What a row has no room for.
fn remarks(view: &View<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for point in &view.digest.points {
        let Some(level) = view.receipt.levels.get(point.level) else { continue };
        let late = point.late_ns.filter(|_| point.users().is_none()).map(|late| {
            let late = units::duration(Some(late));
            format!("the client sent requests {late} after their scheduled start (P50), which is in every latency")
        });
        let given_up = (view.receipt.partial && point.cancelled > 0)
            .then(|| format!("{} requests were given up when the run ended", point.cancelled));
        let retried = (point.retries > 0).then(|| {
            format!("{} attempts ended in 429, 5xx or a closed connection, and were made again", point.retries)
        });
        let all = [failed(view, point), late, few(level, point), given_up, retried];
        said.extend(all.into_iter().flatten().map(|remark| format!("{}: {remark}", view.place_name(point))));
    }
    let requests = view.digest.points.iter().flat_map(|point| view.requests(point));
    said.extend(compare(requests).map(|TokenCounts { both, same, apart, .. }| {
        format!(
            "tokens by the server's usage and by the tokenizer: the same number in {same} of {both} answers, more than one apart \
             in {apart}"
        )
    }));
    said
}

/// What a level has too few requests for; `None` where it has those that were asked for.
fn few(level: &LevelRecord, point: &Point) -> Option<String> {
    let needed = samples_needed(0.5).unwrap_or(usize::MAX);
    match point.asked {
        _ if point.started == 0 => Some(missing::reason(Missing::NoWindow)),
        Some(asked) if (point.started as u64) < asked => {
            Some(format!("{} of {asked} requests ran at full load to their ends: the level ended early", point.started))
        }
        None if !is_marked(level) => Some(format!(
            "{} of {} requests ran at full load to their ends: the receipt is of before the load was kept for all of them",
            point.started, point.issued
        )),
        _ if point.measured < needed => {
            Some(format!("{} measured requests completed, and a percentile takes {needed}", point.measured))
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
    Some(format!("failed: {} (most: {most})", classes(&point.failures)))
}

/// The answers whose tokens no server counted, by what was done in its place.
fn counted(view: &View<'_>, how: Counted, tone: Tone) -> Option<Finding> {
    let points = || view.digest.points.iter().filter(|point| point.counted == Some(how));
    let answers: usize = points().map(|point| point.measured).sum();
    let mut targets: Vec<usize> = points().filter_map(|point| point.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let targets: Vec<String> = targets.into_iter().map(|target| view.target(target)).collect();
    (answers > 0).then(|| Finding::new(tone, counted_words(how, &targets)))
}

/// Answers with clearly more pieces than tokens by the server's usage.
fn few_counted(view: &View<'_>) -> Option<Finding> {
    let answers = || {
        let all = view.digest.points.iter().flat_map(|point| view.requests(point));
        let completed = all.filter(|record| record.failure.is_none());
        completed.filter_map(|record| Some((record.chunk_ns.len() as u64, record.output_tokens?)))
    };
    // A tool call's name is a piece of its own.
    let few = answers().filter(|(pieces, tokens)| *pieces > tokens + tokens / 4 + 4).count();
    let said = format!(
        "Of {} answers {few} have clearly more pieces than tokens by the server's usage: it leaves out reasoning, or a token comes in \
         several pieces",
        answers().count()
    );
    (few > 0).then(|| Finding::new(Tone::Warn, said))
}

/// Tokens that no server counted.
fn counted_words(how: Counted, targets: &[String]) -> String {
    let whose = if targets.is_empty() { "the server".to_owned() } else { targets.join(" and ") };
    let by = match how {
        Counted::Tokenizer => "in the texts of the answers by a tokenizer",
        Counted::Pieces | Counted::Usage => {
            "as pieces of the stream, and a piece can hold several tokens, or a part of one"
        }
    };
    format!("No usable count of tokens came from {whose}; they were counted {by}")
}
