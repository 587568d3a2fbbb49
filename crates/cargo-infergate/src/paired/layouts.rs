//! Several builds of each side that do the same and are laid out differently: which of them a block starts.

use crate::receipt::{BlockLayouts, LayoutFiles, Side};
use infergate::worker::WorkerFile;

/// Builds of each side, all with what the pilot saw it say.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    /// Base's; never empty.
    pub base: Vec<WorkerFile>,
    /// Head's; never empty.
    pub head: Vec<WorkerFile>,
    /// The anchor's; empty where its one build is used.
    pub anchor: Vec<WorkerFile>,
}

impl Layouts {
    /// What the receipt keeps of them.
    pub fn record(&self) -> LayoutFiles {
        let hashes = |files: &[WorkerFile]| files.iter().map(|file| file.sha256().to_owned()).collect();
        LayoutFiles { base: hashes(&self.base), head: hashes(&self.head), anchor: hashes(&self.anchor) }
    }

    /// Which builds the block of this number (from 0) starts.
    pub fn of_block(&self, seed: u64, block: usize) -> BlockLayouts {
        let draw = |salt: u64, count: usize| draw(seed ^ salt, block, count);
        BlockLayouts {
            base: draw(Side::Base as u64 + 1, self.base.len()),
            head: draw(Side::Head as u64 + 1, self.head.len()),
            anchor: (!self.anchor.is_empty()).then(|| draw(3, self.anchor.len())),
        }
    }
}

/// One of `count`, without replacement until all were drawn. It rests on seed and block alone, never on what was measured, so
/// that a block stays as symmetric about the change as its noise is.
pub fn draw(seed: u64, block: usize, count: usize) -> usize {
    let count = count.max(1);
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut order: Vec<usize> = (0..count).collect();
    // All rounds come from one stream: orders by neighbouring seeds would resemble each other.
    (0..=block / count).for_each(|_| random.shuffle(&mut order));
    order[block % count]
}
