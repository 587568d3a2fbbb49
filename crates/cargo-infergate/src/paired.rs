//! Base and head in turn on one machine: a pilot, then blocks until every case is settled.
//!
//! A block starts fresh processes of both sides, once for each placement that it times, since two processes of one program differ in speed:
//! by where their memory lies, by the pages that they were given. Its number d is the mean over these process pairs of the median of
//! ln(t_head / t_base).
//!
//! Both processes are loaded and warm before the first timed iteration. Then one side works at a time, so that both see the same swings of
//! the machine. Samples of about 2 ms alternate. A generation of a stepwise engine is divided into turns of about 2 ms; any other long
//! iteration runs whole. Which side is started first, and which runs first, is balanced over every two blocks.
//!
//! [`PairedRun`] is begun in `pilot`, laid out in `placements`, and measures blocks here. What settles a case is decided in
//! [`infergate_judge::paired`].

mod benches;
mod engine_checks;
mod excluded_benches;
pub mod iterations;
pub mod load_window;
mod one_core;
pub mod pairs;
mod pilot;
mod placements;
mod process_pair;
mod request;
mod started;
mod windows;

use std::panic::resume_unwind;
use std::thread;

use infergate_build::progress;
use infergate_build::start_files::StartFiles;
use infergate_core::case::{Case, Phase};
use infergate_core::clock::{Clock as _, MonotonicClock};
use infergate_core::process::{RANDOM_SEED, stack};
use infergate_core::progress::Progress;
use infergate_core::worker::{Client, Timeouts, WorkerError, WorkerFile};
use infergate_judge::paired::{MAX_BLOCKS, QUICK_BLOCKS, computes_between, fewest_to_pass, head_computes_between};
use infergate_receipts::{BlockRecord, CodeRuns, Idle, Noise, Note, PairedCase, PairedReceipt, Side};
use infergate_report::units::many;

pub use infergate_build::sources::Alike;
pub use infergate_core::worker::Program;
use pairs::PairPlan;
use process_pair::ProcessPair;
pub use request::{PairedRequest, of_shard, run_seed};
pub use started::{Started, start};
pub use windows::UnderLoad;

/// The builds that blocks start.
pub struct TimedBuilds {
    /// Base and head, once for each placement or pair of servers.
    pub pairs: Vec<(WorkerFile, WorkerFile)>,
    /// Pairs that one block starts.
    pub per_block: usize,
}

/// A paired run that is under way.
pub struct PairedRun<'a> {
    request: &'a PairedRequest,
    /// Started with the pilot.
    clock: MonotonicClock,
    /// Time that does not count against the budget, such as linking.
    unbudgeted_ns: u64,
    receipt: PairedReceipt,
    /// Base and head, once for each placement of what changed, or for each pair of servers that run already.
    builds: Vec<(WorkerFile, WorkerFile)>,
    /// The two files that both sides are started from, in turn. `None`: each side is started from its own file.
    start_files: Option<StartFiles>,
    /// Time limits of answers, base's and head's.
    timeouts: (Timeouts, Timeouts),
    order: StartOrder,
    pairs: PairPlan,
    /// The time that starting a process of each side takes, nanoseconds.
    starts_ns: u64,
    /// Whether a block starts all placements.
    starts_all_placements: bool,
    /// The time of the longest block so far, or the pilot's estimate, nanoseconds.
    block_ns: u64,
    /// The cases that the budget holds; `None`: all.
    cases_in_budget: Option<Vec<Case>>,
}

