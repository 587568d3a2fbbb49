//! What the demo found, for a person.

use super::table::{Style, Table};
use super::units::MISSING;
use crate::receipt::Demo;

/// The demo as text.
pub fn text(demo: &Demo) -> String {
    let mut table = Table::new(&["", "change", "the gate has to say", "it said"]).left_aligned();
    for change in &demo.changes {
        let (mark, style) = if change.is_right() { ("right", Style::Good) } else { ("wrong", Style::Bad) };
        table.row(vec![
            (mark.to_owned(), style),
            (change.change.to_owned(), Style::Plain),
            (change.expected.words().to_owned(), Style::Plain),
            (change.found.map_or(MISSING, |found| found.words()).to_owned(), Style::Plain),
        ]);
    }
    let right = demo.changes.iter().filter(|change| change.is_right()).count();
    format!("\n{}\n{right} of {} came out right\n", table.render(), demo.changes.len())
}
