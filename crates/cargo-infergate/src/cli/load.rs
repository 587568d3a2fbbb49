//! `load`: a server under load.

mod flags;
mod settings;
mod target;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use infergate_build::{output, progress};
use infergate_core::load::{Arrivals, Stop};
use infergate_core::process::this_program;
use infergate_core::progress::Progress;

use super::outputs::{Kept, exit_code_of_measuring};
use super::{files, machine_lock, outputs, pages};
use crate::config::{Config, Layer};
use crate::machine::probes;
use infergate_judge::load::judge_with;
use infergate_load::client::audit::audit;
use infergate_load::client::dial::raise_connection_limit;
use infergate_load::merge::merge;
use infergate_load::plan::search::{Step, next_step};
use infergate_load::plan::{MAX_KEPT, REQUEST_WEIGHT};
use infergate_load::summary::slo::meets;
use infergate_load::summary::summarise;
use infergate_load::targets::Target;
use infergate_load::targets::live::Live;
use infergate_load::validity;
use infergate_receipts::{Limit, LoadBaseline, LoadReceipt, TargetRecord, read, write_json};
use infergate_report::inputs::Inputs;
use infergate_report::terminal;
use infergate_report::units::many;
use settings::{Settings, unix_ns};

pub use flags::Load;
use flags::{Commands, Merge};

/// The share of failed requests from which on a level is judged, if no targets are given and users are not searched for.
const MANY_FAIL: f64 = 0.01;
/// The target that it is judged by.
const FEW_FAIL: &str = "* failed_percent < 1";
/// How often a wait for the common start checks whether it was cancelled.
const POLL: Duration = Duration::from_millis(50);
/// How often the progress line is drawn.
const EVERY: Duration = Duration::from_millis(250);
/// Steps of a level on the progress line.
const STEPS: usize = 1_000;

/// Measures, keeps the receipt after every level, judges and prints it.
pub fn run(options: &Load, keys: &Layer) -> Result<i32> {
    if let Some(Commands::Merge(options)) = &options.command {
        return merge_shards(options);
    }
    let named = target::named(&options.target.target)?;
    let config = Config::here(keys)?;
    let has_targets = keys.get("targets").is_some();
    // Shards of one load may run on one machine.
    let lock = if options.start_at.is_some() { File::try_lock_shared } else { File::try_lock };
    let _lock = machine_lock::take_by(&options.wait, lock)?;
    let mut target = target::open(options, &config, &named)?;
    let (settings, mut receipt) = Settings::from(options, &config, target.records())?;
    let out = options.out.clone().unwrap_or_else(|| config.measured.target_folder().join("load.json"));
    outputs::remove_previous(&out)?;
    raise_connection_limit();
    let is_whole = receipt.shards.is_empty();
    let baseline = config.baselines.join(LoadBaseline::file_name(&receipt));
    let baseline = if is_whole { files::read_if_there(&baseline)? } else { None };
    let levels = settings.search_up_to.map_or(settings.loads.len(), |most| most.ilog2() as usize + 1);
    let kept = Kept::at(&out);
    let total = levels * receipt.scenarios.len();
    let mut run = Run {
        settings: &settings,
        target: target.as_mut(),
        receipt: &mut receipt,
        kept: &kept,
        line: progress::Line::default(),
        words: String::new(),
        room: MAX_KEPT,
        total,
    };
    let outcome = run.measure();
    run.line.finish();
    outcome.inspect_err(|_| kept.print_where())?;
    receipt.partial = progress::is_cancelled();
    receipt.invalid = validity::reasons(&receipt);
    let is_kept = outputs::is_written(write_json(&out, &receipt));
    let code = exit_code_of_measuring(receipt.partial, &receipt.invalid);
    let fails = receipt.summaries().iter().any(|level| level.failed_share() >= Some(MANY_FAIL));
    let is_judgeable = code == 0 && is_whole && settings.search_up_to.is_none();
    // The targets of infergate.toml are for suites.
    let targets = if has_targets {
        config.policy.targets.clone()
    } else if fails && is_judgeable {
        vec![FEW_FAIL.parse()?]
    } else {
        Vec::new()
    };
    let is_required = is_whole && config.policy.require_baseline;
    let is_judged = is_required || options.json.is_some() || baseline.is_some() || !targets.is_empty();
    let judged = || judge_with(&receipt, baseline.as_ref(), &config.policy, &targets);
    let verdict = is_judged.then(judged).transpose()?;
    let inputs = Inputs { load: Some(receipt.into()), verdict, ..pages::inputs() };
    show(&inputs, is_judged || code != 0);
    if is_kept {
        output::status_escaped(&format!("receipt: {}", out.display()));
    }
    if !is_judged {
        return Ok(code);
    }
    Ok(pages::conclude(&inputs, options.json.as_deref(), None))
}

