//! What the hardware cannot avoid of a level on a local engine: the roofline, step by step. Pure.

use std::collections::BTreeMap;

use infergate_core::engine::Cost;
use infergate_core::receipt::Probes;

use super::steady_window;
use crate::receipt::LevelRecord;

/// The parts of a level's steady window that its steps need at the least. A step that reads for longer than it computes counts as
/// memory, any other as compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline {
    /// Reading weights, keys and values.
    pub memory: f64,
    /// Arithmetic.
    pub compute: f64,
}

/// By the engine's own cost of each step and what the probes saw of the hardware. `None` where there was no full load, and where the
/// steps need more than all of the time: then the probes saw less than the hardware gives.
pub fn roofline(level: &LevelRecord, cost: &Cost, probes: &Probes) -> Option<Roofline> {
    let window = steady_window(level)?;
    // Tokens of one step have one time.
    let mut steps: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for record in &level.requests {
        let prompt_tokens = record.input_tokens? as usize;
        for (given, end_ns) in record.chunk_ns.iter().enumerate() {
            let (bytes, flops) = steps.entry(*end_ns).or_insert((cost.decode_bytes_fixed, 0.0));
            // The first token comes of the prompt.
            let context_tokens = prompt_tokens + given.saturating_sub(1);
            *bytes += cost.decode_bytes_per_context_token * context_tokens as f64;
            *flops += match given {
                0 => cost.prefill_flops(prompt_tokens),
                _ => cost.decode_flops(context_tokens),
            };
        }
    }
    let (mut memory_s, mut compute_s) = (0.0, 0.0);
    for (bytes, flops) in steps.range(window.from_ns + 1..=window.to_ns).map(|(_, needs)| *needs) {
        let (reading_s, computing_s) = (bytes / probes.memory_read_bytes_per_s, flops / probes.fma_flops_per_s);
        if reading_s > computing_s {
            memory_s += reading_s;
        } else {
            compute_s += computing_s;
        }
    }
    let window_s = (window.to_ns - window.from_ns) as f64 / 1e9;
    let (memory, compute) = (memory_s / window_s, compute_s / window_s);
    (memory + compute <= 1.0).then_some(Roofline { memory, compute })
}
