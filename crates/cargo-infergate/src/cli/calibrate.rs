//! `calibrate`: how often the gate is wrong on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::{Files, Kept, Written};
use super::turn::{self, Wait};
use super::{early, output, progress};
use crate::config::Config;
use crate::machine;
use crate::paired::{Alike, PairedRequest, PairedRun};
use infergate_build::sources::{self, Source, Sources};
use infergate_build::trees::Trees;
use infergate_core::case::Case;
use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::receipt::limits::MAX_CALIBRATED_CASES;
use infergate_core::worker::{WorkerError, WorkerFile};
use infergate_judge::paired::{of_another_setup, outcomes, series, summarise};
use infergate_receipts::{
    BlockRecord, CALIBRATION_SCHEMA, Calibration, CalibrationGate, Outcome, PairedCase, ensure_writable, read,
    timestamp, write_json,
};
use infergate_report::calibration;

/// Measure how often the gate is wrong here
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask calibrate\n  cargo xtask calibrate --gates 30\n  \
    cargo xtask calibrate --gates 10 --add")]
pub struct Calibrate {
    #[command(flatten)]
    keys: Keys<Self>,
    /// Gates between builds that do the same
    #[arg(long, value_name = "N", default_value = "3")]
    gates: usize,
    /// A revision that does the same work by other code: every second gate compares with it, laid out alike
    #[arg(long, value_name = "REV", conflicts_with = "worker")]
    against: Option<String>,
    /// Where it is kept [default: baselines/CLASS/calibration/ENGINE-MODEL.json, which later gates quote]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add to the calibration that is kept there already: hours differ, so spread it over some
    #[arg(long)]
    add: bool,
    /// Write the summary here; - is stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Bench binary that was built already
    #[arg(long, value_name = "PATH", help_heading = "Bench target")]
    worker: Option<PathBuf>,
    /// Another build of the same: every second gate compares with it
    #[arg(long, value_name = "PATH", help_heading = "Bench target", requires = "worker")]
    other_worker: Option<PathBuf>,
}

impl TakesKeys for Calibrate {
    fn keys() -> Vec<Arg> {
        let checkout = ["base_folder", "bench.carry"].into_iter().flat_map(flags::one);
        flags::measure_pairs().into_iter().chain(checkout).collect()
    }
}

/// Measures, keeps what there is after every step, prints what it says.
pub fn run(asked: &Calibrate) -> Result<i32> {
    let cancelled = progress::cancelled_by_ctrl_c()?;
    Files {
        read: &[("--worker", asked.worker.as_slice()), ("--other-worker", asked.other_worker.as_slice())],
        out: asked.out.as_ref(),
        json: asked.json.as_ref(),
        keeps_out: true,
    }
    .begin()?;
    let config = asked.keys.config()?;
    ensure!(asked.gates > 0, "--gates 0 leaves nothing to measure; ask for some");
    early::check(&config)?;
    early::calibrations(&config)?;
    if asked.out.is_none() {
        ensure_writable(&early::calibration_folder(&config, &machine::detect().class).join("calibration.json"))?;
    }
    let _turn = turn::take(&asked.wait)?;
    let builds = Builds::of(&config, asked, &cancelled)?;
    let request = request(&config, &builds.head)?;
    let line = progress::Line::default();
    let mut session = Session::begin(&request, &builds, &line, &cancelled)?;
    let cases = session.calibration.cases.len();
    ensure!(
        cases <= MAX_CALIBRATED_CASES,
        "{cases} cases are more than the {MAX_CALIBRATED_CASES} that one calibration holds; name some with --cases"
    );
    let class = session.calibration.machine.class.clone();
    let out = asked
        .out
        .clone()
        .unwrap_or_else(|| early::calibration_file(&config, &class, &session.calibration.subject.engine));
    // Gates quote it. Who names a file means it.
    if asked.out.is_none()
        && out.is_file()
        && let Some(why) = of_another_setup(&read::<Calibration>(&out)?, session.run.receipt())
    {
        anyhow::bail!("{}: {why}; keep this one elsewhere by --out, or delete that file first", out.display());
    }
    let unfinished = unfinished(&out);
    for path in [&out, &unfinished] {
        ensure_writable(path)?;
    }
    let wanted = session.go_on(asked.gates, &out, &unfinished, asked.add)?;
    let outcome = session.measure(wanted, &unfinished, &line);
    line.finish();
    match outcome {
        Err(error)
            if !matches!(WorkerError::find(&error), Some(WorkerError::Interrupted(_)))
                && !cancelled.load(Ordering::Relaxed) =>
        {
            return Err(error);
        }
        Err(_) => session.calibration.partial = true,
        Ok(()) => {}
    }
    let whole = !session.calibration.partial;
    let summary = summarise(&session.calibration);
    output::report(&calibration::text(&session.calibration, &summary));
    let (place, mut written) = (if whole { &out } else { &unfinished }, Written::default());
    if written.note(write_json(place, &session.calibration)) {
        let place = place.display();
        output::line(&match whole {
            true => format!("calibration: {place}"),
            false => format!("kept in {place}; the same command goes on with it"),
        });
        if whole && unfinished.is_file() {
            let removed = fs::remove_file(&unfinished);
            written.note(removed.with_context(|| format!("{}: cannot be removed", unfinished.display())));
        }
    }
    written.json(asked.json.as_deref(), &summary);
    Ok(written.code(if whole { 0 } else { Outcome::Partial.exit_code() }))
}

