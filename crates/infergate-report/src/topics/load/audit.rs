//! How accurate the client was, by a server that wrote down what it sent.

use crate::inputs::Inputs;
use crate::load::{View, load_cell};
use crate::model::{Cell, Column, Missing, Section, Table, Tone, Unit};
use infergate_receipts::{LevelRecord, LoadReceipt, ReceiveRecord};

const ABOUT: &str = "Before each load the client is driven against a server that wrote down when it sent each token.";
const ABOUT_RECEIVED: &str = "In the run itself the system noted when it received what the client read. From then to the client's stamp is the client's delay.";

/// A line a number of users or rate; nothing where no audit ran.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let of_shards = view.receipt.audits.iter().any(|audit| audit.shard.is_some());
    let shard = of_shards.then(|| Column::numbers("shard", "shard"));
    let own = vec![
        Column::numbers("requests", "requests").detail(),
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
    let columns = [view.load_column()].into_iter().chain(shard).chain(own).collect();
    let mut table = Table::new("audits", "Self-audit before the run", columns).on_terminal();
    for audit in &view.receipt.audits {
        let count = |count: u64| Cell::of(count as f64, Unit::Count);
        let tone = if audit.wrong_requests > 0 { Tone::Bad } else { Tone::Plain };
        let (stamp, gap) = (audit.stamp_error_ns, audit.gap_error_ns);
        let shard = audit.shard.map_or(Cell::Missing(Missing::NotGiven), |shard| count(u64::from(shard) + 1));
        let mut cells = vec![load_cell(&audit.arrivals)];
        cells.extend(of_shards.then_some(shard));
        cells.extend([count(audit.requests), count(audit.wrong_requests).toned(tone), count(audit.tokens)]);
        cells.extend([stamp.p50, stamp.p99, stamp.max, gap.p50, gap.p99, gap.max].map(ns));
        cells.push(Cell::number(audit.client_cpu_share, Unit::Fraction, Missing::SystemSilent));
        table.row(cells);
    }
    let received = received(view.receipt);
    let mut section = Section::new("load_audit", "The client's own accuracy");
    for (about, table) in [(ABOUT, table), (ABOUT_RECEIVED, received)] {
        if !table.rows.is_empty() {
            section = section.with([about]).with([table]);
        }
    }
    Some(section)
}

fn ns(value: Option<f64>) -> Cell {
    Cell::number(value, Unit::Ns, Missing::NotMeasured)
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
    let mut table = Table::new("received", "In the run, by when the system received", columns).on_terminal();
    for (name, received) in received_levels(receipt) {
        let delay = received.delay_ns;
        let mut cells = vec![Cell::foreign(&name), Cell::of(received.reads as f64, Unit::Count)];
        cells.extend([delay.p50, delay.p99, delay.max].map(ns));
        table.row(cells);
    }
    table
}

/// Levels with what the system says of when it received what the client read, named by their scenario and load.
fn received_levels(receipt: &LoadReceipt) -> impl Iterator<Item = (String, &ReceiveRecord)> {
    let name = |level: &LevelRecord| {
        let scenario = usize::try_from(level.scenario).ok().and_then(|index| receipt.scenarios.get(index));
        let load = level.arrivals.name();
        scenario.map_or_else(|| load.clone(), |scenario| format!("{}, {load}", scenario.name))
    };
    receipt.levels.iter().filter_map(move |level| Some((name(level), level.received.as_ref()?)))
}
