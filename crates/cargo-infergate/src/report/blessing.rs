//! What a blessing changes in a baseline.

use std::fmt::Write as _;
use std::path::Path;

use infergate::printable::printable;

use super::table::{Style, Table};
use super::units::{self, MISSING};
use crate::gate::summary_ns;
use crate::receipt::{Baseline, Receipt};

/// Outputs, counters and medians before and after, and the number of sessions.
pub fn changes(before: Option<&Baseline>, after: &Baseline, receipt: &Receipt, path: &Path) -> String {
    let sessions = |baseline: Option<&Baseline>| baseline.map_or(0, |baseline| baseline.sessions.len());
    let mut text = format!(
        "\n{}\nsessions: {} -> {}\n\n",
        printable(&path.display().to_string()),
        sessions(before),
        sessions(Some(after))
    );
    let mut table = Table::new(&["case", "median before", "this session", "change", "output", "counters"]);
    for case in &receipt.cases {
        let known = before.and_then(|before| before.exact.iter().find(|record| record.id == case.id));
        let past: Vec<f64> = before
            .iter()
            .flat_map(|before| &before.sessions)
            .flat_map(|session| session.cases.iter().filter(|known| known.id == case.id))
            .filter_map(|known| summary_ns(&known.processes))
            .collect();
        let (was, is) = (crate::stats::median(&past), summary_ns(&case.processes));
        let change = was.zip(is).map_or_else(|| MISSING.into(), |(was, is)| units::signed_percent(is / was - 1.0));
        let same = |equal: bool| if equal { ("same".into(), Style::Plain) } else { ("changes".into(), Style::Warn) };
        let new = || ("new".to_owned(), Style::Dim);
        table.row(vec![
            (case.id.to_string(), Style::Plain),
            (units::duration(was), Style::Plain),
            (units::duration(is), Style::Plain),
            (change, Style::Plain),
            known.map_or_else(new, |known| same(known.output.sha256 == case.output.sha256)),
            match known {
                Some(known) if !known.counters.is_empty() || case.counters.is_empty() => {
                    same(known.counters == case.counters)
                }
                _ => new(),
            },
        ]);
    }
    text += &table.render();
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
