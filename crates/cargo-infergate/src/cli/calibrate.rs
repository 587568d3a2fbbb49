//! `calibrate`: how often the gate is wrong on this machine, and how small a slowdown it finds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{bench_target, early, flags, output, progress};
use crate::config::Config;
use crate::gate::paired::{outcomes, series, summarise};
use crate::machine;
use crate::paired::{PairedRequest, PairedRun, Program, QUIET_THRESHOLD};
use crate::receipt::{
    BlockRecord, CALIBRATION_SCHEMA, Calibration, CalibrationGate, Outcome, PairedCase, ensure_writable, file_word,
    read, timestamp, write_json,
};
use crate::report::calibration;
use infergate::case::Case;
use infergate::worker::WorkerError;

/// Slowdowns that are injected unless told otherwise.
const SLOWDOWNS: [&str; 5] = ["1", "2", "3", "5", "10"];

/// Its flags.
pub fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").default_value(default).help(help).value_parser(value_parser!(usize))
    };
    Command::new("calibrate")
        .about("Find out how often the paired gate is wrong on this machine, and how small a slowdown it finds")
        .args(flags::measure_pairs())
        .arg(number("gates", "3", "Gates between identical builds"))
        .arg(number("power-blocks", "12", "Blocks with injected slowdowns; 12 are the fewest that give a share"))
        .arg(
            Arg::new("slowdowns")
                .long("slowdowns")
                .value_name("PERCENT")
                .value_delimiter(',')
                .default_values(SLOWDOWNS)
                .help("Slowdowns to inject into every timed step of head, in percent")
                .value_parser(value_parser!(f64)),
        )
        .arg(flags::program("worker", "Bench binary that was built already").help_heading("Bench target"))
        .arg(
            flags::program("other-worker", "A separate build of the same; every second gate compares with it")
                .help_heading("Bench target"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .help("Where it is kept [default: baselines/CLASS/calibration/ENGINE-MODEL.json, which later gates quote]")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("add")
                .long("add")
                .action(ArgAction::SetTrue)
                .help("Add to the calibration that is kept there already: hours differ, so spread it over some"),
        )
        .arg(flags::json("Write the summary here"))
        .after_help(
            "Examples:\n  cargo xtask calibrate\n  cargo xtask calibrate --gates 30 --power-blocks 24\n  \
             cargo xtask calibrate --gates 10 --power-blocks 0 --add\n  \
             cargo xtask calibrate --gates 0 --slowdowns 2,5 --cases decode/p128 --out power.json",
        )
}

/// Where the calibration of a machine class and a model is kept.
pub fn path(config: &Config, class: &str, engine: &infergate::engine::EngineInfo) -> PathBuf {
    folder(config, class).join(format!("{}-{}.json", file_word(&engine.name), file_word(&engine.model)))
}

/// Where those of a machine class are.
pub fn folder(config: &Config, class: &str) -> PathBuf {
    config.baselines.join(file_word(class)).join("calibration")
}

/// Measures, keeps what there is after every step, prints what it says.
pub fn run(matches: &ArgMatches) -> Result<i32> {
    let config = flags::config(matches)?;
    let plan = Plan::from(matches)?;
    let json = flags::path(matches, "json");
    early::check(&config)?;
    early::calibrations(&config)?;
    if flags::path(matches, "out").is_none() {
        ensure_writable(&folder(&config, &machine::detect().class).join("calibration.json"))?;
    }
    let worker = match flags::path(matches, "worker") {
        Some(worker) => worker,
        None => bench_target::build(&config.bench)?,
    };
    let other = flags::path(matches, "other-worker").unwrap_or_else(|| worker.clone());
    let same = request(&config, &worker, &worker)?;
    let separate = request(&config, &worker, &other)?;
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let line = progress::Line::new();
    let mut session = Session::begin(&same, &separate, worker != other, &line, &cancelled)?;
    let class = session.calibration.machine.class.clone();
    let out = flags::path(matches, "out").unwrap_or_else(|| path(&config, &class, &session.calibration.subject.engine));
    ensure_writable(&out)?;
    if matches.get_flag("add") && out.is_file() {
        session.add_to(read::<Calibration>(&out)?, &out)?;
    }
    let outcome = session.measure(&plan, &out, &line);
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
    write_json(&out, &session.calibration)?;
    let summary = summarise(&session.calibration);
    if let Some(json) = json {
        write_json(&json, &summary)?;
    }
    output::report(&calibration::text(&session.calibration, &summary));
    output::say(&format!("calibration: {}", out.display()));
    Ok(if session.calibration.partial { Outcome::Partial.exit_code() } else { 0 })
}

/// How much to measure.
struct Plan {
    gates: usize,
    power_blocks: usize,
    slowdowns: Vec<f64>,
}

impl Plan {
    fn from(matches: &ArgMatches) -> Result<Self> {
        let count = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or(0);
        let percents: Vec<f64> = matches.get_many::<f64>("slowdowns").into_iter().flatten().copied().collect();
        for percent in &percents {
            ensure!(
                percent.is_finite() && *percent > 0.0 && *percent <= 1000.0,
                "--slowdowns: {percent} is no slowdown in percent; give numbers above 0, for example 1,2,5"
            );
        }
        let (gates, power_blocks) = (count("gates"), count("power-blocks"));
        ensure!(gates + power_blocks > 0, "--gates 0 and --power-blocks 0 leave nothing to measure; ask for some");
        Ok(Self { gates, power_blocks, slowdowns: percents.iter().map(|percent| percent / 100.0).collect() })
    }
}

