//! What a blessing changes in a baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::model::{Cell, Missing, Rows, Tone, Unit};
use super::terminal;
use super::units::{self, MISSING};
use super::words::counter;
use infergate_judge::output::{compare, default_tolerance};
use infergate_judge::{Policy, days_ns, newest_of_each_day, stored_limit, summary_ns};
use infergate_receipts::Unit::Bytes;
use infergate_receipts::{Baseline, CaseRecord, Counter, LoadBaseline, LoadSessionLevel, OutputComparison, Receipt};

/// Outputs, counters, medians and limits before and after, and the number of sessions.
pub fn changes(before: Option<&Baseline>, after: &Baseline, receipt: &Receipt, policy: &Policy, path: &Path) -> String {
    let created: Vec<&str> = after.sessions.iter().map(|session| session.created.as_str()).collect();
    let mut text = heading(path, before.map_or(0, |before| before.sessions.len()), &created);
    let tolerance = policy.drift_tolerance.unwrap_or_else(|| default_tolerance(&receipt.engine));
    let past = |case: &CaseRecord| before.map_or_else(Vec::new, |before| days_ns(&before.sessions, case.id));
    let was = |case: &CaseRecord| past(case).last().and_then(|days| infergate_core::stats::median(days));
    let is = |case: &CaseRecord| summary_ns(&case.processes);
    let limit = |stretches: &[Vec<f64>]| stored_limit(stretches, after.exact.len());
    let exact = |case: &CaseRecord| {
        let of = |baseline: &Baseline| baseline.exact.iter().find(|record| record.id == case.id).cloned();
        before.and_then(of).zip(of(after))
    };
    let table = Rows::of("changes", "", &receipt.cases)
        .words("case", "case", |case| case.id.to_string())
        .numbers("before", "before", |case| Cell::number(was(case), Unit::Ns, Missing::NoBase))
        .numbers("session", "this session", |case| Cell::of(is(case), Unit::Ns))
        .numbers("change", "change", |case| {
            Cell::number(was(case).zip(is(case)).map(|(was, is)| is / was - 1.0), Unit::Change, Missing::NoBase)
        })
        .numbers("fails_from", "fails from", |case| {
            let from = limit(&days_ns(&after.sessions, case.id)).map(|limit| (limit.centre + limit.limit).exp());
            Cell::number(from, Unit::Ns, Missing::NotGiven)
        })
        .words("output", "output", |case| match exact(case) {
            Some((was, is)) if compare(&was.output, &is.output, tolerance).comparison == OutputComparison::Drifted => {
                Cell::text("drifts").toned(Tone::Warn)
            }
            found => same_or_not(found.map(|(was, is)| was.output == is.output)),
        })
        .words("counters", "counters", |case| same_or_not(exact(case).map(|(was, is)| was.counters == is.counters)))
        .table();
    text += &terminal::table(&table);
    let moves = |case: &&CaseRecord| {
        let (is, limit) = (is(case), limit(&past(case)));
        is.zip(limit).is_some_and(|(is, limit)| (is.ln() - limit.centre).abs() > limit.limit)
    };
    let stepped: Vec<String> = receipt.cases.iter().filter(moves).map(|case| case.id.to_string()).collect();
    let is_step = after.sessions.iter().any(|session| session.step && session.created == receipt.created);
    if !stepped.is_empty() && !is_step {
        let _ = writeln!(
            text,
            "\n{}: beyond what days differ by, which widens the limits; if a change did it, bless this receipt with --step",
            stepped.join(", ")
        );
    }
    text + &before.map_or_else(String::new, |before| model(before, after))
}

/// A line for each counter of the model that changes.
fn model(before: &Baseline, after: &Baseline) -> String {
    let weights = |baseline: &Baseline| {
        let bytes =
            baseline.engine.weight_bytes.map(|bytes| ("weight_bytes".to_owned(), Counter { min: bytes, max: bytes }));
        bytes.into_iter().chain(baseline.held.clone()).collect::<BTreeMap<String, Counter>>()
    };
    let (before, after) = (weights(before), weights(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let shown = |value: Option<&Counter>| value.map_or_else(|| "none".into(), |value| counter::value(Bytes, *value));
    let line = |name: &String| {
        format!("\nmodel, {}: {} -> {}\n", counter::name(name), shown(before.get(name)), shown(after.get(name)))
    };
    changed.map(line).collect()
}

/// Whether a baseline's reference stays the same; `None` where it is the first.
fn same_or_not(is_same: Option<bool>) -> Cell {
    match is_same {
        Some(true) => Cell::text("same"),
        Some(false) => Cell::text("changes").toned(Tone::Warn),
        None => Cell::text("new").toned(Tone::Dim),
    }
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
    let past = |level: &LoadSessionLevel| {
        let sessions = before.into_iter().flat_map(|before| &before.sessions);
        let known = sessions.flat_map(|session| &session.levels).filter(|known| known.key() == level.key());
        known.map(LoadSessionLevel::times_ns).collect::<Vec<_>>()
    };
    let levels = after.sessions.last().into_iter().flat_map(|session| &session.levels);
    let mut rows = Rows::of("load", "", levels).words("load", "load", |level| level.name());
    for (at, title) in ["TTFT P50", "ITL P50", "E2E P50", "system time per token"].into_iter().enumerate() {
        rows = rows.numbers("time", title, |level| {
            let Some(now) = level.times_ns()[at].1 else { return MISSING.into() };
            let was: Vec<f64> = past(level).iter().filter_map(|known| known[at].1).collect();
            let change = infergate_core::stats::median(&was).map(|was| units::change(now / was - 1.0));
            format!("{}{}", units::duration(now), change.map_or_else(String::new, |change| format!(", {change}")))
        });
    }
    let table = rows
        .numbers("failed", "failed", |level| format!("{} of {}", level.failed, level.issued))
        .numbers("wrong_length", "wrong length", |level| format!("{} of {}", level.wrong_length, level.issued))
        .table();
    text + &terminal::table(&table)
}
