//! Several builds of each side that do the same and are laid out differently: which of them a block starts.

use anyhow::Result;

use super::PairedRun;
use crate::receipt::{BlockLayouts, LayoutFiles, PairedReceipt, Side};
use infergate_core::clock::Clock;
use infergate_core::worker::WorkerFile;

/// Builds of each side, all with what the pilot saw it say.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    /// Base's; never empty.
    pub base: Vec<WorkerFile>,
    /// Head's; never empty.
    pub head: Vec<WorkerFile>,
}

impl Layouts {
    /// What the receipt keeps of them.
    pub fn record(&self) -> LayoutFiles {
        let hashes = |files: &[WorkerFile]| files.iter().map(|file| file.sha256().to_owned()).collect();
        LayoutFiles { base: hashes(&self.base), head: hashes(&self.head), fewest: None }
    }

    /// The build of a side that was drawn.
    pub(super) fn file(&self, side: Side, drawn: BlockLayouts) -> Option<&WorkerFile> {
        match side {
            Side::Base => self.base.get(drawn.base),
            Side::Head => self.head.get(drawn.head),
        }
    }

    /// Which builds the block of this number (from 0) starts.
    pub fn of_block(&self, seed: u64, block: usize) -> BlockLayouts {
        let draw = |salt: u64, count: usize| draw(seed ^ salt, block, count);
        BlockLayouts {
            base: draw(Side::Base as u64 + 1, self.base.len()),
            head: draw(Side::Head as u64 + 1, self.head.len()),
        }
    }
}

impl PairedRun<'_> {
    /// From the next block on each starts one of these builds of each side, or again those that the pilot saw. What
    /// `link` takes is no part of the time to measure in.
    pub fn lay_out(&mut self, link: impl FnOnce(&PairedReceipt) -> Result<Option<Layouts>>) -> Result<()> {
        let begun_ns = self.clock.now_ns();
        self.layouts = link(&self.receipt)?;
        self.receipt.layouts = self.layouts.as_ref().map(Layouts::record);
        if let Some(layouts) = &self.layouts {
            // The rest is in the blocks' own noise.
            let left = (layouts.base.len() as f64).sqrt();
            let cases = self.receipt.cases.iter_mut();
            cases.for_each(|case| case.layout_std = case.layout_std.map(|std| std / left));
        }
        self.start_ns += self.clock.now_ns() - begun_ns;
        Ok(())
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
