//! `calibrate`: how often the gate is wrong on this machine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueHint};

use super::machine_lock::{self, Wait};
use super::{flags, measuring, outputs, preflight};
use crate::config::{Config, Layer, up_to};
use crate::machine;
use crate::paired::{Alike, PairedRequest, PairedRun, Program};
use infergate_build::bench_target::Source;
use infergate_build::checkouts::Checkouts;
use infergate_build::sources::Sources;
use infergate_build::{output, progress};
use infergate_core::case::Case;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_CALIBRATED_CASES;
use infergate_core::worker::WorkerFile;
use infergate_judge::paired::{of_another_setup, summarise, unsettled};
use infergate_receipts::{
    CALIBRATION_SCHEMA, Calibration, CalibrationGate, Outcome, ensure_writable, read, timestamp, write_json,
};
use infergate_report::calibration;

/// Measure how often the gate is wrong here
#[derive(Args)]
#[command(args = flags::of_pairs())]
#[command(after_help = "Examples:\n  cargo xtask calibrate\n  cargo xtask calibrate --gates 10 --against HEAD~1")]
pub struct Calibrate {
    /// Gates between builds that do the same, beside those that were measured before: hours differ, so spread them over some
    #[arg(long, default_value = "3", value_parser = up_to(10_000))]
    gates: u32,
    /// A revision that does the same work by other code: every second gate compares with it, laid out alike
    #[arg(long, value_name = "REV", conflicts_with = "worker")]
    against: Option<String>,
    /// Where it is kept [default: baselines/CLASS/calibration/ENGINE-MODEL.json, which later gates quote]
    // Added to, and so not removed before.
    #[arg(long, value_hint = ValueHint::Other)]
    out: Option<PathBuf>,
    /// Write the summary here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Bench binary that was built already
    #[arg(long, help_heading = "What to measure")]
    worker: Option<PathBuf>,
    /// Another build of the same: every second gate compares with it
    #[arg(long, help_heading = "What to measure", requires = "worker")]
    other_worker: Option<PathBuf>,
}

/// Measures, keeps what there is after every step, prints what it says.
pub fn run(options: &Calibrate, keys: &Layer) -> Result<i32> {
    let config = Config::here(keys)?;
    preflight::check(&config)?;
    preflight::calibrations(&config)?;
    let folder = preflight::calibration_folder(&config, &machine::detect().class);
    // The file's name comes from the model, which is not loaded yet.
    ensure_writable(options.out.as_ref().unwrap_or(&folder.join("calibration.json")))?;
    let _lock = machine_lock::take(&options.wait)?;
    let builds = Builds::of(&config, options)?;
    let program = builds.head.program().clone();
    // Builds that do the same are what it measures: their code is not compared.
    let request = measuring::request(&config, program.clone(), program)?;
    let line = progress::Line::default();
    let mut session = Session::begin(&request, &builds, &line)?;
    let cases = session.calibration.cases.len();
    ensure!(
        cases <= MAX_CALIBRATED_CASES,
        "{cases} cases are more than the {MAX_CALIBRATED_CASES} that one calibration holds; name some with --cases"
    );
    let Calibration { machine, subject, .. } = &session.calibration;
    let usual = || preflight::calibration_file(&config, &machine.class, &subject.engine);
    let out = options.out.clone().unwrap_or_else(usual);
    if out.is_file() {
        session.take_up(read(&out)?, &out)?;
    }
    let outcome = (1..=options.gates).try_for_each(|at| {
        let gate = session.gate(&format!("gate {at} of {}", options.gates), &line)?;
        session.calibration.gates.push(gate);
        // The file holds each gate as soon as it is there.
        write_json(&out, &session.calibration)
    });
    line.finish();
    let code = match outcome {
        Err(_) if progress::is_cancelled() => Outcome::Partial.exit_code(),
        outcome => outcome.map(|()| 0)?,
    };
    let summary = summarise(&session.calibration);
    output::report(&calibration::text(&session.calibration, &summary));
    output::line(&format!("calibration: {}", out.display()));
    outputs::json(options.json.as_deref(), &summary);
    Ok(code)
}

