//! What a load run found, on a terminal: one table a metric and scenario, one row a level. What else is here is derived for it and
//! for pages.

mod course;
mod digest;
mod feels;
mod pairs;
mod view;

pub use crate::receipt::Metric;
pub use course::{FOLLOWED, QUARTERS, Quarter, Uptime};
pub use digest::{Digest, Limited, Pair, Point, Rank};
pub use feels::{INSTANT_NS, SLUGGISH_NS, WAITED_FOR_NS, direction, smoothness, wait};
pub use pairs::Winners;
pub use view::{Series, View, load_cell, median_cell, percentile_cell};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::printable::printable;
use infergate_core::stats::samples_needed;

use super::model::{Cell, Missing, Table, Tone, Unit};
use super::terminal;
use super::topics::load::{audit, cost, failures, levels, limits, users, winners};
use super::units;
use super::words::missing;
use crate::receipt::Scenario;
use crate::receipt::{BatchRecord, LevelRecord, LoadReceipt, Outcome, TargetRecord};
use infergate_load::summary::token_counts::{TokenCounts, compare};
use infergate_load::summary::{Counted, is_marked};

/// The run as text; of one that is not to be used, with its verdict last.
pub fn text(receipt: &LoadReceipt) -> String {
    let Some((outcome, why)) = unusable(receipt) else { return measured(receipt) };
    let verdict = terminal::paint(Tone::Warn, &format!("verdict: {} (exit {})", outcome.words(), outcome.exit_code()));
    format!("{}\n{verdict}: {}\n", measured(receipt), printable(why))
}

pub fn measured(receipt: &LoadReceipt) -> String {
    let mut text = format!("\n{}\n", header(receipt));
    let digest = Digest::of(receipt);
    let view = View { receipt, digest: &digest };
    for (index, scenario) in view.scenarios() {
        text += &of_scenario(&view, index, scenario);
    }
    text += &terminal::paragraph(winners::left_out(&view).map(|said| said + "\n").unwrap_or_default());
    text += &audit::brief(receipt).map(|table| terminal::paragraph(terminal::table(&table))).concat();
    text + &terminal::paragraph(notes(receipt))
}

fn of_scenario(view: &View<'_>, index: usize, scenario: &Scenario) -> String {
    let points: Vec<&Point> = view.digest.points.iter().filter(|point| point.scenario == index).collect();
    let turns = if scenario.turns > 1 { format!(", {} turns", scenario.turns) } else { String::new() };
    let name = terminal::bold(&printable(&scenario.name));
    let mut text = format!("\n{name}: {} tokens in, {} out{turns}\n", scenario.input_tokens, scenario.output_tokens);
    for table in [overview(view, &points)].iter().chain(&users::brief(view, &points)) {
        text += &terminal::paragraph(terminal::table(table));
    }
    text += &terminal::paragraph(words(view, &points));
    text += &terminal::paragraph(winners::brief(view, index));
    text += &limits::brief(view, index);
    text + &terminal::paragraph(cost::brief(view, &points))
}

pub fn header(receipt: &LoadReceipt) -> String {
    let mut text = String::new();
    for target in &receipt.targets {
        let (name, url, api, model, http, extensions) = match target {
            TargetRecord::Endpoint { name, url, api, model, http, extensions, .. } => {
                (name, url, api, model, http, extensions)
            }
            TargetRecord::Local { engine, threads, .. } => {
                let _ = writeln!(text, "local: {}", terminal::engine(engine, *threads, &receipt.machine));
                return text.trim_end().to_owned();
            }
        };
        let colon = if name.is_empty() { "" } else { ": " };
        let _ = write!(text, "{}{colon}{} ({}, {})", printable(name), printable(url), printable(api), printable(http));
        let _ = write!(text, ", model {}", printable(model));
        if !extensions.is_empty() {
            let _ = write!(text, ", with {}", printable(&extensions.join(", ")));
        }
        text.push('\n');
    }
    text + &format!("client: {}, each user's connection is used again", printable(&receipt.machine.class))
}

