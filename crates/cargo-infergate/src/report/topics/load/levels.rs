//! Every level in one line: how many requests, how many at once, what came out of all of them together.

use crate::report::inputs::Inputs;
use crate::report::load::{Metric, Rank, View, percentile_cell};
use crate::report::model::{Cell, Column, Finding, Missing, Section, Tone, Unit};
use infergate_load::summary::Counted;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let own = vec![
        Column::numbers("issued", "sent"),
        Column::numbers("completed", "completed"),
        Column::numbers("failed", "failed").about("in a percentile they count as slower than all others"),
        Column::numbers("cancelled", "given up").about("when the measured ones had ended, or the run was"),
        Column::numbers("measured", "measured").about("started at full load, which was kept until they had completed"),
        Column::numbers("window", "steady window")
            .about("the load was what was asked for, to the end of the last measured request"),
        Column::numbers("in_flight", "in flight").about("requests at once within the window, in the mean"),
        Column::numbers("system", "output of all").about("output tokens within the window / its length"),
        Column::numbers("ttft", "TTFT P50"),
        Column::numbers("decode_speed", "decode P50 of a user"),
    ];
    let table = view.table("levels", "", own, |point| {
        let count = |count: u64| Cell::of(count as f64, Unit::Count);
        let window = point.window.map(|window| window.to_ns.saturating_sub(window.from_ns) as f64);
        let no_window = if point.target.is_some() { Missing::Shared } else { Missing::NoWindow };
        vec![
            count(point.issued),
            count(point.completed),
            count(point.failed()).toned(if point.failed() > 0 { Tone::Bad } else { Tone::Plain }),
            count(point.cancelled),
            count(point.measured as u64),
            Cell::number(window, Unit::Ns, Missing::NoWindow),
            Cell::number(point.in_flight, Unit::Plain, no_window),
            Cell::number(point.system_tokens_per_s, Unit::TokensPerS, Missing::NoWindow),
            percentile_cell(point, Metric::Ttft, Rank::P50),
            percentile_cell(point, Metric::DecodeSpeed, Rank::P50),
        ]
    });
    let ways = [(Counted::Tokenizer, Tone::Plain), (Counted::Pieces, Tone::Warn)];
    let findings: Vec<Finding> = ways.into_iter().filter_map(|(how, tone)| counted(&view, how, tone)).collect();
    Some(Section::new("load_levels", "Levels").with([table]).with([findings]))
}

/// The answers whose tokens no server counted, by what was done in its place.
fn counted(view: &View<'_>, how: Counted, tone: Tone) -> Option<Finding> {
    let points = || view.digest.points.iter().filter(|point| point.counted == Some(how));
    let answers: usize = points().map(|point| point.measured).sum();
    let mut targets: Vec<usize> = points().filter_map(|point| point.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let targets: Vec<String> = targets.into_iter().map(|target| view.target(target)).collect();
    let figures = [("answers without usage".to_owned(), answers as f64, Unit::Count)];
    if answers == 0 { None } else { Finding::of(tone, counted_words(how, &targets), &figures) }
}

/// Tokens that no server counted.
pub fn counted_words(how: Counted, targets: &[String]) -> String {
    let whose = if targets.is_empty() { "the server".to_owned() } else { targets.join(" and ") };
    let by = match how {
        Counted::Tokenizer => "in the texts of the answers by a tokenizer",
        Counted::Pieces | Counted::Usage => "as pieces of the stream, and a piece can hold several",
    };
    format!("No usage came from {whose}; tokens were counted {by}")
}
