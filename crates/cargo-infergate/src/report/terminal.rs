//! Receipts and verdicts on a terminal.

use std::fmt::Write as _;

use infergate_core::printable::printable;

use super::table::{Style, Table};
use super::units::{self, MISSING};
use super::{figures, load, words};
use crate::gate::{limit_fraction, summary_ns, variation};
use crate::receipt::{
    Against, CaseRecord, Evidence, Machine, Metric, Outcome, Receipt, Statistic, Subject, TimeEvidence, TtftParts,
    Verdict, VerdictRow,
};
use crate::stats::percentile;
use infergate_core::case::Phase;
use infergate_core::engine::EngineInfo;

/// Who was measured, where: one line.
pub fn subject(receipt: &Receipt) -> String {
    engine(&receipt.engine, receipt.threads, &receipt.machine)
}

/// As [`subject`], from its parts.
pub fn engine(engine: &EngineInfo, threads: usize, machine: &Machine) -> String {
    if engine.is_of_benches() {
        return printable(&format!("benches of {}, {}", engine.model, machine.class)).into_owned();
    }
    let EngineInfo { name, version, model, dtype, .. } = engine;
    // Programs of somebody's own compute in whatever they like.
    let dtype = if dtype == "none" { String::new() } else { format!(" ({dtype})") };
    let threads = units::many(threads, "thread");
    printable(&format!("{model}{dtype} on {name} {version}, {threads}, {}", machine.class)).into_owned()
}

/// A verdict: a line a case, what else there is to say, and the decision last.
pub fn verdict(verdict: &Verdict, subject: &str) -> String {
    verdict_and(verdict, subject, "")
}

/// The same with some lines more before the decision.
pub(super) fn verdict_and(verdict: &Verdict, subject: &str, more: &str) -> String {
    let mut text = format!("\n{subject}\n\n");
    text += &times(verdict);
    let memory = verdict.rows.iter().filter_map(|row| match &row.evidence {
        Evidence::Memory(memory) if memory.slope_bytes.is_some() => Some((row, memory)),
        _ => None,
    });
    for (at, (row, memory)) in memory.enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let (trend, ending) = (words::memory_trend(row.outcome, memory), style(row.outcome).paint(&words::ending(row)));
        let _ = writeln!(text, "{gap}{} of {}: {trend}, {ending}", words::witness(memory.witness), row.subject);
    }
    text.push('\n');
    text + &decision(verdict, more)
}

/// The table: a line a time.
fn times(verdict: &Verdict) -> String {
    let rows: Vec<(&VerdictRow, &TimeEvidence)> =
        verdict.rows.iter().filter_map(|row| Some((row, row.time()?))).collect();
    let paired = rows.iter().any(|(_, time)| time.against != Against::Baseline);
    let own = if paired { ["fails from", "shows from", "blocks"].as_slice() } else { &["fails above", "of hardware"] };
    // Every row of a run has the same level.
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::level(interval.level));
    let change = level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"));
    let through = rows.iter().any(|(_, time)| time.throughput.is_some());
    let rate = if through { ["throughput"].as_slice() } else { &[] };
    let mut table = Table::new(&[&["case", "base", "head"], rate, &[&*change], own, &["output", "verdict"]].concat());
    let limit = |ratio: Option<f64>| ratio.map_or_else(|| MISSING.into(), |ratio| units::signed_percent(ratio - 1.0));
    for (row, time) in rows {
        let output = verdict.rows.iter().find_map(|other| match &other.evidence {
            Evidence::Output(output) if other.subject == row.subject => Some((other, output)),
            _ => None,
        });
        // The mean and a further metric stand below the median of the one that counts, and have no output of their own.
        let name = match (time.counted, time.statistic) {
            (false, _) => format!("  {}", time.metric.short()),
            (true, Statistic::Mean) => "  mean".into(),
            (true, Statistic::Median) => words::compared(row, time),
        };
        let output = output.filter(|_| time.counted && time.statistic == Statistic::Median);
        let plain =
            [name, load::verdict::value(time.metric, time.base_ns), load::verdict::value(time.metric, time.head_ns)];
        let mut cells: Vec<(String, Style)> = plain.into_iter().map(|text| (text, Style::Plain)).collect();
        if through {
            cells.push((units::throughput(time.throughput, time.head_ns), Style::Dim));
        }
        cells.push((words::change(time), Style::Plain));
        cells.push((limit(time.threshold), Style::Dim));
        if paired {
            cells.push((limit(time.smallest_slowdown), Style::Dim));
            cells.push((time.blocks.map_or_else(|| MISSING.into(), |blocks| blocks.to_string()), Style::Dim));
        } else {
            cells.push((units::of_hardware(time.limit_fraction), Style::Dim));
        }
        cells.push(output.map_or((MISSING.into(), Style::Dim), |(other, output)| {
            (words::output(other, output).into(), style(other.outcome))
        }));
        cells.push((words::ending(row), style(row.outcome)));
        table.row(cells);
    }
    table.render()
}

