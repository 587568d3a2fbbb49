//! What a running level looks like from outside: counts that its thread adds to and another one draws.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts of one level so far.
#[derive(Default)]
pub struct Live {
    issued: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    pieces: AtomicU64,
    /// What the server said of the level's first error, for the terminal alone: no file holds it.
    pub words: OnceLock<String>,
    /// The first target, by number, that refused a request before it completed one in the run, and why: it is asked wrongly.
    pub refused: OnceLock<(u32, String)>,
    /// The level ends once it is refused.
    pub until_refused: bool,
    cancelled: Arc<AtomicBool>,
}

/// A look at [`Live`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// Requests sent.
    pub issued: u64,
    /// Requests that ended, well or not.
    pub ended: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Pieces of output that came.
    pub pieces: u64,
}

impl Live {
    /// Counts of nothing yet; the level ends when `cancelled` is set.
    pub fn new(cancelled: Arc<AtomicBool>) -> Self {
        Self { cancelled, ..Self::default() }
    }

    /// How far it is.
    pub fn seen(&self) -> Seen {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Seen {
            issued: load(&self.issued),
            ended: load(&self.ended),
            failed: load(&self.failed),
            pieces: load(&self.pieces),
        }
    }

    /// One more was sent.
    pub fn sent(&self) {
        self.issued.fetch_add(1, Ordering::Relaxed);
    }

    /// One more ended.
    pub fn ended(&self, failed: bool) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
    }

    /// So many pieces came.
    pub fn pieces(&self, count: u64) {
        self.pieces.fetch_add(count, Ordering::Relaxed);
    }

    /// Whether the level was asked to end: what is in flight is given up then.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || (self.until_refused && self.refused.get().is_some())
    }
}
