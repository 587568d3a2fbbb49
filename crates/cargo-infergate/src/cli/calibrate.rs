//! `calibrate`: measures how often the gate is wrong on this machine.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueHint};

use super::machine_lock::{self, Wait};
use super::{files, flags, measuring, outputs, preflight};
use crate::config::{Config, up_to};
use crate::paired::{Alike, PairedRun, Program};
use infergate_build::bench_target::Source;
use infergate_build::checkout::Checkout;
use infergate_build::checkouts::Checkouts;
use infergate_build::sources::Sources;
use infergate_build::{output, progress};
use infergate_core::case::Case;
use infergate_core::machine;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_CALIBRATED_CASES;
use infergate_core::worker::WorkerFile;
use infergate_judge::paired::{of_another_setup, summarise, unsettled};
use infergate_receipts::{
    BlockRecord, CALIBRATION_SCHEMA, Calibration, CalibrationGate, Outcome, PairedCase, PairedReceipt, ensure_writable,
    timestamp, write_json,
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
    /// A revision that does the same work by other code: gates compare with it, laid out alike, and not one file with itself
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
    /// Another build of the same to compare with
    #[arg(long, help_heading = "What to measure", requires = "worker")]
    other_worker: Option<PathBuf>,
}

/// Measures, writes the calibration after every gate, prints its summary.
pub fn run(options: &Calibrate, config: &Config) -> Result<i32> {
    preflight::check(config)?;
    let folder = preflight::calibration_folder(config, &machine::detect().class);
    // The file's name comes from the model, which is not loaded yet.
    ensure_writable(options.out.as_ref().unwrap_or(&folder.join("calibration.json")))?;
    let _lock = machine_lock::take(&options.wait)?;
    let Builds { base, head, alike, _checkout } = Builds::of(config, options)?;
    // A calibration measures builds that do the same: their code is not compared.
    let request = measuring::request(config, base.program().clone(), head.program().clone())?;
    let line = progress::Line::default();
    let mut run = PairedRun::begin(&request, &mut |step: &Progress| line.show(step))?;
    run.lay_out(|| Ok(alike))?;
    let mut calibration = begin(run.receipt())?;
    let usual = || preflight::calibration_file(config, &calibration.machine.class, &calibration.subject.engine);
    let out = options.out.clone().unwrap_or_else(usual);
    if let Some(earlier) = files::read_if_there(&out)? {
        ensure_same(&earlier, &calibration, run.receipt(), &out)?;
        calibration = earlier;
    }
    let outcome = (1..=options.gates).try_for_each(|at| {
        let begun = Instant::now();
        let mut show = |step: &Progress| {
            line.show(&Progress { label: format!("gate {at} of {}, {}", options.gates, step.label), ..step.clone() });
        };
        let blocks = gate(&mut run, &calibration.cases, &mut show)?;
        calibration.gates.push(CalibrationGate {
            base_sha256: base.sha256().to_owned(),
            head_sha256: head.sha256().to_owned(),
            alike: run.receipt().alike,
            took_ns: begun.elapsed().as_nanos() as u64,
            blocks,
        });
        // The file holds each gate as soon as it is there.
        write_json(&out, &calibration)
    });
    line.finish();
    let code = match outcome {
        Err(_) if progress::is_cancelled() => Outcome::Partial.exit_code(),
        outcome => outcome.map(|()| 0)?,
    };
    let summary = summarise(&calibration);
    output::report(&calibration::text(&calibration, &summary));
    output::status_escaped(&format!("calibration: {}", out.display()));
    outputs::json(options.json.as_deref(), &summary);
    Ok(code)
}

/// What is compared: one file with itself, or with another build that does the same.
struct Builds {
    base: WorkerFile,
    head: WorkerFile,
    /// Both laid out alike; `None` if they cannot be, or were given.
    alike: Option<Alike>,
    /// Base's checkout: no other gate builds in it until all is measured.
    _checkout: Option<Rc<Checkout>>,
}

impl Builds {
    fn of(config: &Config, options: &Calibrate) -> Result<Self> {
        let build_request = &config.build_request();
        if let Some(worker) = &options.worker {
            let base = WorkerFile::open(options.other_worker.as_ref().unwrap_or(worker))?;
            return Ok(Self { base, head: WorkerFile::open(worker)?, alike: None, _checkout: None });
        }
        let source = Source::here(build_request)?;
        let built = Program { commit: None, dirty: None, ..source.build()? };
        let head = built.open()?;
        let Some(revision) = &options.against else {
            return Ok(Self { base: head.clone(), head, alike: None, _checkout: None });
        };
        let (checkout, _) = Checkouts::default().base(revision, build_request)?;
        let base = checkout.build(build_request, false)?;
        let sources = Sources { base: Some(checkout.source(build_request)?), head: Some(source) };
        let alike = sources.alike((&base, &built), config.measured.seed)?;
        let alike = alike.map_err(|why| output::status_escaped(&why)).ok();
        Ok(Self { base: base.open()?, head, alike, _checkout: Some(checkout) })
    }
}

/// A calibration without a gate, of the suite that the pilot planned.
fn begin(pilot: &PairedReceipt) -> Result<Calibration> {
    if let Some(changed) = pilot.cases.iter().find(|case| !case.timed) {
        bail!("{}: its output differs; take builds that do the same, of a deterministic engine", changed.id);
    }
    let cases = pilot.cases.len();
    ensure!(
        cases <= MAX_CALIBRATED_CASES,
        "{cases} cases are more than the {MAX_CALIBRATED_CASES} that one calibration holds; name some with --cases"
    );
    Ok(Calibration {
        schema: CALIBRATION_SCHEMA.into(),
        created: timestamp(),
        tool: pilot.tool.clone(),
        machine: pilot.machine.clone(),
        subject: pilot.head.clone(),
        threads: pilot.threads,
        seed: pilot.seed,
        cases: pilot.cases.clone(),
        gates: Vec::new(),
    })
}

/// Refuses gates of something else than those of the file at `path`.
fn ensure_same(earlier: &Calibration, now: &Calibration, pilot: &PairedReceipt, path: &Path) -> Result<()> {
    let suite = |calibration: &Calibration| -> Vec<(Case, f64)> {
        calibration.cases.iter().map(|case| (case.id, case.threshold)).collect()
    };
    let is_same = suite(earlier) == suite(now) && earlier.tool == now.tool;
    let other = "the calibration is of another suite, threshold or version of infergate";
    let why = of_another_setup(earlier, pilot).or_else(|| (!is_same).then(|| other.to_owned()));
    if let Some(why) = why {
        bail!("{}: {why}; keep this one elsewhere by --out, or delete that file first", path.display());
    }
    Ok(())
}

/// The blocks of one gate: until every case is settled.
fn gate(run: &mut PairedRun<'_>, cases: &[PairedCase], show: &mut dyn FnMut(&Progress)) -> Result<Vec<BlockRecord>> {
    let mut blocks = Vec::new();
    loop {
        let open = unsettled(cases, &blocks, false, 0);
        if open.is_empty() {
            return Ok(blocks);
        }
        progress::ensure_not_cancelled()?;
        blocks.push(run.block(&open, blocks.len(), show)?);
    }
}
