//! Words about the memory phase: what was looked at, how it moved, and what could have been seen.

use std::fmt::Write as _;

use crate::receipt::{MemoryEvidence, Outcome, Verdict, Witness};
use crate::report::units::{self, MISSING};

/// What a witness looks at, in a word.
pub fn witness(witness: Witness) -> &'static str {
    match witness {
        Witness::Heap => "heap",
        Witness::Resident => "resident",
    }
}

/// What the places of memory that outlives its run are called: a leak only where the verdict says so.
pub fn sites(verdict: Option<&Verdict>) -> &'static str {
    let mut rows = verdict.into_iter().flat_map(|verdict| &verdict.rows);
    let leaks = rows.any(|row| matches!(row.outcome, Outcome::Leak | Outcome::Growth));
    if leaks { "Where it leaks" } else { "What stays allocated" }
}

/// Slope, what counts, and what could have been seen.
pub fn memory_trend(memory: &MemoryEvidence) -> String {
    let slope =
        memory.slope_bytes.map_or_else(|| MISSING.into(), |slope| format!("{} a run", units::bytes(Some(slope))));
    let mut text = format!("slope {slope}");
    if let Some(floor) = memory.floor_bytes {
        let _ = write!(text, ", counts from {}", units::bytes(Some(floor)));
    }
    let _ = write!(text, ", the smallest leak to be seen {} a run", units::bytes(memory.smallest_leak_bytes));
    if let Some(interval) = memory.certain_leak_interval {
        let _ = write!(text, " if every run leaks; one in each k-th run is certain to be seen up to k = {interval}");
    }
    for (at, leak) in memory.random_leaks.iter().enumerate() {
        let found = units::percent(Some(leak.chance));
        let gap = if at == 0 { ", one in a random k-th with a chance of" } else { "," };
        let _ = write!(text, "{gap} {found} at k = {}", leak.interval);
    }
    if let Some(kept) = memory.kept_bytes {
        let _ = write!(text, ", {} were kept", units::bytes(Some(kept as f64)));
    }
    text
}
