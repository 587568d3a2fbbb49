//! The request for a paired run: the programs to compare, and how.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};

use super::windows::UnderLoad;
use infergate_build::progress;
use infergate_core::case::Case;
use infergate_core::engine::LoadRequest;
use infergate_core::load::PLACES;
use infergate_core::worker::{Client, Program, Timeouts, WorkerError, WorkerFile};
use infergate_judge::paired::Limits;
use infergate_load::plan::shard::Shard;
use infergate_receipts::{Accept, BuiltWith, CodeRecord, Note, OUTPUT, Terms};

/// A seed that no other run of servers has, with zeros in its [places](PLACES). Within [`SEEDS`](infergate_core::config::SEEDS).
pub fn run_seed(seed: u64) -> u64 {
    let ms = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64);
    ms.wrapping_add(seed).wrapping_mul(PLACES + 1) & ((1 << 49) - 1)
}

/// What to compare, with what.
#[derive(Default)]
pub struct PairedRequest {
    pub base: Program,
    pub head: Program,
    pub load: LoadRequest,
    /// Case ids or globs over the grid; empty is the gate's suite.
    pub cases: Vec<String>,
    /// The case that a memory phase will repeat afterwards: it has to fit the model's context, too.
    pub memory_case: Option<Case>,
    /// This machine's part of the cases, where several machines measure a suite together.
    pub shard: Shard,
    /// The only cases to measure; `None`: all.
    pub own_cases: Option<Vec<Case>>,
    /// Cases of the same suite that other runs of this gate measure.
    pub cases_in_other_runs: usize,
    /// The share of a block's and of the pilot's time that is for this bench target; the rest is for others of the same gate.
    pub share_of_time: f64,
    /// `--quick`: as few pairs as possible.
    pub quick: bool,
    /// Text that prompts are cut from; `None` is the built-in one.
    pub prompt_text: Option<String>,
    /// The ratios from which on a slowdown fails.
    pub limits: Limits,
    /// How far logits may drift and still be the same output, as a fraction; `None` chooses by the dtype.
    pub drift_tolerance: Option<f64>,
    /// Time cases whose output differs, too.
    pub allow_output_change: bool,
    /// Also compare outputs that no case has: of requests together, and at other prompt lengths.
    pub check_other_outputs: bool,
    /// Whose settings judge, and what head declares as intended; `None` if head is compared with no revision.
    pub terms: Option<Terms>,
    /// How its bench target is built.
    pub built_with: BuiltWith,
    /// How the machine code of both differs; `None` if it was not compared. The same code is not timed.
    pub code: Option<CodeRecord>,
    /// Time limit from the start of the pilot, linking excluded. A block starts only if it should end in time.
    pub budget: Option<Duration>,
    /// For servers: the load that both sides are measured under.
    pub under_load: Option<UnderLoad>,
    /// For servers: each block has prompts of its own, so that a server that keeps answers, or what it read, gets no prompt twice.
    pub new_prompts: bool,
    /// For servers: the time limit of the worker that starts one.
    pub ready_within: Option<Duration>,
    /// Notes of the verdict that are known before anything is measured.
    pub notes: Vec<Note>,
}

/// The cases of a shard of a suite. Cases are sorted by name first, since another process may list them in another order.
///
/// # Errors
/// A shard without cases.
pub fn of_shard(shard: Shard, suite: &[Case]) -> Result<Vec<Case>> {
    let mut sorted = suite.to_vec();
    sorted.sort_by_cached_key(Case::to_string);
    let mine: Vec<Case> = sorted.into_iter().skip(shard.index as usize).step_by(shard.count as usize).collect();
    ensure!(!mine.is_empty(), "--shard: the suite has {} cases; use no more shards than cases", suite.len());
    Ok(mine)
}

impl PairedRequest {
    /// A comparison of these two on the gate's suite, with defaults for the rest.
    pub fn new(base: Program, head: Program, load: LoadRequest) -> Self {
        Self { base, head, load, share_of_time: 1.0, check_other_outputs: true, ..Self::default() }
    }

    /// Starts a process of `file` in addition to those that are timed, and loads.
    pub fn start(&self, file: &WorkerFile, timeouts: Timeouts) -> Result<Client<'static>, WorkerError> {
        let (mut client, _) = Client::spawn(file, &self.load, timeouts, progress::cancelled())?;
        client.load(&self.load, self.prompt_text.as_deref())?;
        Ok(client)
    }

    /// What both sides load in `block`, from 0; `None` is the pilot.
    pub fn load_in(&self, block: Option<usize>) -> LoadRequest {
        let mut load = self.load.clone();
        if self.new_prompts {
            let place = block.map_or(1, |block| block as u64 + 2);
            load.seed = load.seed & !PLACES | place & PLACES;
        }
        load
    }

    /// Whether head declares another output of `case` as intended: then the case is timed all the same.
    pub fn accepts_output(&self, case: Case) -> bool {
        let of_output = |accept: &Accept| accept.metric == OUTPUT && accept.case == case.into();
        self.terms.as_ref().is_some_and(|terms| terms.in_effect(&[]).any(of_output))
    }

    /// Whether these are bench targets, and no servers or commands.
    pub fn is_of_bench_target(&self) -> bool {
        self.head.launcher.is_none()
    }

    /// Whether outputs are compared and nothing is timed.
    pub fn is_same_code(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.same)
    }
}
