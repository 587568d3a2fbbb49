//! What a load run found, for a person: one table a metric and scenario, one row a level.

pub mod agreement;
pub mod audit;
mod cost;
pub mod digest;
mod limits;
pub mod quarters;
pub mod uptime;
pub mod verdict;
pub mod view;
pub mod winners;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::printable::printable;
use infergate_core::stats::samples_needed;

use super::model::Missing;
use super::table::{Style, Table};
use super::terminal;
use super::units::{self, MISSING};
use super::words::{load as load_words, missing};
use crate::load::judge::load;
use crate::load::summary::{Counted, LevelSummary, is_marked, scaling_efficiency, summarise, summarise_target};
use crate::load::token_counts::{TokenCounts, compare};
use crate::receipt::{BatchRecord, LevelRecord, LoadReceipt, Metric, Outcome, TargetRecord};
use crate::report::model::Unit;
use digest::Digest;
use view::View;

/// The percentiles that are shown.
const SHOWN: [(&str, f64); 4] = [("P25", 0.25), ("P50", 0.5), ("P75", 0.75), ("P99", 0.99)];
/// Gaps up to this look instant.
pub const INSTANT_NS: f64 = 20e6;
/// Gaps above this look sluggish.
pub const SLUGGISH_NS: f64 = 70e6;

/// The run as text; of one that is not to be used, with its verdict last.
pub fn text(receipt: &LoadReceipt) -> String {
    let Some((outcome, why)) = unusable(receipt) else { return measured(receipt) };
    let verdict = Style::Warn.paint(&format!("verdict: {} (exit {})", outcome.words(), outcome.exit_code()));
    format!("{}\n{verdict}: {}\n", measured(receipt), printable(why))
}

/// The same without a verdict.
pub fn measured(receipt: &LoadReceipt) -> String {
    let mut text = format!("\n{}\n", header(receipt));
    let digest = Digest::of(receipt);
    let view = View { receipt, digest: &digest };
    for (index, scenario) in (0..).zip(&receipt.scenarios) {
        let levels = receipt.levels.iter().filter(|level| level.scenario == index);
        let rows: Vec<Row<'_>> = levels.flat_map(|level| rows(level, &receipt.targets)).collect();
        if rows.is_empty() {
            continue;
        }
        let turns = if scenario.turns > 1 { format!(", {} turns", scenario.turns) } else { String::new() };
        let _ = write!(
            text,
            "\n{}: {} tokens in, {} out{turns}\n\n",
            Style::Bold.paint(&printable(&scenario.name)),
            scenario.input_tokens,
            scenario.output_tokens
        );
        text += &overview(&rows);
        for metric in [Metric::Ttft, Metric::Itl, Metric::E2e, Metric::OutputThroughput] {
            let _ = write!(text, "\n{}", percentiles(metric, &rows));
        }
        text += &words(&rows, receipt.partial);
        text += &winners::text(&view, index as usize);
        text += &limits::text(&whole(&receipt.levels, index), &receipt.limits);
        text += &cost::text(&rows, &receipt.targets);
    }
    text += &winners::left_out(&view);
    text += &audit::text(receipt);
    text + &notes(receipt)
}

/// A row of each table: a level, or one target of a level.
struct Row<'a> {
    name: String,
    /// Empty where there is one target.
    target: &'a str,
    level: &'a LevelRecord,
    /// What this row is about: all of the level's, or those of the target.
    requests: Vec<&'a RequestRecord>,
    summary: LevelSummary,
}

fn rows<'a>(level: &'a LevelRecord, targets: &'a [TargetRecord]) -> Vec<Row<'a>> {
    let name = load(&level.arrivals);
    if targets.len() < 2 {
        let requests = level.requests.iter().collect();
        return vec![Row { name, target: "", level, requests, summary: summarise(level) }];
    }
    let row = |(index, target): (u32, &'a TargetRecord)| {
        let name = format!("{name}, {}", target.name());
        let requests = level.requests.iter().filter(|record| record.target == index).collect();
        Row { name, target: target.name(), level, requests, summary: summarise_target(level, index) }
    };
    (0..).zip(targets).map(row).collect()
}

