//! Whether a side computes while the other one has its turn.
//!
//! One that does slows both alike where they share cores, memory or a power limit: their ratio says little of it, and may even improve.

use super::looks::fewest_to_pass;
use infergate_core::case::Phase;
use infergate_core::engine::Pacing;
use infergate_core::stats::median;
use infergate_receipts::{BlockRecord, Idle, Note, PairedReceipt};

/// Cores that a side may use between its calls: threads that wait a moment before they sleep, memory that is given back.
const MOST_CORES: f64 = 0.1;

/// What base and head use between their calls, cores in each block. `None` where that is not known of all, or there are fewer than any
/// verdict takes.
fn cores(blocks: &[BlockRecord]) -> Option<Vec<(f64, f64)>> {
    let cores = |idle: Option<Idle>| idle?.cores();
    let both = |block: &BlockRecord| cores(block.base_idle).zip(cores(block.head_idle));
    let all: Vec<(f64, f64)> = blocks.iter().map(both).collect::<Option<_>>()?;
    (all.len() >= fewest_to_pass()).then_some(all)
}

fn is_streaming(receipt: &PairedReceipt) -> bool {
    [&receipt.base, &receipt.head].iter().any(|side| side.engine.pacing == Pacing::Streaming)
}

/// The invariant that head breaks, where its engine uses more than base's between its calls, in every block. A bench may have threads of
/// its own, and cannot say so.
pub fn head_computes_between(receipt: &PairedReceipt) -> Option<String> {
    if is_streaming(receipt) || receipt.cases.iter().any(|case| case.id.phase() == Phase::Bench) {
        return None;
    }
    let cores = cores(&receipt.blocks)?;
    if !cores.iter().all(|(base, head)| head - base > MOST_CORES) {
        return None;
    }
    let (base, head) = percent(&cores)?;
    Some(format!(
        "head computes while base has its turn, and slows it down: between its calls it uses {head:.0} % of a core, base {base:.0} %; \
         let it rest between calls, or say Pacing::Streaming in Engine::info if it has to go on (docs/reference/engine.md)"
    ))
}

/// What has to be known where a side computes between its calls in every block, and no invariant is broken by it: also of one that says so.
pub fn computes_between(receipt: &PairedReceipt) -> Option<Note> {
    let cores = cores(&receipt.blocks)?;
    if !cores.iter().all(|(base, head)| base.max(*head) > MOST_CORES) {
        return None;
    }
    let (base, head) = percent(&cores)?;
    Some(Note::from(format!(
        "between its calls base uses {base:.0} % of a core and head {head:.0} %: each is measured beside the other's work"
    )))
}

/// Of the middle block, in % of a core.
fn percent(cores: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (base, head): (Vec<f64>, Vec<f64>) = cores.iter().copied().unzip();
    Some((median(&base)? * 100.0, median(&head)? * 100.0))
}