/// What is measured against itself, and against another build of the same.
struct Builds {
    head: WorkerFile,
    /// The other build, and both laid out alike where they were built here.
    other: Option<(WorkerFile, Option<Alike>)>,
}

impl Builds {
    fn of(config: &Config, options: &Calibrate) -> Result<Self> {
        let wanted = &config.wanted();
        if let Some(worker) = &options.worker {
            let other = options.other_worker.as_deref().map(WorkerFile::open).transpose()?;
            return Ok(Self { head: WorkerFile::open(worker)?, other: other.map(|other| (other, None)) });
        }
        let head = Source::here(wanted)?;
        let built = Program { commit: None, dirty: None, ..head.build()? };
        let Some(revision) = &options.against else { return Ok(Self { head: built.open()?, other: None }) };
        let (checkout, _) = Checkouts::default().base(revision, wanted)?;
        let base = checkout.build(wanted, false)?;
        let sources = Sources { base: Some(checkout.source(wanted)?), head: Some(head) };
        let alike = sources.alike((&base, &built), config.measured.seed)?;
        let alike = alike.map_err(|why| output::line(&why)).ok();
        Ok(Self { head: built.open()?, other: Some((base.open()?, alike)) })
    }
}

struct Session<'a> {
    run: PairedRun<'a>,
    builds: &'a Builds,
    calibration: Calibration,
}

impl<'a> Session<'a> {
    fn begin(request: &'a PairedRequest, builds: &'a Builds, line: &progress::Line) -> Result<Self> {
        let run = PairedRun::begin(request, &mut |step: &Progress| line.show(step))?;
        let receipt = run.receipt();
        if let Some(changed) = receipt.cases.iter().find(|case| !case.timed) {
            bail!("{}: its output differs between two processes; make the engine deterministic", changed.id);
        }
        let calibration = Calibration {
            schema: CALIBRATION_SCHEMA.into(),
            created: timestamp(),
            tool: receipt.tool.clone(),
            machine: receipt.machine.clone(),
            subject: receipt.head.clone(),
            threads: receipt.threads,
            seed: receipt.seed,
            cases: receipt.cases.clone(),
            gates: Vec::new(),
        };
        Ok(Self { run, builds, calibration })
    }

    /// Adds to an earlier calibration of the same thing.
    fn take_up(&mut self, earlier: Calibration, path: &Path) -> Result<()> {
        let now = &self.calibration;
        let suite = |calibration: &Calibration| -> Vec<(Case, f64)> {
            calibration.cases.iter().map(|case| (case.id, case.threshold)).collect()
        };
        let is_same = suite(&earlier) == suite(now) && earlier.tool == now.tool;
        let other = "the calibration is of another suite, threshold or version of infergate";
        let why = of_another_setup(&earlier, self.run.receipt()).or_else(|| (!is_same).then(|| other.to_owned()));
        if let Some(why) = why {
            bail!("{}: {why}; keep this one elsewhere by --out, or delete that file first", path.display());
        }
        self.calibration = earlier;
        Ok(())
    }

    fn gate(&mut self, name: &str, line: &progress::Line) -> Result<CalibrationGate> {
        let head = &self.builds.head;
        // One file against itself, and two builds, in turn.
        let other = self.builds.other.as_ref().filter(|_| self.calibration.gates.len() % 2 == 1);
        let base = other.map_or(head, |(base, _)| base);
        self.run.replace_builds(base.clone(), head.clone());
        self.run.lay_out(|| Ok(other.and_then(|(_, alike)| alike.clone())))?;
        let alike = self.run.receipt().alike;
        let begun = Instant::now();
        let mut blocks = Vec::new();
        let mut show = |step: &Progress| {
            line.show(&Progress { label: format!("{name}, {}", step.label), ..step.clone() });
        };
        loop {
            let cases = unsettled(&self.calibration.cases, &blocks, false, 0);
            if cases.is_empty() {
                return Ok(CalibrationGate {
                    base_sha256: base.sha256().to_owned(),
                    head_sha256: head.sha256().to_owned(),
                    alike,
                    took_ns: begun.elapsed().as_nanos() as u64,
                    blocks,
                });
            }
            progress::ensure_not_cancelled()?;
            blocks.push(self.run.block(&cases, blocks.len(), &mut show)?);
        }
    }
}