/// Where a calibration is kept until it is whole: an earlier one stays what it is until then.
fn unfinished(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// What is measured against itself, and against another build of the same.
struct Builds {
    head: WorkerFile,
    /// The other build, and both laid out alike where they were built here.
    other: Option<(WorkerFile, Option<Alike>)>,
}

impl Builds {
    fn of(config: &Config, asked: &Calibrate, cancelled: &AtomicBool) -> Result<Self> {
        let wanted = &config.wanted();
        if let Some(worker) = &asked.worker {
            let other = asked.other_worker.as_deref().map(WorkerFile::open).transpose()?;
            return Ok(Self { head: WorkerFile::open(worker)?, other: other.map(|other| (other, None)) });
        }
        let head = Source::here(wanted).build()?.program(None, None);
        let Some(revision) = &asked.against else { return Ok(Self { head: head.open()?, other: None }) };
        let (tree, _) = Trees::default().base(revision, wanted)?;
        let base = tree.build(wanted)?;
        let sources = Sources { base: Some(tree.source(wanted)?), head: Some(Source::here(wanted)) };
        let (alike, note) = sources::alike(&sources, (&base, &head), config.measured.seed, cancelled)?;
        note.iter().for_each(|note| output::line(note));
        Ok(Self { head: head.open()?, other: Some((base.open()?, alike)) })
    }
}

fn request(config: &Config, build: &WorkerFile) -> Result<PairedRequest> {
    let program = build.program().clone();
    Ok(PairedRequest {
        cases: config.measured.cases.clone(),
        prompt_text: config.measured.prompt.is_some().then(|| config.measured.prompt_text()).transpose()?,
        threshold: config.threshold,
        mean_threshold: config.mean_threshold,
        widest: config.widest,
        drift_tolerance: config.policy.drift_tolerance,
        // Builds that do the same are what it measures: their code is not compared.
        built_with: config.bench.built_with(),
        ..PairedRequest::new(program.clone(), program, config.measured.load_request())
    })
}

struct Session<'a> {
    run: PairedRun<'a>,
    builds: &'a Builds,
    cancelled: &'a AtomicBool,
    calibration: Calibration,
    /// The one that was asked for.
    threshold: f64,
}

impl<'a> Session<'a> {
    fn begin(
        request: &'a PairedRequest,
        builds: &'a Builds,
        line: &progress::Line,
        cancelled: &'a AtomicBool,
    ) -> Result<Self> {
        let run =
            PairedRun::begin(request, &mut |step: &infergate_core::progress::Progress| line.show(step), cancelled)?;
        let receipt = run.receipt();
        if let Some(changed) = receipt.cases.iter().find(|case| !case.timed) {
            anyhow::bail!("{}: its output differs between two processes; make the engine deterministic", changed.id);
        }
        let calibration = Calibration {
            schema: CALIBRATION_SCHEMA.into(),
            created: timestamp(),
            partial: false,
            tool: receipt.tool.clone(),
            machine: receipt.machine.clone(),
            subject: receipt.head.clone(),
            threads: receipt.threads,
            seed: receipt.seed,
            cases: receipt.cases.clone(),
            gates: Vec::new(),
            wanted_gates: None,
        };
        Ok(Self { run, builds, cancelled, calibration, threshold: request.threshold })
    }

