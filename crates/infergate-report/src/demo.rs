//! What the demo found, for a person.

use super::model::{Cell, Rows, Tone};
use super::terminal;
use super::units::MISSING;
use infergate_receipts::Demo;

pub fn text(demo: &Demo) -> String {
    let table = Rows::of("demo", "", &demo.changes)
        .words("is_right", "", |change| {
            let (mark, tone) = if change.is_right() { ("right", Tone::Good) } else { ("wrong", Tone::Bad) };
            Cell::text(mark).toned(tone)
        })
        .words("change", "change", |change| change.change)
        .words("expected", "the gate has to say", |change| change.expected.words())
        .words("found", "it said", |change| change.found.map_or(MISSING, |found| found.words()))
        .table();
    let right = demo.changes.iter().filter(|change| change.is_right()).count();
    format!("\n{}\n{right} of {} came out right\n", terminal::table(&table), demo.changes.len())
}