fn overview(view: &View<'_>, points: &[&Point]) -> Table {
    let headings = ["load", "measured", "sent", "failed", "in flight", "system", "scaling", "decode P50 per user"];
    let mut table = Table::brief(&headings);
    for point in points {
        let failed = point.failed();
        let in_flight = point.in_flight.map(|in_flight| Cell::text(format!("{in_flight:.1}")));
        table.row(vec![
            Cell::text(view.row_name(point)),
            Cell::text(format!("{} of {}", point.measured, point.asked.unwrap_or(point.started as u64))),
            Cell::of(point.issued as f64, Unit::Count),
            Cell::of(failed as f64, Unit::Count).toned(if failed > 0 { Tone::Bad } else { Tone::Plain }),
            in_flight.unwrap_or(Cell::Missing(Missing::NoWindow)),
            Cell::number(point.system_tokens_per_s, Unit::TokensPerS, Missing::NoWindow),
            Cell::number(point.scaling.filter(|_| point.in_flight.is_some()), Unit::Fraction, Missing::NoSingleUser),
            Cell::number(point.spread(Metric::DecodeSpeed).p50, Unit::TokensPerS, Missing::NoWindow),
        ]);
    }
    table
}

/// What the tables of a scenario leave out.
fn words(view: &View<'_>, points: &[&Point]) -> String {
    let mut text = String::new();
    let mut say = |line: String| text += &(line + "\n");
    for point in points {
        let Some(level) = view.receipt.levels.get(point.level) else { continue };
        let late = point.late_ns.filter(|_| point.users().is_none()).map(|late| {
            let late = units::duration(Some(late));
            format!("the client sent requests {late} after their scheduled start (P50), which is in every latency")
        });
        let given_up = (view.receipt.partial && point.cancelled > 0)
            .then(|| format!("{} requests were given up when the run ended", point.cancelled));
        let retried =
            (point.retries > 0).then(|| format!("{} attempts ended in 429 or 5xx and were made again", point.retries));
        let batch = level.batch.as_ref().map(batched);
        for line in [failed(view, point), late, few(level, point), given_up, batch, retried].into_iter().flatten() {
            say(format!("{}: {line}", view.row_name(point)));
        }
    }
    for how in [Counted::Pieces, Counted::Tokenizer] {
        let counted: Vec<&&Point> = points.iter().filter(|point| point.counted == Some(how)).collect();
        let targets: BTreeSet<&str> =
            counted.iter().filter_map(|point| Some(view.receipt.targets.get(point.target?)?.name())).collect();
        let targets = targets.into_iter().filter(|name| !name.is_empty());
        if !counted.is_empty() {
            let targets: Vec<String> = targets.map(|name| printable(name).into_owned()).collect();
            say(levels::counted_words(how, &targets));
        }
    }
    if let Some(TokenCounts { both, same, apart, .. }) = compare(points.iter().flat_map(|point| view.requests(point))) {
        say(format!(
            "tokens by the server's usage and by the tokenizer: the same number in {same} of {both} answers, more than one apart \
             in {apart}"
        ));
    }
    text
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

pub fn batched(batch: &BatchRecord) -> String {
    let how = match batch.batches {
        Some(true) if batch.largest_batch == 1 => "one request a step".into(),
        Some(true) => format!("up to {} requests in one step", batch.largest_batch),
        Some(false) => "requests took turns".into(),
        None => "whether a step computes several requests is not known".into(),
    };
    let cache = batch.kv_bytes_per_request.map_or_else(String::new, |bytes| {
        format!(", keys and values of one take {}", units::bytes(Some(bytes as f64)))
    });
    let cut = batch.cut_short.as_ref().map_or_else(String::new, |why| format!("; cut short: {}", printable(why)));
    format!("{how}{cache}; {} outputs computed alone were the same{cut}", batch.compared)
}

fn failed(view: &View<'_>, point: &Point) -> Option<String> {
    let mut details: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in view.requests(point).filter_map(|record: &RequestRecord| record.failure.as_ref()) {
        if failure.class != FailureClass::Cancelled {
            *details.entry(&failure.detail).or_default() += 1;
        }
    }
    let (most, _) = details.into_iter().max_by_key(|(_, count)| *count)?;
    Some(format!("failed: {} (most: {})", failures::classes(&point.failures), printable(most)))
}

fn notes(receipt: &LoadReceipt) -> String {
    let mut text = String::new();
    for note in &receipt.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    for reason in &receipt.invalid {
        let _ = writeln!(text, "{} {}", terminal::paint(Tone::Warn, "invalid:"), printable(reason));
    }
    text
}

/// How a run ends whose numbers are not to be used, and why: the order is the gate's. `None` for a sound run.
pub fn unusable(receipt: &LoadReceipt) -> Option<(Outcome, &str)> {
    match (receipt.invalid.first(), receipt.partial) {
        (Some(why), _) => Some((Outcome::Invalid, why.as_str())),
        (None, true) => Some((Outcome::Partial, "the run was cut short")),
        (None, false) => None,
    }
}
