//! Receipts and verdicts on a terminal.

use std::fmt::Write as _;

use super::table::{Style, Table};
use super::units::{self, MISSING};
use crate::gate::{TargetMetric, limit_fraction, summary_ns, variation};
use crate::receipt::{CaseRecord, CaseVerdict, Channel, Machine, Outcome, Receipt, TtftParts, Verdict};
use crate::stats::percentile;
use infergate::case::Phase;
use infergate::engine::EngineInfo;

/// Metrics whose rows are the table; every other row is listed below it when it has something to say.
const TIMES: [&str; 3] = ["ttft_ns", "itl_ns", "e2e_ns"];

/// Who was measured, where: one line.
pub fn subject(receipt: &Receipt) -> String {
    engine(&receipt.engine, receipt.threads, &receipt.machine)
}

/// As [`subject`], from its parts.
pub fn engine(engine: &EngineInfo, threads: usize, machine: &Machine) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!(
        "{} ({}) on {} {}, {threads} thread{plural}, {}",
        engine.model, engine.dtype, engine.name, engine.version, machine.class
    )
}

/// A verdict: a line a case, what else there is to say, and the decision last.
pub fn verdict(verdict: &Verdict, subject: &str) -> String {
    let mut text = format!("\n{subject}\n\n");
    let times: Vec<&CaseVerdict> = verdict.cases.iter().filter(|row| TIMES.contains(&row.metric.as_str())).collect();
    let paired = times.iter().any(|row| row.channel == Channel::Paired);
    let own = if paired { ["fails from", "shows from", "blocks"].as_slice() } else { &["fails above", "of hardware"] };
    let mut table = Table::new(&[&["case", "base", "head", "change"], own, &["output", "verdict"]].concat());
    for row in times {
        let output = verdict.cases.iter().find(|other| other.id == row.id && other.metric == "output");
        let limit =
            |ratio: Option<f64>| ratio.map_or_else(|| MISSING.into(), |ratio| units::signed_percent(ratio - 1.0));
        let mut cells = vec![
            (row.id.clone(), Style::Plain),
            (units::duration(row.base), Style::Plain),
            (units::duration(row.head), Style::Plain),
            (change(row), Style::Plain),
            (limit(row.threshold), Style::Dim),
        ];
        if paired {
            cells.push((limit(row.smallest_slowdown), Style::Dim));
            cells.push((row.blocks.map_or_else(|| MISSING.into(), |blocks| blocks.to_string()), Style::Dim));
        } else {
            cells.push((units::percent(row.limit_fraction), Style::Dim));
        }
        cells.push(output.map_or((MISSING.into(), Style::Dim), output_cell));
        cells.push((row.verdict.words().into(), style(row.verdict)));
        table.row(cells);
    }
    text += &table.render();

    let memory: Vec<&CaseVerdict> =
        verdict.cases.iter().filter(|row| row.channel == Channel::Memory && row.head.is_some()).collect();
    if !memory.is_empty() {
        text.push('\n');
    }
    for row in memory {
        let (words, style) = (row.verdict.words(), style(row.verdict));
        let _ = writeln!(text, "{} of {}: {}, {}", row.metric, row.id, super::memory::trend(row), style.paint(words));
    }
    text.push('\n');
    text + &decision(verdict)
}

/// What the rows say beside their numbers, what holds for the whole run, and the decision last.
pub(super) fn decision(verdict: &Verdict) -> String {
    let mut text = String::new();
    let mut remarks = remarks(&verdict.cases);
    remarks.extend(verdict.notes.iter().cloned());
    for remark in &remarks {
        let _ = writeln!(text, "- {remark}");
    }
    if !remarks.is_empty() {
        text.push('\n');
    }
    let words = style(verdict.verdict).paint(verdict.verdict.words());
    let _ = writeln!(text, "verdict: {words} (exit {}){}", verdict.exit_code, reason(verdict));
    text
}

