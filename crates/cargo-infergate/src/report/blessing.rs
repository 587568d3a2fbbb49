//! What a blessing changes in a baseline.

use std::fmt::Write as _;
use std::path::Path;

use infergate_core::printable::printable;

use super::model::{Cell, Missing, Table, Tone, Unit};
use super::topics::verdict::value;
use super::{terminal, units};
use crate::gate::{newest_of_each_day, summary_ns};
use crate::receipt::{Baseline, LoadBaseline, LoadSessionLevel, Receipt};

/// Outputs, counters and medians before and after, and the number of sessions.
pub fn changes(before: Option<&Baseline>, after: &Baseline, receipt: &Receipt, path: &Path) -> String {
    let created: Vec<&str> = after.sessions.iter().map(|session| session.created.as_str()).collect();
    let mut text = heading(path, before.map_or(0, |before| before.sessions.len()), &created);
    let mut table = Table::brief(&["case", "median before", "this session", "change", "output", "counters"]);
    for case in &receipt.cases {
        let known = before.and_then(|before| before.exact.iter().find(|record| record.id == case.id));
        let past: Vec<f64> = before
            .iter()
            .flat_map(|before| &before.sessions)
            .flat_map(|session| session.cases.iter().filter(|known| known.id == case.id))
            .filter_map(|known| summary_ns(&known.processes))
            .collect();
        let (was, is) = (infergate_core::stats::median(&past), summary_ns(&case.processes));
        let change = was.zip(is).map(|(was, is)| is / was - 1.0);
        let same = |equal| if equal { Cell::text("same") } else { Cell::text("changes").toned(Tone::Warn) };
        let new = || Cell::text("new").toned(Tone::Dim);
        table.row(vec![
            Cell::text(case.id.to_string()),
            Cell::number(was, Unit::Ns, Missing::NoBase),
            Cell::number(is, Unit::Ns, Missing::NotMeasured),
            terminal::change(change),
            known.map_or_else(new, |known| same(known.output.sha256 == case.output.sha256)),
            match known {
                Some(known) if !known.counters.is_empty() || case.counters.is_empty() => {
                    same(known.counters == case.counters)
                }
                _ => new(),
            },
        ]);
    }
    text += &terminal::table(&table);
    if let Some(build) = before.and_then(|before| before.sessions.last()).map(|session| &session.build) {
        for (what, was, is) in
            [("rustc", &build.rustc, &receipt.build.rustc), ("flags", &build.flags, &receipt.build.flags)]
        {
            if was != is {
                let _ = writeln!(text, "\n{what} changes: {} -> {}", printable(was), printable(is));
            }
        }
    }
    text
}

/// `created` are the times of the sessions there are now.
fn heading(path: &Path, before: usize, created: &[&str]) -> String {
    let (path, after) = (printable(&path.display().to_string()).into_owned(), created.len());
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
            cells.push(Cell::text(value(metric, now).shown() + &change));
        }
        let of_all = |count| Cell::text(format!("{count} of {}", level.issued));
        cells.extend([level.failed, level.wrong_length].map(of_all));
        table.row(cells);
    }
    text + &terminal::table(&table)
}
