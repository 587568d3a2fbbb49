//! A verdict on a load run: a line a time of each level, what else there is to say, and the decision last.

use crate::receipt::{Metric, Subject, TimeEvidence, Verdict, VerdictRow};
use crate::report::model::{Cell, Missing, Table, Tone, Unit};
use crate::report::topics::verdict::{change_heading, timed};
use crate::report::units;
use crate::report::{terminal, words};

pub fn text(verdict: &Verdict) -> String {
    let rows: Vec<(&VerdictRow, &TimeEvidence)> = timed(verdict);
    let change = change_heading(&rows);
    let headings = ["load", "time", "base", "head", &change, "fails above", "sessions", "days", "verdict"];
    let mut table = Table::brief(&headings);
    for (row, time) in rows {
        let limit = time.threshold.map(|ratio| ratio - 1.0);
        let count = |count: Option<usize>| Cell::number(count.map(|count| count as f64), Unit::Count, Missing::NoBase);
        table.row(vec![
            Cell::text(level_name(&row.subject)),
            Cell::text(time_name(time.metric)),
            value(time.metric, time.base_ns),
            value(time.metric, time.head_ns),
            Cell::text(words::change(time)),
            Cell::number(limit, Unit::Change, Missing::NoLimit).toned(Tone::Dim),
            count(time.sessions).toned(Tone::Dim),
            count(time.days).toned(Tone::Dim),
            Cell::text(words::ending(row)).toned(Tone::of(row.outcome)),
        ]);
    }
    format!("{}\n{}", terminal::paragraph(terminal::table(&table)), terminal::decision(verdict, ""))
}

/// A time, and the throughput that it is where it is one of all users.
pub fn value(metric: Metric, ns: Option<f64>) -> Cell {
    match (metric, ns) {
        (Metric::SystemTokenNs, Some(ns)) => {
            Cell::text(format!("{} ({})", units::duration(Some(ns)), units::tokens_per_s(Some(1e9 / ns))))
        }
        _ => Cell::number(ns, Unit::Ns, Missing::NotMeasured),
    }
}

/// The level without the word that says where its name comes from.
fn level_name(subject: &Subject) -> String {
    if let Subject::Named(name) = subject { name.name().to_owned() } else { subject.to_string() }
}

fn time_name(metric: Metric) -> String {
    let name = words::metric(metric);
    if metric == Metric::SystemTokenNs { name.into() } else { format!("{name} P50") }
}
