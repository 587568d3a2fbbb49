//! What the demo found, for a person.

use super::model::{Cell, Table, Tone};
use super::terminal;
use super::units::MISSING;
use infergate_receipts::Demo;

pub fn text(demo: &Demo) -> String {
    let mut table = Table::brief(&["", "change", "the gate has to say", "it said"]).left_aligned();
    for change in &demo.changes {
        let (mark, tone) = if change.is_right() { ("right", Tone::Good) } else { ("wrong", Tone::Bad) };
        table.row(vec![
            Cell::text(mark).toned(tone),
            Cell::text(change.change),
            Cell::text(change.expected.words()),
            Cell::text(change.found.map_or(MISSING, |found| found.words())),
        ]);
    }
    let right = demo.changes.iter().filter(|change| change.is_right()).count();
    format!("\n{}\n{right} of {} came out right\n", terminal::table(&table), demo.changes.len())
}