/// The levels of a scenario, all targets together.
fn whole(levels: &[LevelRecord], scenario: u32) -> Vec<(&LevelRecord, LevelSummary)> {
    levels.iter().filter(|level| level.scenario == scenario).map(|level| (level, summarise(level))).collect()
}

/// What was asked, and by which client: a line each.
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

fn overview(rows: &[Row<'_>]) -> String {
    let mut table =
        Table::new(&["load", "measured", "sent", "failed", "in flight", "system", "scaling", "decode P50 per user"]);
    // Alone is what one user of a single target had; users of several share themselves between them.
    let single = rows.iter().map(|row| &row.summary).find(|summary| summary.users == Some(1));
    for Row { name, summary, .. } in rows {
        let failed: u64 = summary.failures.values().sum();
        let style = if failed > 0 { Style::Bad } else { Style::Plain };
        let plain = |text: String| (text, Style::Plain);
        let scaling = single.and_then(|single| scaling_efficiency(summary, single));
        table.row(vec![
            plain(name.clone()),
            plain(format!("{} of {}", summary.measured, summary.asked.unwrap_or(summary.started as u64))),
            plain(summary.issued.to_string()),
            (failed.to_string(), style),
            plain(summary.in_flight.map_or(MISSING.into(), |in_flight| format!("{in_flight:.1}"))),
            plain(units::tokens_per_s(summary.system_tokens_per_s)),
            plain(units::percent(scaling.filter(|_| summary.in_flight.is_some()))),
            plain(units::tokens_per_s(summary.decode_tokens_per_s.at(0.5))),
        ]);
    }
    table.render()
}

fn percentiles(metric: Metric, rows: &[Row<'_>]) -> String {
    let mut headings = vec![metric.long()];
    headings.extend(SHOWN.map(|(name, _)| name));
    if metric == Metric::Itl {
        headings.push("feels");
    }
    let mut table = Table::new(&headings);
    for Row { name, summary, .. } in rows {
        let values = summary.values(metric);
        let mut cells = vec![name.clone()];
        cells.extend(
            SHOWN.map(|(_, p)| values.at(p).map_or_else(|| MISSING.into(), |value| Unit::of(metric).show(value))),
        );
        if metric == Metric::Itl {
            cells.push(values.at(0.5).map_or(MISSING, smoothness).into());
        }
        table.row(cells.into_iter().map(|cell| (cell, Style::Plain)).collect());
    }
    table.render()
}

/// A first token up to here seems to be there at once.
pub const AT_ONCE_NS: f64 = 200e6;
/// Behind this it is waited for.
pub const WAITED_FOR_NS: f64 = 300e6;

/// How a wait for the first token feels.
pub fn wait(ttft_ns: f64) -> &'static str {
    match ttft_ns {
        ns if ns <= AT_ONCE_NS => "at once",
        ns if ns <= WAITED_FOR_NS => "nearly at once",
        _ => "waited for",
    }
}

/// How a stream with this gap feels to its reader.
pub fn smoothness(itl_ns: f64) -> &'static str {
    match itl_ns {
        ns if ns < INSTANT_NS => "instant",
        ns if ns <= SLUGGISH_NS => "acceptable",
        _ => "sluggish",
    }
}

