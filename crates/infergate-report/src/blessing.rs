//! What a blessing changes in a baseline.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::model::{Cell, Missing, Table, Tone, Unit};
use super::words::counter;
use super::{terminal, units};
use infergate_judge::output::{compare, default_tolerance};
use infergate_judge::{Policy, days_ns, newest_of_each_day, stored_limit, summary_ns};
use infergate_receipts::Unit::Bytes;
use infergate_receipts::{
    Baseline, CaseRecord, Counter, ExactRecord, LoadBaseline, LoadSessionLevel, Metric, OutputComparison, Receipt,
};

/// Outputs, counters, medians and limits before and after, and the number of sessions.
pub fn changes(before: Option<&Baseline>, after: &Baseline, receipt: &Receipt, policy: &Policy, path: &Path) -> String {
    let created: Vec<&str> = after.sessions.iter().map(|session| session.created.as_str()).collect();
    let mut text = heading(path, before.map_or(0, |before| before.sessions.len()), &created);
    let mut table = Table::brief(&["case", "before", "this session", "change", "fails above", "output", "counters"]);
    let tolerance = policy.drift_tolerance.unwrap_or_else(|| default_tolerance(&receipt.engine));
    let mut stepped = Vec::new();
    // What a session says that is not the newest changes no reference.
    let is_older = created.last().is_some_and(|newest| *newest != receipt.created);
    for case in &receipt.cases {
        let known = before.and_then(|before| before.exact.iter().find(|record| record.id == case.id));
        let past = before.map_or_else(Vec::new, |before| days_ns(&before.sessions, case.id));
        let was = past.last().and_then(|days| infergate_core::stats::median(days));
        let is = summary_ns(&case.processes);
        let change = was.zip(is).map(|(was, is)| is / was - 1.0);
        let limit = |stretches: &[Vec<f64>]| stored_limit(stretches, after.exact.len());
        let moves = |is: f64| limit(&past).is_some_and(|limit| (is.ln() - limit.centre).abs() > limit.limit);
        if is.is_some_and(moves) {
            stepped.push(case.id.to_string());
        }
        let fails_above = limit(&days_ns(&after.sessions, case.id)).map(|limit| (limit.centre + limit.limit).exp());
        table.row(vec![
            Cell::text(case.id.to_string()),
            Cell::number(was, Unit::Ns, Missing::NoBase),
            Cell::number(is, Unit::Ns, Missing::NotMeasured),
            terminal::change(change),
            Cell::number(fails_above, Unit::Ns, Missing::NotGiven),
            kept_if(is_older && known.is_some(), output_cell(known, case, tolerance)),
            kept_if(is_older && known.is_some(), counters_cell(known, case)),
        ]);
    }
    text += &terminal::table(&table);
    if !stepped.is_empty() && !after.sessions.iter().any(|session| session.step && session.created == receipt.created) {
        let _ = writeln!(
            text,
            "\n{}: beyond what days differ by, which widens the limits; if a change did it, bless this receipt with --step",
            stepped.join(", ")
        );
    }
    let Some(before) = before.filter(|_| !is_older) else { return text };
    text + &model(before, receipt)
}

/// A line for each counter of the model that changes.
fn model(before: &Baseline, receipt: &Receipt) -> String {
    let exactly = |bytes: Option<u64>| bytes.map(|bytes| Counter { min: bytes, max: bytes });
    let mut changes = vec![("weight_bytes", exactly(before.engine.weight_bytes), exactly(receipt.engine.weight_bytes))];
    let names: BTreeSet<&String> = before.held.keys().chain(receipt.held.keys()).collect();
    for name in names {
        // A session that counts nothing takes no counter away.
        if !receipt.held.is_empty() {
            changes.push((name, before.held.get(name).copied(), receipt.held.get(name).copied()));
        }
    }
    let mut text = String::new();
    for (name, was, is) in changes {
        let shown = |value: Option<Counter>| value.map_or_else(|| "none".into(), |value| counter::value(Bytes, value));
        let (was, is) = (shown(was), shown(is));
        if was != is {
            let _ = writeln!(text, "\nmodel, {}: {was} -> {is}", counter::name(name));
        }
    }
    text
}

