//! Exact counters, as people say them.

use crate::units;
use infergate_receipts::{Counter, CounterEvidence, Unit};

/// A counter's name where its numbers stand beside it: `allocations a token`, `allocated a token` of bytes. `None` for one that an
/// engine counts itself.
pub fn known(name: &str) -> Option<&'static str> {
    Some(match name {
        "allocations_per_token" => "allocations a token",
        "allocations_per_generation" => "allocations a generation",
        "allocations_per_prefill" => "allocations a prefill",
        "allocations_per_iteration" => "allocations an iteration",
        "allocated_bytes_per_iteration" => "allocated an iteration",
        "allocated_bytes_per_token" => "allocated a token",
        "allocated_bytes_per_prefill" => "allocated a prefill",
        "peak_live_bytes" => "live at the peak",
        "end_live_bytes" => "live at the end",
        "weight_bytes" => "weights",
        "context_tokens" => "tokens of context",
        "vocab_tokens" => "tokens of vocabulary",
        "live_bytes_loaded" => "live once loaded",
        "peak_live_bytes_loading" => "live at the peak of loading",
        "live_bytes_at_rest" => "live at rest",
        "anonymous_bytes_loaded" => "anonymous memory once loaded",
        "anonymous_bytes_at_rest" => "anonymous memory at rest",
        "peak_resident_bytes" => "resident at the peak",
        "failed_requests" => "failed requests",
        "starved_requests" => "starved requests",
        "changed_answers" => "answers unlike alone",
        "answer_bytes" => "text of answers",
        "wrong_length_requests" => "answers of a wrong length",
        _ => return None,
    })
}

pub fn name(name: &str) -> String {
    known(name).map_or_else(|| name.replace('_', " "), str::to_owned)
}

pub fn size(unit: Unit, count: u64) -> String {
    match unit {
        Unit::Bytes => units::bytes(Some(count as f64)),
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

/// `allocations a token +24 (682 to 706)`. `None` where nothing moved.
pub fn moved(counter: &CounterEvidence) -> Option<String> {
    let (from, to) = apart(counter)?;
    let by = size(counter.unit, to.abs_diff(from));
    let sign = if to > from { '+' } else { '-' };
    let when = if counter.head_twice.is_some() { " in some runs" } else { "" };
    let (from, to) = (size(counter.unit, from), size(counter.unit, to));
    let range = if from == to { String::new() } else { format!(" ({})", units::from_to(&from, &to)) };
    Some(format!("{} {sign}{by}{when}{range}", name(&counter.name)))
}

/// As a person reads a counter that may not repeat.
pub fn value(unit: Unit, counter: Counter) -> String {
    let (min, max) = (size(unit, counter.min), size(unit, counter.max));
    if min == max { max } else { units::from_to(&min, &max) }
}