    /// Takes up what there is: a calibration that was cut short, or with `add` one that is whole. Gives how many gates there are to
    /// be: so many, or so many more.
    fn go_on(&mut self, mut wanted: usize, out: &Path, unfinished: &Path, add: bool) -> Result<usize> {
        if unfinished.is_file() {
            let earlier = read::<Calibration>(unfinished)?;
            let whole = (add && out.is_file()).then(|| read::<Calibration>(out)).transpose()?;
            ensure!(
                whole.is_none_or(|whole| earlier.gates.starts_with(&whole.gates)),
                "{}: was not begun with --add and would replace what is to be added to; delete it, or leave --add out",
                unfinished.display()
            );
            wanted = earlier.wanted_gates.unwrap_or(wanted);
            self.take_up(earlier, unfinished, &format!("delete {} to begin anew", unfinished.display()))?;
            let gates = self.calibration.gates.len();
            output::line(&format!("going on with {}: {gates} of {} gates are there", unfinished.display(), wanted));
        } else if add && out.is_file() {
            self.take_up(read::<Calibration>(out)?, out, "leave --add out to begin anew")?;
            wanted += self.calibration.gates.len();
        }
        self.calibration.wanted_gates = Some(wanted);
        Ok(wanted)
    }

    /// Goes on with an earlier calibration of the same thing.
    fn take_up(&mut self, earlier: Calibration, path: &Path, remedy: &str) -> Result<()> {
        let now = &self.calibration;
        let suite = |calibration: &Calibration| -> Vec<Case> { calibration.cases.iter().map(|case| case.id).collect() };
        let engine = |calibration: &Calibration| {
            let engine = &calibration.subject.engine;
            [&engine.name, &engine.model, &engine.dtype].map(Clone::clone)
        };
        let same = earlier.machine.class == now.machine.class
            && earlier.threads == now.threads
            && engine(&earlier) == engine(now)
            && suite(&earlier) == suite(now)
            && earlier.tool == now.tool
            && earlier.cases.iter().all(|case| case.threshold == self.threshold);
        ensure!(
            same,
            "{}: is of another machine class, engine, model, dtype, thread count, suite or version of infergate; {remedy}",
            path.display()
        );
        self.calibration = Calibration { partial: false, ..earlier };
        Ok(())
    }

    /// The file holds each gate as soon as it is there.
    fn measure(&mut self, wanted: usize, unfinished: &Path, line: &progress::Line) -> Result<()> {
        let kept = Kept::at(unfinished);
        while self.calibration.gates.len() < wanted {
            let gate = self.gate(&format!("gate {} of {}", self.calibration.gates.len() + 1, wanted), line)?;
            self.calibration.gates.push(gate);
            self.keep(&kept);
        }
        Ok(())
    }

    fn gate(&mut self, name: &str, line: &progress::Line) -> Result<CalibrationGate> {
        let head = &self.builds.head;
        // One file against itself, and two builds, in turn.
        let other = self.builds.other.as_ref().filter(|_| self.calibration.gates.len() % 2 == 1);
        let base = other.map_or(head, |(base, _)| base);
        self.run.exchange(base.clone(), head.clone());
        self.run.lay_out(|| Ok(other.and_then(|(_, alike)| alike.clone())))?;
        let alike = self.run.receipt().alike.clone();
        let clock = MonotonicClock::new();
        let start_ns = clock.now_ns();
        let mut blocks = Vec::new();
        loop {
            let cases = open(&self.calibration.cases, &blocks);
            if cases.is_empty() {
                return Ok(CalibrationGate {
                    base_sha256: base.sha256().to_owned(),
                    head_sha256: head.sha256().to_owned(),
                    alike,
                    took_ns: clock.now_ns() - start_ns,
                    blocks,
                });
            }
            crate::paired::ensure_not(self.cancelled)?;
            blocks.push(self.run.block(&cases, blocks.len(), &mut renamed(name, line))?);
        }
    }

    /// A calibration that is cut short later is partial; until it ends, it may be.
    fn keep(&mut self, kept: &Kept<'_>) {
        self.calibration.partial = true;
        kept.keep(&self.calibration);
        self.calibration.partial = false;
    }
}

/// Cases that are not settled after `blocks`.
pub fn open(cases: &[PairedCase], blocks: &[BlockRecord]) -> Vec<Case> {
    let (ids, suite): (Vec<Case>, Vec<_>) = series(cases, blocks, false).into_iter().unzip();
    ids.into_iter().zip(outcomes(&suite, 0)).filter(|(_, outcome)| outcome.is_none()).map(|(id, _)| id).collect()
}

fn renamed<'l>(name: &'l str, line: &'l progress::Line) -> impl FnMut(&infergate_core::progress::Progress) + 'l {
    move |step| {
        let label = format!("{name}, {}", step.label);
        line.show(&infergate_core::progress::Progress { label, ..step.clone() });
    }
}
