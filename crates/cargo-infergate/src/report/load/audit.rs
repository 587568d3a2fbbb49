//! How accurate the client was.

use infergate_core::printable::printable;

use crate::load::judge::load;
use crate::receipt::{AuditRecord, LevelRecord, LoadReceipt, ReceiveRecord};
use crate::report::table::{Style, Table};
use crate::report::units;

/// The self-audits, and what the system says of the run itself; nothing of what was not measured.
pub fn text(receipt: &LoadReceipt) -> String {
    audited(&receipt.audits) + &received(receipt)
}

/// Levels with what the system says of when it received what the client read, named by their scenario and load.
pub fn received_levels(receipt: &LoadReceipt) -> impl Iterator<Item = (String, &ReceiveRecord)> {
    let name = |level: &LevelRecord| {
        let scenario = usize::try_from(level.scenario).ok().and_then(|index| receipt.scenarios.get(index));
        let load = load(&level.arrivals);
        scenario.map_or_else(|| load.clone(), |scenario| format!("{}, {load}", printable(&scenario.name)))
    };
    receipt.levels.iter().filter_map(move |level| Some((name(level), level.received.as_ref()?)))
}

fn received(receipt: &LoadReceipt) -> String {
    let mut table = Table::new(&["received by the system", "reads", "seen late P50", "P99", "max"]);
    let mut is_empty = true;
    for (name, received) in received_levels(receipt) {
        is_empty = false;
        let delay = received.delay_ns;
        let mut cells = vec![name, received.reads.to_string()];
        cells.extend([delay.p50, delay.p99, delay.max].map(units::duration));
        table.row(cells.into_iter().map(|cell| (cell, Style::Plain)).collect());
    }
    if is_empty { String::new() } else { format!("\n{}", table.render()) }
}

/// A table with a row for each number of users or rate; nothing without an audit.
fn audited(audits: &[AuditRecord]) -> String {
    if audits.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "self-audit",
        "tokens",
        "stamp late P50",
        "P99",
        "max",
        "gap off P50",
        "P99",
        "max",
        "client CPU",
    ]);
    for audit in audits {
        let (stamp, gap) = (audit.stamp_error_ns, audit.gap_error_ns);
        let name = load(&audit.arrivals);
        let name = audit.shard.map_or_else(|| name.clone(), |shard| format!("{name}, shard {shard}"));
        let mut cells = vec![name, audit.tokens.to_string()];
        cells.extend([stamp.p50, stamp.p99, stamp.max, gap.p50, gap.p99, gap.max].map(units::duration));
        cells.push(units::percent(audit.client_cpu_share));
        table.row(cells.into_iter().map(|cell| (cell, Style::Plain)).collect());
    }
    format!("\n{}", table.render())
}
