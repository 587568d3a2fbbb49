//! How a model of ours computes on several threads: a [`Team`] of ranks that each run the whole pass on their own shard of
//! the weights and meet where partial results must be exchanged (tensor parallelism, Shoeybi et al. 2019).
//!
//! candle splits matrix products over threads but runs most other operations, and the matrix-vector products of decoding, on
//! one. With a shard for every thread each operation runs on all of them, and a pass needs two meetings a layer.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::{Context, Result};
use candle_core::Tensor;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::heap::ALLOCATOR;

/// Turns of a waiting rank before it offers its core to others. Ranks are not tied to cores: beside another program a tied one
/// would wait for its core while another is idle. So what one thread does alone costs more than itself now and then, when the
/// ranks that it wakes start on one core: 10 % injected measured 8 to 16 %, with tied ranks 9.4 to 11.3.
const SPINS: usize = 2_000;

/// Environment variables for a process whose models compute on candle's own thread pools, with `threads` threads.
pub fn environment(threads: usize) -> Vec<(String, String)> {
    // candle's second pool spins between operations beside rayon's threads; more spinning only takes their cores.
    variables(&[("RAYON_NUM_THREADS", &threads.to_string()), ("CANDLE_BARRIER_POOL_SPIN_LIMIT", "200")])
}

/// Environment variables for a process whose model computes in a [`Team`]: candle must not split an operation once more.
pub fn environment_for_team() -> Vec<(String, String)> {
    variables(&[("RAYON_NUM_THREADS", "1"), ("CANDLE_NUM_THREADS", "1")])
}

fn variables(threads: &[(&str, &str)]) -> Vec<(String, String)> {
    threads
        .iter()
        .chain([&("GLIBC_TUNABLES", ALLOCATOR)])
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Threads that compute one pass together, a rank each.
pub struct Team {
    /// One pool of one thread a rank: what candle hands to rayon from there stays on the rank's own thread.
    pools: Vec<ThreadPool>,
    /// Two passes at once would wait for each other's ranks for ever. Sequences that are to run at the same time go through
    /// one pass together ([`Gpt2Scheduler`](crate::gpt2::Gpt2Scheduler)); forks on several threads take turns here.
    turn: Mutex<()>,
}

impl Team {
    /// Starts `ranks` threads.
    ///
    /// # Errors
    /// When the operating system gives no more threads.
    pub fn new(ranks: usize) -> Result<Self> {
        let pool = |rank| {
            let name = move |_| format!("rank-{rank}");
            ThreadPoolBuilder::new()
                .num_threads(1)
                .thread_name(name)
                .build()
                .context("cannot start a thread to compute on")
        };
        Ok(Self { pools: (0..ranks).map(pool).collect::<Result<_>>()?, turn: Mutex::new(()) })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.pools.len()
    }

    /// Runs `pass` once on every rank, at the same time; gives the results in the order of the ranks.
    ///
    /// # Errors
    /// The first error of a rank. The others then fail at their next meeting instead of waiting for it.
    pub fn run<T: Send + Sync>(&self, pass: impl Fn(&mut Member) -> candle_core::Result<T> + Sync) -> Result<Vec<T>> {
        let _turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let meeting = Meeting::new(self.ranks());
        let results: Vec<OnceLock<T>> = self.pools.iter().map(|_| OnceLock::new()).collect();
        let first_error = OnceLock::new();
        self.spread(0, &|rank| {
            let mut member = Member { rank, round: 0, meeting: &meeting };
            match pass(&mut member) {
                Ok(value) => drop(results[rank].set(value)),
                Err(error) => {
                    // Before the others hear of it and give up: their errors say less.
                    let _ = first_error.set(error);
                    meeting.failed.store(true, Ordering::Release);
                }
            }
        });
        if let Some(error) = first_error.into_inner() {
            return Err(error.into());
        }
        let values: Option<Vec<T>> = results.into_iter().map(OnceLock::into_inner).collect();
        values.context("a computing thread stopped without a result")
    }

    /// Starts `work` on the ranks from `rank` on and returns when all are through.
    fn spread(&self, rank: usize, work: &(impl Fn(usize) + Sync)) {
        if let Some(pool) = self.pools.get(rank) {
            pool.in_place_scope(|scope| {
                scope.spawn(move |_| work(rank));
                self.spread(rank + 1, work);
            });
        }
    }
}

/// Where the ranks of one pass exchange tensors.
struct Meeting {
    /// Arrivals since the pass began; round `r` is complete at `(r + 1) * ranks`.
    arrived: AtomicUsize,
    failed: AtomicBool,
    /// What each rank brought, for even and odd rounds: nobody can be two rounds ahead of a rank that still reads.
    tables: [Vec<Mutex<Option<Tensor>>>; 2],
}

impl Meeting {
    fn new(ranks: usize) -> Self {
        let table = || (0..ranks).map(|_| Mutex::new(None)).collect();
        Self { arrived: AtomicUsize::new(0), failed: AtomicBool::new(false), tables: [table(), table()] }
    }
}

/// One rank in a pass.
pub struct Member<'a> {
    rank: usize,
    round: usize,
    meeting: &'a Meeting,
}

impl Member<'_> {
    /// This rank's number, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Gives `own` to the others; returns what each rank brought, in the order of the ranks. Every rank has to call it
    /// equally often.
    ///
    /// # Errors
    /// When another rank has failed.
    pub fn exchange(&mut self, own: Tensor) -> candle_core::Result<Vec<Tensor>> {
        let table = &self.meeting.tables[self.round % 2];
        let gave_up = || candle_core::Error::Msg("gave up because another rank failed".to_owned());
        *table[self.rank].lock().map_err(|_| gave_up())? = Some(own);
        self.meeting.arrived.fetch_add(1, Ordering::AcqRel);
        self.round += 1;
        let mut turns = 0;
        while self.meeting.arrived.load(Ordering::Acquire) < self.round * table.len() {
            if self.meeting.failed.load(Ordering::Acquire) {
                return Err(gave_up());
            }
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        table.iter().map(|slot| slot.lock().ok().and_then(|slot| slot.clone()).ok_or_else(gave_up)).collect()
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.meeting.failed.store(true, Ordering::Release);
        }
    }
}

/// The part of `0..len` that belongs to `rank`: parts are in order and differ by one at most.
pub fn share(len: usize, ranks: usize, rank: usize) -> Range<usize> {
    rank * len / ranks..(rank + 1) * len / ranks
}