/// `load merge`: reads, merges, prints and writes the whole load.
fn merge_shards(options: &Merge) -> Result<i32> {
    let read = |path: &PathBuf| -> Result<(String, LoadReceipt)> { Ok((path.display().to_string(), read(path)?)) };
    let receipt = merge(options.receipts.iter().map(read).collect::<Result<_>>()?)?;
    let code = exit_code_of_measuring(receipt.partial, &receipt.invalid);
    show(&Inputs { load: Some(receipt.clone().into()), ..pages::inputs() }, code != 0);
    outputs::receipt(&options.out, &receipt, false);
    Ok(code)
}

/// Prints what was measured; with `--quiet` only a decision.
fn show(inputs: &Inputs, is_decided: bool) {
    let text = terminal::report(inputs);
    if is_decided { output::print_verdict(&text) } else { output::report(&text) }
}

/// A run under way.
struct Run<'a> {
    settings: &'a Settings,
    target: &'a mut dyn Target,
    receipt: &'a mut LoadReceipt,
    kept: &'a Kept<'a>,
    line: progress::Line,
    /// The server's last error text.
    words: String,
    /// The room left in the receipt, in pieces of output.
    room: u64,
    /// The most levels that there will be.
    total: usize,
}

impl Run<'_> {
    fn measure(&mut self) -> Result<()> {
        if let Some(start_unix_ns) = self.settings.start_unix_ns {
            self.begin_at(start_unix_ns)?;
        }
        for scenario in 0..self.receipt.scenarios.len() {
            for arrivals in &self.settings.loads {
                if !self.level(scenario, *arrivals)? {
                    let (name, load) = (&self.receipt.scenarios[scenario].name, arrivals.name());
                    let note = format!("{name}: no request completed at {load}, so no further level ran");
                    self.receipt.notes.push(note);
                    break;
                }
            }
            if let Some(most) = self.settings.search_up_to {
                self.search(scenario, most)?;
            }
        }
        Ok(())
    }

    /// Does what can be done before the common start, and waits for it.
    fn begin_at(&mut self, start_unix_ns: u64) -> Result<()> {
        for arrivals in &self.settings.loads {
            self.audit(*arrivals)?;
        }
        self.line.show(&Progress { label: "waiting for --start-at".into(), done_steps: 0, total_steps: self.total });
        ensure!(
            unix_ns()? <= start_unix_ns || progress::is_cancelled(),
            "--start-at: the self-audit was done after it; give a later time, for example in two minutes"
        );
        while !progress::is_cancelled() {
            let left = Duration::from_nanos(start_unix_ns.saturating_sub(unix_ns()?));
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(POLL));
        }
        // Both clocks at once: what lies between the two calls is far below what clocks of machines differ by.
        let clock_unix_ns = unix_ns()?.saturating_sub(self.target.now_ns());
        for shard in &mut self.receipt.shards {
            shard.clock_unix_ns = clock_unix_ns;
        }
        Ok(())
    }

    /// Measures the client's accuracy under this shard's part of `arrivals`, unless it is known.
    fn audit(&mut self, arrivals: Arrivals) -> Result<()> {
        let own = self.settings.shard.arrivals(arrivals);
        let is_known = self.receipt.audits.iter().any(|audit| audit.arrivals == own);
        let has_client = matches!(self.receipt.targets[0], TargetRecord::Endpoint { .. });
        if has_client && !is_known && !progress::is_cancelled() {
            let (seed, live) = (self.receipt.seed, live());
            let found = self.drawn(&format!("self-audit, {}", own.name()), None, &live, |_| audit(own, seed, &live))?;
            self.receipt.audits.extend(found);
        }
        Ok(())
    }

    /// Levels of more and more users until one is not shown to meet the limits, then of those between, and the most that met them
    /// once more.
    fn search(&mut self, scenario: usize, most: u32) -> Result<()> {
        let limits: Vec<Limit> =
            self.receipt.limits.iter().copied().filter(|limit| limit.percentile.is_some()).collect();
        let (mut tried, mut unknown) = (Vec::new(), Vec::new());
        while let Step::Run(users) = next_step(&tried, most) {
            self.level(scenario, Arrivals::Closed { users })?;
            let Some(level) = self.receipt.levels.last().filter(|_| !progress::is_cancelled()) else { break };
            let met = meets(&summarise(level), &limits);
            if met.is_none() {
                unknown.push(users.to_string());
            }
            tried.push((users, met == Some(true)));
        }
        if !unknown.is_empty() {
            self.receipt.notes.push(format!(
                "{} users: neither shown to meet the limits nor to miss them, and counted as missed; give more --requests",
                unknown.join(", ")
            ));
        }
        Ok(())
    }

    /// Measures the client's accuracy under a level, then runs the level; nothing once the run was cancelled. `false` if no request
    /// completed, so that more users would be for nothing.
    ///
    /// # Errors
    /// A target that refused a request before it completed one in the run.
    fn level(&mut self, scenario: usize, arrivals: Arrivals) -> Result<bool> {
        self.audit(arrivals)?;
        if progress::is_cancelled() {
            return Ok(true);
        }
        let plan = self.settings.level(self.receipt, scenario, arrivals, self.room);
        let label = format!("{}, {}", plan.shape.name, arrivals.name());
        let live = live();
        let stop = Some(plan.progress_stop());
        let outcome = self.drawn(&label, stop, &live, |target| target.run_level(&plan, &live))?;
        if let Some(words) = live.words.get().filter(|words| **words != self.words) {
            self.line.above(|| output::status_escaped(&format!("the server says: {words}")));
            self.words.clone_from(words);
        }
        if let Some((target, why)) = live.refused.get() {
            bail!("target {}: {why}", target + 1);
        }
        let is_answered = outcome.level.requests.iter().any(|record| record.failure.is_none());
        if outcome.is_full {
            self.receipt
                .notes
                .push(format!("{label}: ended early, because the receipt holds no more; measure less in a run"));
        }
        let seen = live.seen();
        self.room = self.room.saturating_sub(seen.pieces + REQUEST_WEIGHT * seen.issued);
        let mut level = outcome.level;
        if self.receipt.dataset_prompts.is_none() {
            // Only answers to prompts that come again are compared.
            level.requests.iter_mut().for_each(|record| record.output_sha256 = None);
        }
        self.receipt.levels.push(level);
        self.kept.keep(self.receipt);
        self.probe()?;
        Ok(is_answered || progress::is_cancelled())
    }

    /// Probes the hardware, if the engine reports what a step needs of it.
    fn probe(&mut self) -> Result<()> {
        let [TargetRecord::Local { threads, cost: Some(_), .. }] = self.receipt.targets[..] else { return Ok(()) };
        let probed = probes::in_process(&this_program()?, threads, progress::cancelled());
        // If the user ended it, the run keeps what was measured before.
        if !progress::is_cancelled() {
            let probed = probed?;
            self.receipt.probes = Some(self.receipt.probes.map_or(probed, |best| best.best_of(probed)));
        }
        Ok(())
    }

    /// Runs `work` and draws its progress from another thread, since the client's own thread stamps tokens. `live` has the progress.
    /// Without a `stop` it is unknown how long the work takes.
    fn drawn<T>(&mut self, label: &str, stop: Option<Stop>, live: &Live, work: impl FnOnce(&mut dyn Target) -> T) -> T {
        let (line, done, total) = (&mut self.line, self.receipt.levels.len(), self.total);
        let (end, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let began = Instant::now();
                loop {
                    let (words, share) = so_far(live, stop, began.elapsed());
                    line.show(&Progress {
                        label: format!("{label}: {words}"),
                        done_steps: done * STEPS + (share.clamp(0.0, 1.0) * STEPS as f64) as usize,
                        total_steps: total * STEPS,
                    });
                    if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                        break;
                    }
                }
            });
            let outcome = work(self.target);
            drop(end);
            outcome
        })
    }
}

fn live() -> Arc<Live> {
    let mut live = Live::new(progress::cancelled().clone());
    live.until_refused = true;
    Arc::new(live)
}

/// A level's progress as text, and the share of it that is done.
fn so_far(live: &Live, stop: Option<Stop>, took: Duration) -> (String, f64) {
    let seen = live.seen();
    let tokens_per_s = seen.pieces as f64 / took.as_secs_f64().max(1e-3);
    let share = match stop {
        Some(Stop::Requests { count }) => seen.ended as f64 / count.max(1) as f64,
        Some(Stop::Duration { ns }) => took.as_nanos() as f64 / ns.max(1) as f64,
        None => 0.0,
    };
    (format!("{tokens_per_s:.0} tokens/s, {}", many(seen.failed as usize, "error")), share)
}
