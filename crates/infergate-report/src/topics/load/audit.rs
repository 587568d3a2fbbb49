//! How accurate the client was, by a server that wrote down what it sent.

use crate::load::View;
use crate::model::{Cell, Missing, Rows, Section, Table, Tone, Unit};

const ABOUT: &str = "Before each load the client is driven against a server that wrote down when it sent each token.";
const ABOUT_RECEIVED: &str = "The client's delay in the run: from the system's receipt of data to the client's stamp.";

/// Two tables, each where there is something in it.
pub fn topic(view: &View) -> Option<Section> {
    let mut section = Section::new("load_audit", "The client's own accuracy");
    for (about, table) in [(ABOUT, audits(view)), (ABOUT_RECEIVED, received(view))] {
        if !table.rows.is_empty() {
            section = section.with([about]).with([table.on_terminal()]);
        }
    }
    Some(section)
}

fn ns(value: Option<f64>) -> Cell {
    Cell::of(value, Unit::Ns)
}

/// A line a number of users or rate, and a shard.
fn audits(view: &View) -> Table {
    let audits = &view.receipt.audits;
    let has_shards = audits.iter().any(|audit| audit.shard.is_some());
    view.loads_of(Rows::of("audits", "Self-audit before the run", audits), |audit| audit.arrivals)
        .with_if(has_shards, |rows| {
            rows.numbers("shard", |audit| Cell::known(audit.shard.map(|shard| shard + 1), Unit::Count))
        })
        .numbers("requests", |audit| audit.requests)
        .detail()
        .numbers("wrong", |audit| Cell::count(audit.wrong_requests).toned(Tone::bad_if(audit.wrong_requests > 0)))
        .about("failed, or with other tokens than the server wrote")
        .numbers("tokens", |audit| audit.tokens)
        .titled_numbers("stamp_p50", "stamp late P50", |audit| ns(audit.stamp_error_ns.p50))
        .about("the client's stamp of a token less the server's")
        .titled_numbers("stamp_p99", "P99", |audit| ns(audit.stamp_error_ns.p99))
        .titled_numbers("stamp_max", "max", |audit| ns(audit.stamp_error_ns.max))
        .titled_numbers("gap_p50", "gap off P50", |audit| ns(audit.gap_error_ns.p50))
        .about("the client's gap less the server's, without its sign")
        .titled_numbers("gap_p99", "P99", |audit| ns(audit.gap_error_ns.p99))
        .titled_numbers("gap_max", "max", |audit| ns(audit.gap_error_ns.max))
        .titled_numbers("cpu", "client's core", |audit| {
            Cell::number(audit.client_cpu_share, Unit::Fraction, Missing::SystemSilent)
        })
        .about("processor time of the client / time")
        .table()
}

/// A line a level; none where the system noted nothing.
fn received(view: &View) -> Table {
    let levels =
        view.receipt.levels.iter().filter_map(|level| Some((view.receipt.level_name(level), level.received.as_ref()?)));
    Rows::of("received", "In the run, by when the system received", levels)
        .words("level", |(name, _)| Cell::foreign(name))
        .numbers("reads", |(_, received)| received.reads)
        .titled_numbers("late_p50", "seen late P50", |(_, received)| ns(received.delay_ns.p50))
        .about("the client's stamp of a read less the system's receipt of it")
        .titled_numbers("late_p99", "P99", |(_, received)| ns(received.delay_ns.p99))
        .titled_numbers("late_max", "max", |(_, received)| ns(received.delay_ns.max))
        .table()
}
