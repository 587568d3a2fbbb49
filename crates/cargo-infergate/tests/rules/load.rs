//! Load on a server, by scripted servers in memory and on loopback. Time is tokio's own and paused wherever it matters.

mod audit;
mod client;
mod command;
mod dialects;
mod events;
mod faults;
#[cfg(target_os = "linux")]
mod kernel_time;
mod merge;
mod merge_command;
mod ramp;
mod receipt;
mod runner;
mod scenario;
mod script;
mod shard;
mod slo;
mod steady;
mod stream;
mod summary;
mod targets;
mod token_counts;
mod url;
mod wires;

use infergate_receipts::LoadReceipt;
use infergate_report::inputs::Inputs;

/// As a terminal shows it.
fn text(receipt: &LoadReceipt) -> String {
    infergate_report::terminal::report(&Inputs { load: Some(receipt.clone().into()), ..Inputs::default() })
}