/// `cell`, or that the reference stays where it would change it.
fn kept_if(is_older: bool, cell: Cell) -> Cell {
    if is_older && cell != Cell::text("same") { Cell::text("older: kept").toned(Tone::Dim) } else { cell }
}

fn output_cell(known: Option<&ExactRecord>, case: &CaseRecord, tolerance: f64) -> Cell {
    let Some(known) = known else { return Cell::text("new").toned(Tone::Dim) };
    let found = compare(&known.output, &case.output, tolerance);
    match found.comparison {
        OutputComparison::Changed => Cell::text("changes").toned(Tone::Warn),
        _ if found.lost_positions > 0 => Cell::text("without logits").toned(Tone::Warn),
        OutputComparison::Drifted => Cell::text("drifts").toned(Tone::Warn),
        _ => Cell::text("same"),
    }
}

fn counters_cell(known: Option<&ExactRecord>, case: &CaseRecord) -> Cell {
    match known {
        Some(known) if known.counters == case.counters => Cell::text("same"),
        Some(known) if known.counters.is_empty() => Cell::text("new").toned(Tone::Dim),
        Some(_) if case.counters.is_empty() => Cell::text("not counted: kept").toned(Tone::Warn),
        Some(_) => Cell::text("changes").toned(Tone::Warn),
        None => Cell::text("new").toned(Tone::Dim),
    }
}

/// A time, and the throughput that it is where it is one of all users.
fn value(metric: Metric, ns: Option<f64>) -> String {
    let time = units::duration(ns);
    let rate = ns.filter(|_| metric == Metric::SystemToken).map(|ns| units::tokens_per_s(Some(1e9 / ns)));
    rate.map_or(time.clone(), |rate| format!("{time} ({rate})"))
}

/// `created` are the times of the sessions there are now.
fn heading(path: &Path, before: usize, created: &[&str]) -> String {
    let (path, after) = (path.display(), created.len());
    let days = newest_of_each_day(created.iter().map(|created| (*created, ()))).len();
    format!("\n{path}\nsessions: {before} -> {after}, of {}\n\n", units::many(days, "day"))
}

/// The newest session of a load baseline: a line a level, each number with its change against the median of the sessions before.
pub fn load_changes(before: Option<&LoadBaseline>, after: &LoadBaseline, path: &Path) -> String {
    let created: Vec<&str> = after.sessions.iter().map(|session| session.created.as_str()).collect();
    let text = heading(path, before.map_or(0, |before| before.sessions.len()), &created);
    let mut table =
        Table::brief(&["load", "TTFT P50", "ITL P50", "E2E P50", "system time per token", "failed", "wrong length"]);
    for level in after.sessions.last().into_iter().flat_map(|session| &session.levels) {
        let key = level.key();
        let sessions = before.into_iter().flat_map(|before| &before.sessions);
        let past: Vec<&LoadSessionLevel> =
            sessions.flat_map(|session| &session.levels).filter(|known| known.key() == key).collect();
        let mut cells = vec![Cell::text(level.name())];
        for (at, (metric, now)) in level.times_ns().into_iter().enumerate() {
            let was: Vec<f64> = past.iter().filter_map(|known| known.times_ns()[at].1).collect();
            let change =
                infergate_core::stats::median(&was).zip(now).map(|(was, now)| units::signed_percent(now / was - 1.0));
            let change = change.map_or_else(String::new, |change| format!(", {change}"));
            cells.push(Cell::text(value(metric, now) + &change));
        }
        let of_all = |count| Cell::text(format!("{count} of {}", level.issued));
        cells.extend([level.failed, level.wrong_length].map(of_all));
        table.row(cells);
    }
    text + &terminal::table(&table)
}