/// What the rows say beside their numbers, what holds for the whole run, some lines `more`, and the decision last.
pub(super) fn decision(verdict: &Verdict, more: &str) -> String {
    let mut text = String::new();
    let mut remarks = remarks(&verdict.rows);
    remarks.extend(verdict.notes.iter().map(words::note));
    for remark in &remarks {
        let _ = writeln!(text, "- {}", printable(remark));
    }
    if !remarks.is_empty() {
        text.push('\n');
    }
    text += more;
    let ending = style(verdict.verdict).paint(verdict.verdict.words());
    let _ = writeln!(text, "verdict: {ending} (exit {}): {}", verdict.exit_code, words::headline::of(verdict));
    text
}

/// What the rows say, the same words of several subjects once.
pub(super) fn remarks(rows: &[VerdictRow]) -> Vec<String> {
    let mut grouped: Vec<(Vec<&Subject>, String)> = Vec::new();
    for row in rows {
        let beyond = row.time().and_then(|time| units::beyond_hardware(time.limit_fraction));
        for said in words::sentence(row).into_iter().chain(beyond) {
            match grouped.iter_mut().find(|(_, known)| *known == said) {
                Some((subjects, _)) if subjects.contains(&&row.subject) => {}
                Some((subjects, _)) => subjects.push(&row.subject),
                None => grouped.push((vec![&row.subject], said)),
            }
        }
    }
    let names = |subjects: Vec<&Subject>| subjects.into_iter().map(Subject::to_string).collect::<Vec<_>>().join(", ");
    grouped.into_iter().map(|(subjects, said)| format!("{}: {said}", names(subjects))).collect()
}

/// How an outcome looks.
pub(super) fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Advisory => Style::Dim,
        Outcome::Accepted => Style::Warn,
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
    for case in &receipt.cases {
        let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes));
        if let Some(beyond) = units::beyond_hardware(fraction) {
            let _ = writeln!(text, "{}: {beyond}", case.id);
        }
    }
    for reason in &receipt.invalid {
        let _ = writeln!(text, "{} {}", Style::Warn.paint("invalid:"), printable(reason));
    }
    if receipt.partial {
        let _ = writeln!(text, "{} the run was cut short", Style::Warn.paint("partial:"));
    }
    text
}

/// The numbers are those that targets are judged by: medians over processes of each process's median.
fn case_row(case: &CaseRecord, receipt: &Receipt) -> Vec<String> {
    let is = |phase: Phase| case.id.phase() == phase;
    let median = |metric: Metric| figures::summary(metric, case);
    let generated = |text: String| if is(Phase::Generate) { text } else { MISSING.into() };
    let time_ns = summary_ns(&case.processes);
    let samples: usize = case.processes.iter().map(|process| process.samples_ns.len()).sum();
    let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), time_ns);
    vec![
        case.id.to_string(),
        units::duration(time_ns),
        units::duration(median(Metric::Ttft)),
        itl_p50(case, samples),
        generated(units::duration(median(Metric::Tpot))),
        units::tokens_per_s(median(Metric::DecodeSpeed)),
        generated(units::tokens_per_s(median(Metric::OutputThroughput))),
        units::percent(variation(&case.processes)),
        samples.to_string(),
        units::of_hardware(fraction),
    ]
}

/// The p50 of all gaps. Gaps of one request are not independent: it takes as many requests as a p50 takes samples.
fn itl_p50(case: &CaseRecord, requests: usize) -> String {
    let gaps = figures::values(Metric::Itl, case);
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