fn request(config: &Config, base: &Path, head: &Path) -> Result<PairedRequest> {
    let program = |path: &Path| Program { path: path.to_owned(), commit: None, dirty: None };
    Ok(PairedRequest {
        base: program(base),
        head: program(head),
        load: config.measured.load_request(),
        cases: config.measured.cases.clone(),
        prompt_text: config.measured.prompt.is_some().then(|| config.measured.prompt_text()).transpose()?,
        threshold: Some(config.threshold.unwrap_or(QUIET_THRESHOLD)),
        drift_tolerance: config.policy.drift_tolerance,
        allow_output_change: false,
        budget: None,
    })
}

struct Session<'a> {
    same: PairedRun<'a>,
    separate: Option<PairedRun<'a>>,
    cancelled: &'a AtomicBool,
    calibration: Calibration,
}

impl<'a> Session<'a> {
    fn begin(
        same: &'a PairedRequest,
        separate: &'a PairedRequest,
        two_builds: bool,
        line: &progress::Line,
        cancelled: &'a AtomicBool,
    ) -> Result<Self> {
        let mut show = |step: &infergate::progress::Progress| line.show(step);
        let same = PairedRun::begin(same, &mut show, cancelled)?;
        let separate = two_builds.then(|| PairedRun::begin(separate, &mut show, cancelled)).transpose()?;
        let receipt = same.receipt();
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
            power: Vec::new(),
        };
        Ok(Self { same, separate, cancelled, calibration })
    }

    /// Goes on with an earlier calibration of the same thing.
    fn add_to(&mut self, earlier: Calibration, out: &Path) -> Result<()> {
        let now = &self.calibration;
        let suite = |calibration: &Calibration| -> Vec<(Case, f64)> {
            calibration.cases.iter().map(|case| (case.id, case.threshold)).collect()
        };
        let engine = |calibration: &Calibration| {
            (calibration.subject.engine.name.clone(), calibration.subject.engine.model.clone())
        };
        let same = earlier.machine.class == now.machine.class
            && earlier.threads == now.threads
            && engine(&earlier) == engine(now)
            && suite(&earlier) == suite(now);
        ensure!(
            same,
            "{}: is of another machine class, engine, model, thread count or suite; leave --add out to begin anew",
            out.display()
        );
        self.calibration = Calibration { created: now.created.clone(), ..earlier };
        Ok(())
    }

    /// Gates first, of one file and of two builds in turn; then slowed blocks. The file holds each gate and block as soon as
    /// it is there.
    fn measure(&mut self, plan: &Plan, out: &Path, line: &progress::Line) -> Result<()> {
        for gate in 0..plan.gates {
            let separate_builds = gate % 2 == 1 && self.separate.is_some();
            let blocks = self.gate(separate_builds, &format!("gate {} of {}", gate + 1, plan.gates), line)?;
            self.calibration.gates.push(CalibrationGate { separate_builds, blocks });
            self.keep(out)?;
        }
        for done in 0..plan.power_blocks {
            let name = format!("slowed block {} of {}", done + 1, plan.power_blocks);
            let kept = self.calibration.power.len();
            let block = self.same.power_block(&plan.slowdowns, kept, &mut renamed(&name, line))?;
            self.calibration.power.push(block);
            self.keep(out)?;
        }
        Ok(())
    }

    fn gate(&mut self, separate_builds: bool, name: &str, line: &progress::Line) -> Result<Vec<BlockRecord>> {
        let run = match &mut self.separate {
            Some(separate) if separate_builds => separate,
            _ => &mut self.same,
        };
        let mut blocks = Vec::new();
        loop {
            let cases = open(&self.calibration.cases, &blocks);
            if cases.is_empty() {
                return Ok(blocks);
            }
            crate::paired::ensure_not(self.cancelled)?;
            blocks.push(run.block(&cases, blocks.len(), &mut renamed(name, line))?);
        }
    }

    /// A calibration that is cut short later is partial; until it ends, it may be.
    fn keep(&mut self, out: &Path) -> Result<()> {
        self.calibration.partial = true;
        write_json(out, &self.calibration).context("calibration")?;
        self.calibration.partial = false;
        Ok(())
    }
}

/// Cases that are not settled after `blocks`.
pub fn open(cases: &[PairedCase], blocks: &[BlockRecord]) -> Vec<Case> {
    let (ids, suite): (Vec<Case>, Vec<_>) = series(cases, blocks).into_iter().unzip();
    ids.into_iter().zip(outcomes(&suite)).filter(|(_, outcome)| outcome.is_none()).map(|(id, _)| id).collect()
}

fn renamed<'l>(name: &'l str, line: &'l progress::Line) -> impl FnMut(&infergate::progress::Progress) + 'l {
    move |step| {
        let label = format!("{name}, {}", step.label);
        line.show(&infergate::progress::Progress { label, ..step.clone() });
    }
}