impl PairedRun<'_> {
    /// The builds that blocks start.
    pub fn builds(&self) -> TimedBuilds {
        TimedBuilds { pairs: self.builds.clone(), per_block: self.builds_of(0).len() }
    }

    /// What is known so far.
    pub fn receipt(&self) -> &PairedReceipt {
        &self.receipt
    }

    /// Uses a calibration's noise of each case in place of the pilot's estimate. Only before the first block: limits are fixed from then
    /// on.
    pub fn take_noise_of_calibration(&mut self, noise: &[Noise]) {
        for case in self.receipt.cases.iter_mut().filter(|case| case.timed && case.load.is_none()) {
            if let Some(noise) = noise.iter().find(|noise| noise.case == case.id && noise.std.is_some()) {
                self.request.limits.set_limits_by_noise(case, noise.std, noise.mean_std);
            }
        }
    }

    /// Records which changed functions each case runs. A case that runs none, and whose output is the same, is not timed.
    pub fn drop_cases_that_run_nothing_changed(&mut self, runs: Vec<CodeRuns>) {
        let Some(code) = &mut self.receipt.code else { return };
        code.runs = runs;
        for case in &mut self.receipt.cases {
            if case.timed && case.base_output == case.head_output && code.runs_nothing_changed(case.id) {
                case.timed = false;
                code.same_cases.push(case.id);
            }
        }
        let timed = self.timed();
        self.block_ns = self.block_ns.min(self.starts_ns + self.pairs.block_ns(&timed, 1) as u64);
    }

    /// The rest of the budget, nanoseconds; `None` without one.
    fn left_ns(&self) -> Option<u64> {
        let budget_ns = u64::try_from(self.request.budget?.as_nanos()).unwrap_or(u64::MAX);
        Some(budget_ns.saturating_sub(self.clock.now_ns() - self.unbudgeted_ns))
    }

    /// How many blocks the budget still has time for; `None` without one.
    pub fn blocks_in_budget(&self) -> Option<usize> {
        Some((self.left_ns()? / self.block_ns.max(1)) as usize)
    }

    /// The cases of `open` that the budget still has time for. If it is too short for a verdict on all, the cheapest ones, at least one.
    pub fn fit_to_budget(&mut self, open: &[Case]) -> Vec<Case> {
        let mut cases = self.planned(open);
        cases.retain(|case| self.cases_in_budget.as_ref().is_none_or(|taken| taken.contains(&case.id)));
        let ids = |cases: &[PairedCase]| cases.iter().map(|case| case.id).collect::<Vec<_>>();
        // Later some are settled, and each block that still fits helps the others.
        let needed = fewest_to_pass().saturating_sub(self.receipt.blocks.len());
        let room_ns = self.left_ns().filter(|_| needed > 0).map(|left_ns| left_ns as f64 / needed as f64);
        let Some(room_ns) = room_ns.filter(|room_ns| *room_ns < self.block_ns as f64) else { return ids(&cases) };
        let builds = self.builds_of(0).len();
        let starts_ns = (self.block_ns as f64 - self.pairs.block_ns(&cases, builds)).max(0.0);
        let cost_ns = |case: &PairedCase| self.pairs.block_ns(std::slice::from_ref(case), builds);
        cases.sort_by(|a, b| cost_ns(a).total_cmp(&cost_ns(b)));
        let mut taken = Vec::new();
        for case in cases {
            taken.push(case);
            if starts_ns + self.pairs.block_ns(&taken, builds) > room_ns && taken.len() > 1 {
                taken.pop();
            }
        }
        self.block_ns = (starts_ns + self.pairs.block_ns(&taken, builds)) as u64;
        self.cases_in_budget = Some(ids(&taken));
        ids(&taken)
    }

    /// Measures blocks until `open` names no case. The receipt of a run that ends earlier is `partial` if it was cancelled and
    /// `out_of_time` if the budget ended.
    pub fn run(
        mut self,
        open: &dyn Fn(&PairedReceipt) -> Vec<Case>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<PairedReceipt, WorkerError> {
        loop {
            let all = open(&self.receipt);
            // Before each block: the last one may have taken longer than planned.
            let cases = self.fit_to_budget(&all);
            if let Some(broken) = head_computes_between(&self.receipt) {
                self.receipt.invalid.push(broken);
                return Ok(self.receipt);
            }
            let is_over = cases.is_empty() || self.blocks_in_budget() == Some(0);
            self.receipt.out_of_time = !all.is_empty() && is_over;
            if is_over {
                self.receipt.notes.extend(computes_between(&self.receipt));
                return Ok(self.receipt);
            }
            let done = self.receipt.blocks.len();
            match self.block(&cases, done, progress) {
                Ok(block) => self.receipt.blocks.push(block),
                // The receipt keeps the blocks that were measured.
                Err(error) if matches!(error, WorkerError::Invalid(_)) || self.has_stopped_working(&error) => {
                    self.receipt.invalid.push(error.to_string());
                    return Ok(self.receipt);
                }
                Err(error) if !matches!(error, WorkerError::Interrupted(_)) && !progress::is_cancelled() => {
                    return Err(error);
                }
                Err(_) => {
                    self.receipt.partial = true;
                    return Ok(self.receipt);
                }
            }
        }
    }

    /// One block of `cases`. `done` blocks came before.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`WorkerError::Interrupted`] when it was cancelled.
    pub fn block(
        &mut self,
        cases: &[Case],
        done: usize,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<BlockRecord, WorkerError> {
        let start_ns = self.clock.now_ns();
        let (started_first, ran_first) = self.order.next();
        let last = self.end_in_sight(done);
        let mut show = |what: &str, at: usize| progress(&step(done, last, cases.len(), what, at));
        show("loading", 0);
        let mut record = BlockRecord {
            ran_first,
            base_idle: Some(Idle::default()),
            head_idle: Some(Idle::default()),
            cases: Vec::new(),
            windows: Vec::new(),
        };
        if done == 0 {
            self.pairs.forget_blocks();
        }
        let all: Vec<PairedCase> = self.timed().into_iter().filter(|case| case.load.is_none()).collect();
        let pairs_of = self.pairs.in_next_block(&all, cases);
        let planned = self.planned(cases);
        let builds = self.builds_of(done);
        for (at, build) in builds.iter().enumerate() {
            // Both orders flip from one pair of processes to the next.
            let side_in_this_pair = |side: Side| if at % 2 == 0 { side } else { side.other() };
            let numbers = (done, done * builds.len() + at);
            let mut pair = self.start_pair(side_in_this_pair(started_first), cases, *build, numbers)?;
            for (nth, case) in planned.iter().filter(|case| case.load.is_none()).enumerate() {
                show(&case.id.to_string(), nth);
                let all_pairs = pairs_of.get(&case.id).copied().unwrap_or(case.pairs);
                let pairs = pairs::of_each_build(case, all_pairs, builds.len());
                let mut measured = pair
                    .measure(&PairedCase { pairs, ..case.clone() }, side_in_this_pair(ran_first))
                    .map_err(|error| error.about(case.id))?;
                measured.placements.extend(self.receipt.alike.is_some().then_some(*build));
                match record.cases.iter_mut().find(|block| block.id == case.id) {
                    Some(block) => block.extend(measured),
                    None => record.cases.push(measured),
                }
            }
            for (sum, own) in [(&mut record.base_idle, &pair.base), (&mut record.head_idle, &pair.head)] {
                *sum = sum.zip(own.idle()).map(|(sum, own)| Idle {
                    cpu_ns: sum.cpu_ns.saturating_add(own.cpu_ns),
                    wall_ns: sum.wall_ns.saturating_add(own.wall_ns),
                });
            }
            for (number, level) in windows::by_level(&planned).into_iter().enumerate() {
                show(&format!("{} and the like", level[0].id), record.cases.len());
                windows::measure(&mut pair, &level, number as u64, done, &mut record)?;
            }
            self.note_bad_exit(pair);
        }
        record.cases.iter().for_each(|block| self.pairs.note(block));
        let took_ns = self.clock.now_ns() - start_ns;
        self.block_ns = if done == 0 { took_ns } else { self.block_ns.max(took_ns) };
        Ok(record)
    }

    /// Notes that head's process crashes or hangs on exit, if base's does not: a server with such an engine could not be stopped.
    fn note_bad_exit(&mut self, pair: ProcessPair) {
        if let (None, Some(how)) = (pair.base.finish(), pair.head.finish()) {
            let note = Note::from(format!("head's process fails on exit, base's does not: {how}"));
            if !self.receipt.notes.contains(&note) {
                self.receipt.notes.push(note);
            }
        }
    }

    /// Whether this is the error of a bench that worked before.
    fn has_stopped_working(&self, error: &WorkerError) -> bool {
        let are_benches = self.receipt.cases.iter().all(|case| case.id.phase() == Phase::Bench);
        let has_worked = self.request.is_of_bench_target() && !self.receipt.blocks.is_empty();
        are_benches && has_worked && excluded_benches::can_be_the_benchs_fault(error)
    }

    /// The block count that the progress bar shows: the fewest that can decide, then the most that budget and
    /// `MAX_BLOCKS` allow.
    fn end_in_sight(&self, done: usize) -> usize {
        if self.request.quick {
            return QUICK_BLOCKS;
        }
        let fewest = fewest_to_pass();
        if done < fewest {
            return fewest;
        }
        let in_budget = self.blocks_in_budget().map_or(MAX_BLOCKS, |left| done + left);
        in_budget.min(MAX_BLOCKS).max(done + 1)
    }

    fn timed(&self) -> Vec<PairedCase> {
        self.receipt.timed().cloned().collect()
    }

    fn planned(&self, cases: &[Case]) -> Vec<PairedCase> {
        self.receipt.cases.iter().filter(|case| cases.contains(&case.id)).cloned().collect()
    }

    /// Fresh processes of a build, loaded and warm: the pair `number` of the run, in `block`. Both load at the same time, which is faster
    /// and treats them alike.
    fn start_pair(
        &self,
        first: Side,
        cases: &[Case],
        build: usize,
        (block, number): (usize, usize),
    ) -> Result<ProcessPair, WorkerError> {
        let (base, head) = &self.builds[build];
        let files_to_start = self.start_files.as_ref().and_then(|files| files.next(base, head).ok());
        let (base, head) = files_to_start.unwrap_or_else(|| (base.clone(), head.clone()));
        // Different for each pair, and secret: an engine may draw keys from it.
        let seed = format!("{:016x}", fastrand::u64(..));
        let alike = |file: WorkerFile| {
            let file = file.with_variable(stack::VARIABLE, stack::offset_bytes(number).to_string());
            file.with_variable(RANDOM_SEED, seed.clone())
        };
        let files = (alike(base), alike(head));
        // Started by this thread: a worker ends with the thread that started it.
        let spawn = |side| self.spawn(side, &files);
        let (one, other) = (spawn(first)?, spawn(first.other())?);
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(|| self.warm(first.other(), other, cases));
            let one = self.warm(first, one, cases);
            (one, other.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let (one, other) = (one?, other?);
        let (base, head) = if first == Side::Base { (one, other) } else { (other, one) };
        Ok(ProcessPair { base, head, nth: block, last_side: Side::Head })
    }

    fn spawn(&self, side: Side, (base, head): &(WorkerFile, WorkerFile)) -> Result<Client<'static>, WorkerError> {
        let (file, timeouts) = match side {
            Side::Base => (base, &self.timeouts.0),
            Side::Head => (head, &self.timeouts.1),
        };
        let spawned = Client::spawn(file, &self.request.load, timeouts.clone(), progress::cancelled());
        Ok(spawned.map_err(|error| error.of(side.name()))?.0)
    }

    /// Loads and prepares each case. Fails if an output differs from the pilot's.
    fn warm(&self, side: Side, mut client: Client<'static>, cases: &[Case]) -> Result<Client<'static>, WorkerError> {
        let load = self.request.load_in(Some(self.receipt.blocks.len()));
        let mut warm = || {
            client.load(&load, self.request.prompt_text.as_deref())?;
            for case in self.planned(cases) {
                let prepared = client.prepare(case.id, Some(case.output(side).ids.clone()));
                prepared.map_err(|error| error.about(case.id))?;
            }
            Ok(())
        };
        warm().map_err(|error: WorkerError| error.of(side.name()))?;
        Ok(client)
    }
}

/// Which side is started first, and which runs first, drawn by the seed. Each group of four blocks has each combination
/// once. Its first two blocks balance both, and so do its last two. The process that is started second was 0.28 %
/// faster on decode (standard error 0.06 %, 312 blocks); prefill and generation showed nothing.
struct StartOrder {
    random: fastrand::Rng,
    /// The rest of the group of four; the next one is last.
    waiting: Vec<(Side, Side)>,
}

impl StartOrder {
    /// The same seed gives the same orders.
    fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), waiting: Vec::new() }
    }

    /// The side that is started first, and the side that runs first.
    fn next(&mut self) -> (Side, Side) {
        if let Some(next) = self.waiting.pop() {
            return next;
        }
        let mut draw = || if self.random.bool() { Side::Base } else { Side::Head };
        let (started, ran) = (draw(), draw());
        let second = if self.random.bool() { (started.other(), ran) } else { (started, ran.other()) };
        self.waiting = vec![(second.0.other(), second.1.other()), second, (started.other(), ran.other())];
        (started, ran)
    }
}

/// Steps of one block on a progress bar.
const STEPS_OF_BLOCK: usize = 1000;

/// `block 3 of 8, 5 cases open: decode/p128`, which is case number `at` of `cases`. Steps are fractions of a block, so that the time left
/// follows from the blocks so far, however many cases they had.
fn step(done: usize, last: usize, cases: usize, what: &str, at: usize) -> Progress {
    let most = if done < fewest_to_pass() { "" } else { "at most " };
    Progress {
        label: format!("block {} of {most}{last}, {} open: {what}", done + 1, many(cases, "case")),
        done_steps: done * STEPS_OF_BLOCK + STEPS_OF_BLOCK * at / cases.max(1),
        total_steps: last * STEPS_OF_BLOCK,
    }
}
