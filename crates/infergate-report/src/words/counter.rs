//! Exact counters, as people say them.

use crate::units;
use infergate_receipts::{CounterEvidence, Unit};

/// `allocations per token`.
pub fn name(name: &str) -> String {
    name.replace('_', " ")
}

fn size(unit: Unit, count: u64) -> String {
    match unit {
        Unit::Bytes => units::bytes(count as f64),
        Unit::Number => count.to_string(),
    }
}

/// The ends that lie nearest each other where head is above all that base had, or below all of it.
pub fn apart(counter: &CounterEvidence) -> Option<(u64, u64)> {
    let (base, head) = counter.base.zip(counter.head)?;
    let least = counter.least_of_head()?;
    match (least > base.max, head.max < base.min) {
        (true, _) => Some((base.max, least)),
        (_, true) => Some((base.min, head.max)),
        _ => None,
    }
}

/// `allocations per token +24 (682 → 706)`. `None` where nothing moved.
pub fn moved(counter: &CounterEvidence) -> Option<String> {
    let (from, to) = apart(counter)?;
    let size = |count| size(counter.unit, count);
    let by = size(to.abs_diff(from));
    let sign = if to > from { '+' } else { '-' };
    let when = if counter.head_twice.is_some() { " in some runs" } else { "" };
    let range = units::base_to_head(size, from, to);
    let range = if size(from) == range { String::new() } else { format!(" ({range})") };
    Some(format!("{} {sign}{by}{when}{range}", name(&counter.name)))
}
