//! Builds of both sides that are laid out alike: which of them a block starts.

use anyhow::Result;

use super::PairedRun;
use infergate_build::sources::Alike;
use infergate_core::clock::Clock;
use infergate_judge::paired::fewest_to_pass;
use infergate_receipts::AlikeRecord;

/// If a pair loads slower than this (ns), a block times one placement, not all.
const QUICK_TO_LOAD_NS: u64 = 1_000_000_000;

impl PairedRun<'_> {
    /// Replaces the builds by relinked ones, if there are any. Linking does not count against the budget.
    ///
    /// # Errors
    /// Those of `link`.
    pub fn lay_out(&mut self, link: impl FnOnce() -> Result<Option<Alike>>) -> Result<()> {
        let begun_ns = self.clock.now_ns();
        let alike = link()?;
        self.unbudgeted_ns += self.clock.now_ns() - begun_ns;
        if let Some(Alike { programs, start_files, same, functions }) = alike {
            self.receipt.alike = Some(AlikeRecord { same, functions });
            (self.builds, self.start_files) = (programs, Some(start_files));
            let (one_ns, timed, count) = (self.block_ns, self.timed(), self.builds.len());
            let more_ns = self.pairs.block_ns(&timed, count) - self.pairs.block_ns(&timed, 1);
            self.block_ns += (count as u64 - 1) * self.starts_ns + more_ns as u64;
            let fits = self.blocks_in_budget().is_none_or(|blocks| blocks >= fewest_to_pass());
            self.starts_all_placements = self.starts_ns < QUICK_TO_LOAD_NS && fits;
            if !self.starts_all_placements {
                self.block_ns = one_ns;
            }
        }
        Ok(())
    }

    /// The builds that the block of this number (from 0) starts, one pair of processes after the other:
    /// - all placements if processes load quickly and the budget has time for enough such blocks;
    /// - else one placement, drawn without replacement until all were timed;
    /// - one pair of several pairs of servers, in turn.
    pub(super) fn builds_of(&self, block: usize) -> Vec<usize> {
        let count = self.builds.len();
        if self.receipt.alike.is_none() {
            vec![block % count]
        } else if self.starts_all_placements {
            // Each block begins with another one.
            (0..count).map(|at| (at + block) % count).collect()
        } else {
            vec![draw(self.receipt.seed, block, count)]
        }
    }
}

/// One of `count`, without replacement until all were drawn. It rests on seed and block alone, never on what was measured, so
/// that a block stays as symmetric about the change as its noise is.
fn draw(seed: u64, block: usize, count: usize) -> usize {
    let count = count.max(1);
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut order: Vec<usize> = (0..count).collect();
    // All rounds come from one stream: orders by neighbouring seeds would resemble each other.
    (0..=block / count).for_each(|_| random.shuffle(&mut order));
    order[block % count]
}
