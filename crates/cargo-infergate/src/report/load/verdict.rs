//! A verdict on a load run: a line a time of each level, what else there is to say, and the decision last.

use crate::receipt::{Metric, Subject, TimeEvidence, Verdict, VerdictRow};
use crate::report::table::{Style, Table};
use crate::report::units::{self, MISSING};
use crate::report::{terminal, words};

/// The verdict as text.
pub fn text(verdict: &Verdict) -> String {
    let rows: Vec<(&VerdictRow, &TimeEvidence)> =
        verdict.rows.iter().filter_map(|row| Some((row, row.time()?))).collect();
    if rows.is_empty() {
        return format!("\n{}", terminal::decision(verdict, ""));
    }
    // Every row of a run has the same level.
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::level(interval.level));
    let change = level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"));
    let mut table =
        Table::new(&["load", "time", "base", "head", change.as_str(), "fails above", "sessions", "days", "verdict"]);
    for (row, time) in rows {
        let limit = time.threshold.map_or_else(|| MISSING.into(), |ratio| units::signed_percent(ratio - 1.0));
        let count = |count: Option<usize>| count.map_or_else(|| MISSING.into(), |count| count.to_string());
        table.row(vec![
            (level_name(&row.subject), Style::Plain),
            (time_name(time.metric), Style::Plain),
            (value(time.metric, time.base_ns), Style::Plain),
            (value(time.metric, time.head_ns), Style::Plain),
            (words::change(time), Style::Plain),
            (limit, Style::Dim),
            (count(time.sessions), Style::Dim),
            (count(time.days), Style::Dim),
            (words::ending(row), terminal::style(row.outcome)),
        ]);
    }
    format!("\n{}\n{}", table.render(), terminal::decision(verdict, ""))
}

/// A time, and the throughput that it is where it is one of all users.
pub fn value(metric: Metric, ns: Option<f64>) -> String {
    let time = units::duration(ns);
    match (metric, ns) {
        (Metric::SystemToken, Some(ns)) => format!("{time} ({})", units::tokens_per_s(Some(1e9 / ns))),
        _ => time,
    }
}

/// The level without the word that says where its name comes from.
fn level_name(subject: &Subject) -> String {
    if let Subject::Named(name) = subject { name.name().to_owned() } else { subject.to_string() }
}

fn time_name(metric: Metric) -> String {
    let name = metric.short();
    if metric == Metric::SystemToken { name.into() } else { format!("{name} P50") }
}