/// The change with its interval.
pub(super) fn change(row: &CaseVerdict) -> String {
    let Some(ratio) = row.ratio else { return MISSING.into() };
    let change = units::signed_percent(ratio - 1.0);
    match (row.ci_low, row.ci_high) {
        (Some(low), Some(high)) => {
            format!("{change} ({} to {})", units::signed_percent(low - 1.0), units::signed_percent(high - 1.0))
        }
        _ => change,
    }
}

fn output_cell(row: &CaseVerdict) -> (String, Style) {
    let words = match row.verdict {
        Outcome::Pass => "same",
        Outcome::OutputChanged => "changed",
        Outcome::Advisory if row.note.as_deref().is_some_and(|note| note.contains("instead of")) => "near tie",
        Outcome::Advisory => "new",
        other => other.words(),
    };
    (words.into(), style(row.verdict))
}

/// What the rows say, the same words of several cases once.
fn remarks(rows: &[CaseVerdict]) -> Vec<String> {
    let mut grouped: Vec<(Vec<&str>, &str)> = Vec::new();
    let mut single = Vec::new();
    for row in rows {
        match row.note.as_deref().filter(|note| !note.starts_with(&row.id)) {
            Some(note) => match grouped.iter_mut().find(|(_, known)| *known == note) {
                Some((ids, _)) if ids.contains(&row.id.as_str()) => {}
                Some((ids, _)) => ids.push(&row.id),
                None => grouped.push((vec![&row.id], note)),
            },
            None => single.extend(remark(row).filter(|remark| !single.contains(remark))),
        }
    }
    single.extend(grouped.into_iter().map(|(ids, note)| format!("{}: {note}", ids.join(", "))));
    single
}

/// What a row says that the table does not: the note of every row, and targets and counters by value.
fn remark(row: &CaseVerdict) -> Option<String> {
    let is_target = row.channel == Channel::Stored && !TIMES.contains(&row.metric.as_str());
    match (&row.note, is_target) {
        (Some(note), _) if note.starts_with(&row.id) => Some(note.clone()),
        (Some(note), _) => Some(format!("{}: {note}", row.id)),
        (None, true) => {
            let number = |value: Option<f64>| value.map_or_else(|| MISSING.into(), |value| format!("{value:.4}"));
            Some(format!(
                "{}: {} {} with a target of {}: {}",
                row.id,
                row.metric,
                number(row.head),
                number(row.threshold),
                row.verdict.words()
            ))
        }
        (None, false) => None,
    }
}

/// Why, where the decision was not to pass: the first row that decided, or what broke the whole run.
fn reason(verdict: &Verdict) -> String {
    if verdict.exit_code == 0 {
        let is_time = |row: &&CaseVerdict| TIMES.contains(&row.metric.as_str());
        let judged = verdict.cases.iter().filter(is_time).any(|row| row.verdict != Outcome::Advisory);
        let memory_alone = !verdict.cases.is_empty() && verdict.cases.iter().all(|row| row.channel == Channel::Memory);
        let judged = judged || memory_alone;
        return if judged { String::new() } else { ", time is shown and not judged".into() };
    }
    let Some(row) = verdict.cases.iter().find(|row| row.verdict == verdict.verdict) else {
        let note = verdict.notes.iter().find(|note| note.starts_with(verdict.verdict.words())).or(verdict.notes.last());
        return note.map_or_else(String::new, |note| format!(", {note}"));
    };
    match (remark(row), row.ratio, row.threshold) {
        (Some(remark), ..) => format!(", {remark}"),
        (None, Some(ratio), Some(limit)) => {
            let (change, limit) = (units::signed_percent(ratio - 1.0), units::signed_percent(limit - 1.0));
            let word = if row.channel == Channel::Paired { "from" } else { "above" };
            format!(", {}: {} {change}, and it fails {word} {limit}", row.id, row.metric)
        }
        _ => format!(", {}: {}", row.id, row.metric),
    }
}

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Advisory => Style::Dim,
        _ => match outcome.exit_code() {
            0 => Style::Good,
            3 => Style::Warn,
            _ => Style::Bad,
        },
    }
}

