//! Whether a side computes while the other one has its turn.
//!
//! Such a side slows both if they share cores, memory or a power limit: their ratio hardly shows it, and may even improve.

use super::sequential::fewest_to_pass;
use infergate_core::case::Phase;
use infergate_core::engine::Pacing;
use infergate_core::stats::median;
use infergate_receipts::{BlockRecord, Idle, Note, PairedCase, PairedReceipt, SideRecord};

/// The most cores that a side may use between its calls: for threads that wait a moment before they sleep, and to free memory.
const MOST_CORES: f64 = 0.1;

/// The invariant that head breaks if its engine computes more than base's between its calls, in every block. Streaming engines
/// are exempt, and benches, which may have threads and cannot declare them.
pub fn head_computes_between(receipt: &PairedReceipt) -> Option<String> {
    let is_streaming = |side: &SideRecord| side.engine.pacing == Pacing::Streaming;
    let is_bench = |case: &PairedCase| case.id.phase() == Phase::Bench;
    if is_streaming(&receipt.base) || is_streaming(&receipt.head) || receipt.cases.iter().any(is_bench) {
        return None;
    }
    let (base, head) = idle_percent_if_all(&receipt.blocks, |base, head| head - base > MOST_CORES)?;
    Some(format!(
        "head computes while base has its turn, and slows it down: between its calls it uses {head:.0} % of a core, base {base:.0} %; \
         let it rest between calls, or say Pacing::Streaming in Engine::info if it has to go on (docs/reference/engine.md)"
    ))
}

/// A note if a side computes between its calls in every block without breaking an invariant, as a streaming engine does.
pub fn computes_between(receipt: &PairedReceipt) -> Option<Note> {
    let (base, head) = idle_percent_if_all(&receipt.blocks, |base, head| base.max(head) > MOST_CORES)?;
    Some(Note::from(format!(
        "between its calls base uses {base:.0} % of a core and head {head:.0} %: each is measured next to the other's work"
    )))
}

/// The median use of base and of head between their calls, in % of a core, if `is_so` for the cores of each block. `None` if it
/// is not, if the use in a block is unknown, or for fewer blocks than any verdict takes.
fn idle_percent_if_all(blocks: &[BlockRecord], is_so: impl Fn(f64, f64) -> bool) -> Option<(f64, f64)> {
    let cores = |idle: Option<Idle>| idle?.cores();
    let both = |block: &BlockRecord| cores(block.base_idle).zip(cores(block.head_idle));
    let (base, head): (Vec<f64>, Vec<f64>) = blocks.iter().map(both).collect::<Option<_>>()?;
    if base.len() < fewest_to_pass() || !base.iter().zip(&head).all(|(base, head)| is_so(*base, *head)) {
        return None;
    }
    Some((median(&base)? * 100.0, median(&head)? * 100.0))
}
