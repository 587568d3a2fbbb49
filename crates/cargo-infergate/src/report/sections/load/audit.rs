//! How accurate the client was, by a server that wrote down what it sent.

use crate::receipt::LoadReceipt;
use crate::report::inputs::Inputs;
use crate::report::load::audit::received_levels;
use crate::report::load::view::{View, load_cell};
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line a number of users or rate; nothing where no audit ran.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let columns = vec![
        view.load_column(),
        Column::numbers("requests", "requests"),
        Column::numbers("wrong", "wrong").about("failed, or with other tokens than the server wrote"),
        Column::numbers("tokens", "tokens"),
        Column::numbers("stamp_p50", "stamp late P50").about("the client's stamp of a token less the server's"),
        Column::numbers("stamp_p99", "P99"),
        Column::numbers("stamp_max", "max"),
        Column::numbers("gap_p50", "gap off P50").about("the client's gap less the server's, without its sign"),
        Column::numbers("gap_p99", "P99"),
        Column::numbers("gap_max", "max"),
        Column::numbers("cpu", "client's core").about("processor time of the client / time"),
    ];
    let mut table = Table::new("audits", "", columns);
    for audit in &view.receipt.audits {
        let count = |count: u64| Cell::number(Some(count as f64), Unit::Count, Missing::NotMeasured);
        let tone = if audit.wrong_requests > 0 { Tone::Bad } else { Tone::Plain };
        let ns = |value: Option<f64>| Cell::number(value, Unit::Ns, Missing::NotMeasured);
        let mut cells = vec![
            load_cell(&audit.arrivals),
            count(audit.requests),
            count(audit.wrong_requests).toned(tone),
            count(audit.tokens),
        ];
        for error in [audit.stamp_error_ns, audit.gap_error_ns] {
            cells.extend([error.p50, error.p99, error.max].map(ns));
        }
        cells.push(Cell::number(audit.client_cpu_share, Unit::Fraction, Missing::SystemSilent));
        table.row(cells);
    }
    let received = received(view.receipt);
    if table.rows.is_empty() && received.rows.is_empty() {
        return None;
    }
    let mut section = Section::new("load_audit", "The client's own accuracy");
    if !table.rows.is_empty() {
        section = section.with(Block::Said(words::ABOUT_AUDIT.into())).with(table);
    }
    if !received.rows.is_empty() {
        section = section.with(Block::Said(words::ABOUT_RECEIVED.into())).with(received);
    }
    Some(section)
}

/// A line a level; none where the system said nothing.
fn received(receipt: &LoadReceipt) -> Table {
    let columns = vec![
        Column::words("level", "level"),
        Column::numbers("reads", "reads"),
        Column::numbers("late_p50", "seen late P50")
            .about("the client's stamp of a read less the system's receipt of it"),
        Column::numbers("late_p99", "P99"),
        Column::numbers("late_max", "max"),
    ];
    let mut table = Table::new("received", "", columns);
    for (name, received) in received_levels(receipt) {
        let ns = |value: Option<f64>| Cell::number(value, Unit::Ns, Missing::NotMeasured);
        let delay = received.delay_ns;
        let reads = Cell::number(Some(received.reads as f64), Unit::Count, Missing::NotMeasured);
        let mut cells = vec![Cell::foreign(&name), reads];
        cells.extend([delay.p50, delay.p99, delay.max].map(ns));
        table.row(cells);
    }
    table
}
