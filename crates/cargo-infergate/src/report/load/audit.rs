//! How accurate the client was.

use crate::load::judge::load;
use crate::receipt::AuditRecord;
use crate::report::table::{Style, Table};
use crate::report::units;

/// A table with a row for each number of users or rate; nothing without an audit.
pub fn text(audits: &[AuditRecord]) -> String {
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
