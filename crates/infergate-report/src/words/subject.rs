//! What was measured, in one line.

use crate::units;
use infergate_core::engine::EngineInfo;
use infergate_receipts::{Machine, Receipt};

/// What was measured, on what.
pub fn subject(receipt: &Receipt) -> String {
    engine(&receipt.engine, receipt.threads, &receipt.machine)
}

/// The same of an engine.
pub fn engine(engine: &EngineInfo, threads: usize, machine: &Machine) -> String {
    if engine.is_of_benches() {
        return format!("benches of {}, {}", engine.model.replace(',', ", "), machine.class);
    }
    let EngineInfo { name, version, model, dtype, .. } = engine;
    // Programs of somebody's own compute in whatever they like.
    let dtype = if dtype == "none" { String::new() } else { format!(" ({dtype})") };
    let threads = units::many(threads, "thread");
    format!("{model}{dtype} on {name} {version}, {threads}, {}", machine.class)
}