/// A receipt: every metric of every case, then time to first token in parts.
pub fn receipt(receipt: &Receipt) -> String {
    let mut text = format!("\n{}\n\n", subject(receipt));
    let mut table = Table::new(&[
        "case",
        "time",
        "TTFT",
        "ITL p50",
        "TPOT",
        "decode",
        "throughput",
        "CV",
        "samples",
        "of hardware",
    ]);
    for case in &receipt.cases {
        table.row(case_row(case, receipt).into_iter().map(|cell| (cell, Style::Plain)).collect());
    }
    text += &table.render();
    for (name, starts) in [("cold", &receipt.cold), ("warm", &receipt.warm)] {
        if let Some(line) = ttft_line(name, starts) {
            text += &format!("\n{line}");
        }
    }
    text += "\n";
    for reason in &receipt.invalid {
        let _ = writeln!(text, "{} {reason}", Style::Warn.paint("invalid:"));
    }
    if receipt.partial {
        let _ = writeln!(text, "{} the run was cut short", Style::Warn.paint("partial:"));
    }
    text
}

/// The numbers are those that targets are judged by: medians over processes of each process's median.
fn case_row(case: &CaseRecord, receipt: &Receipt) -> Vec<String> {
    let is = |phase: Phase| case.id.phase() == phase;
    let ms = |metric: TargetMetric| units::duration(metric.value(case).map(|ms| ms * 1e6));
    let generated = |text: String| if is(Phase::Generate) { text } else { MISSING.into() };
    let time_ns = summary_ns(&case.processes);
    let samples: usize = case.processes.iter().map(|process| process.samples_ns.len()).sum();
    let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), time_ns);
    vec![
        case.id.to_string(),
        units::duration(time_ns),
        ms(TargetMetric::TtftMs),
        itl_p50(case, samples),
        generated(ms(TargetMetric::TpotMs)),
        units::tokens_per_s(TargetMetric::TokensPerS.value(case)),
        generated(units::tokens_per_s(TargetMetric::OutputTokensPerS.value(case))),
        units::percent(variation(&case.processes)),
        samples.to_string(),
        units::percent(fraction),
    ]
}

/// The p50 of all gaps. Gaps of one request are not independent: it takes as many requests as a p50 takes samples.
fn itl_p50(case: &CaseRecord, requests: usize) -> String {
    let gaps: Vec<f64> = match case.id.phase() {
        Phase::Prefill => return MISSING.into(),
        Phase::Decode => case.processes.iter().flat_map(|process| process.times_ns()).collect(),
        Phase::Generate => {
            let traces = case.processes.iter().flat_map(|process| process.traces());
            traces.flat_map(|trace| trace.itl_ns()).map(|ns| ns as f64).collect()
        }
    };
    match percentile(&gaps, 0.5) {
        Some(p50) if requests < p50.needed => format!("{MISSING} (takes {})", p50.needed),
        p50 => units::duration(p50.and_then(|p50| p50.value)),
    }
}

/// The parts of the start whose TTFT is the middle one, so that they add up.
fn ttft_line(name: &str, starts: &[TtftParts]) -> Option<String> {
    let mut sorted: Vec<&TtftParts> = starts.iter().collect();
    sorted.sort_by_key(|parts| parts.ttft_ns());
    let parts = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let part = |ns: Option<u64>| units::duration(ns.map(|ns| ns as f64));
    let load = if name == "cold" { format!("load {} + ", part(parts.load_ns)) } else { String::new() };
    Some(format!(
        "{name} TTFT at {} tokens: {} = {load}tokenize {} + prefill {} + first sample {}",
        parts.prompt_tokens,
        part(Some(parts.ttft_ns())),
        part(parts.tokenize_ns),
        part(Some(parts.prefill_ns)),
        part(parts.first_sample_ns)
    ))
}