/// What the tables of a scenario leave out.
fn words(rows: &[Row<'_>], partial: bool) -> String {
    let mut text = String::new();
    for Row { name, level, requests, summary, .. } in rows {
        let name = printable(name);
        if let Some(line) = failed(requests, summary) {
            let _ = writeln!(text, "{name}: {line}");
        }
        if let Some(late) = summary.late_ns.at(0.5).filter(|_| summary.users.is_none()) {
            let late = units::duration(Some(late));
            let _ = writeln!(
                text,
                "{name}: the client sent requests {late} after their scheduled start (P50), which is in every latency"
            );
        }
        if let Some(few) = few(level, summary) {
            let _ = writeln!(text, "{name}: {few}");
        }
        if partial && summary.cancelled > 0 {
            let _ = writeln!(text, "{name}: {} requests were given up when the run ended", summary.cancelled);
        }
        if let Some(batch) = &level.batch {
            let _ = writeln!(text, "{name}: {}", batched(batch));
        }
        if summary.retries > 0 {
            let _ = writeln!(text, "{name}: {} attempts ended in 429 or 5xx and were made again", summary.retries);
        }
    }
    for how in [Counted::Pieces, Counted::Tokenizer] {
        let counted: Vec<&Row> = rows.iter().filter(|row| row.summary.counted == Some(how)).collect();
        let targets: BTreeSet<&str> = counted.iter().map(|row| row.target).filter(|name| !name.is_empty()).collect();
        if !counted.is_empty() {
            let targets: Vec<String> = targets.into_iter().map(|name| printable(name).into_owned()).collect();
            let _ = writeln!(text, "{}", load_words::counted(how, &targets));
        }
    }
    let counts = compare(rows.iter().flat_map(|row| row.requests.iter().copied()));
    if let Some(TokenCounts { both, same, apart, .. }) = counts {
        let _ = writeln!(
            text,
            "tokens by the server's usage and by the tokenizer: the same number in {same} of {both} answers, more than one apart \
             in {apart}"
        );
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What a level has too few requests for; `None` where it has those that were asked for.
fn few(level: &LevelRecord, summary: &LevelSummary) -> Option<String> {
    let needed = samples_needed(0.5).unwrap_or(usize::MAX);
    match summary.asked {
        _ if summary.started == 0 => Some(missing::reason(Missing::NoWindow)),
        Some(asked) if (summary.started as u64) < asked => Some(format!(
            "{} of {asked} requests ran at full load to their ends: the level ended early",
            summary.started
        )),
        None if !is_marked(level) => Some(format!(
            "{} of {} requests ran at full load to their ends: the receipt is of before the load was kept for all of them",
            summary.started, summary.issued
        )),
        _ if summary.measured < needed => {
            Some(format!("{} measured requests completed, and a percentile takes {needed}", summary.measured))
        }
        _ => None,
    }
}

/// How a local engine served a level.
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

fn failed(requests: &[&RequestRecord], summary: &LevelSummary) -> Option<String> {
    let counts: Vec<String> =
        summary.failures.iter().map(|(class, count)| format!("{count} {}", class_words(*class))).collect();
    let mut details: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in requests.iter().filter_map(|record| record.failure.as_ref()) {
        if failure.class != FailureClass::Cancelled {
            *details.entry(&failure.detail).or_default() += 1;
        }
    }
    let (most, _) = details.into_iter().max_by_key(|(_, count)| *count)?;
    Some(format!("failed: {} (most: {})", counts.join(", "), printable(most)))
}

/// What became of requests that failed: `3 by timeout`.
pub fn class_words(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Connect => "without a connection",
        FailureClass::Tls => "without a TLS session",
        FailureClass::Status4xx => "with a 4xx status",
        FailureClass::Status429 => "with status 429",
        FailureClass::Status5xx => "with a 5xx status",
        FailureClass::Timeout => "by timeout",
        FailureClass::MalformedStream => "with a malformed stream",
        FailureClass::CutStream => "with a stream that was cut",
        FailureClass::WrongLength => "of the wrong length",
        FailureClass::Engine => "in the engine",
        FailureClass::Cancelled => "cancelled",
    }
}

fn notes(receipt: &LoadReceipt) -> String {
    let mut text = String::new();
    for note in &receipt.notes {
        let _ = writeln!(text, "note: {}", printable(note));
    }
    for reason in &receipt.invalid {
        let _ = writeln!(text, "{} {}", Style::Warn.paint("invalid:"), printable(reason));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// How a run ends whose numbers are not to be used, and why: the order is the gate's. `None` for a sound run.
pub fn unusable(receipt: &LoadReceipt) -> Option<(Outcome, &str)> {
    match (receipt.invalid.first(), receipt.partial) {
        (Some(why), _) => Some((Outcome::Invalid, why.as_str())),
        (None, true) => Some((Outcome::Partial, "the run was cut short")),
        (None, false) => None,
    }
}
