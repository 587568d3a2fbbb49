//! `gate --against REV`: base and head in turn, and a verdict that may block a merge.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};

use super::git::commit_of;
use super::revision::{Slot, Tree};
use super::{bench_target, calibrate, early, flags, memory, output, outputs, progress, terms};
use crate::config::Config;
use crate::gate::paired::{
    MAX_BLOCKS, PairedPolicy, block_noise, false_alarms, fewest_to_pass, judge, open, smallest_slowdown,
};
use crate::paired::{AnchorRequest, PairedRequest, PairedRun, Program, ensure_not};
use crate::receipt::{Calibration, Note, Outcome, PairedReceipt, ensure_writable, read, write_json};
use crate::report::{calibration, paired, words};
use infergate::worker::WorkerError;

/// Flags that make a gate a paired one, and those that only make sense then.
pub fn args() -> Vec<Arg> {
    let heading = "Against a revision, on this machine";
    let needs = |arg: Arg| arg.help_heading(heading).requires("paired");
    let paired = |arg: Arg| arg.help_heading(heading).group("paired").conflicts_with_all(flags::stored_ids());
    let mut args = vec![
        paired(
            Arg::new("against")
                .long("against")
                .value_name("REV")
                .help("Build this git revision too and compare with it, process by process in turn")
                .conflicts_with_all(["base-bin", "head-bin"]),
        ),
        paired(flags::program("base-bin", "Bench binary to compare with, built elsewhere").requires("head-bin")),
        flags::program("head-bin", "Bench binary to judge, built elsewhere").help_heading(heading).requires("base-bin"),
        needs(budget()),
        needs(
            Arg::new("power")
                .long("power")
                .action(ArgAction::SetTrue)
                .help("Before measuring, print the smallest slowdown each case can show in that time"),
        ),
        needs(
            Arg::new("allow-output-change")
                .long("allow-output-change")
                .action(ArgAction::SetTrue)
                .help("Show a changed output and judge time all the same"),
        ),
    ];
    args.push(needs(
        flags::program("anchor-bin", "Bench binary that head may not drift away from, built elsewhere")
            .requires("base-bin"),
    ));
    args.extend(["threshold", "anchor", "anchor_limit", "base_folder"].into_iter().flat_map(flags::one).map(needs));
    args
}

/// `--budget TIME`.
pub fn budget() -> Arg {
    Arg::new("budget")
        .long("budget")
        .value_name("TIME")
        .help("Measure for at most this long: 90s, 5m, 1h (builds not counted)")
}

/// Whether these flags ask for a paired gate.
pub fn is_asked(matches: &ArgMatches) -> bool {
    matches.contains_id("against") || matches.contains_id("base-bin")
}

/// Builds both, measures, judges, prints. What cannot be compared is a verdict, not a failure.
pub fn run(matches: &ArgMatches, config: &Config) -> Result<i32> {
    let error = match compare(matches, config) {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    let outcome = match WorkerError::find(&error) {
        Some(WorkerError::NotComparable(_)) => Outcome::NotComparable,
        Some(WorkerError::Invalid(_)) => Outcome::Invalid,
        Some(WorkerError::Interrupted(_)) => bail!("interrupted before the first block; nothing was measured"),
        _ => return Err(error),
    };
    output::error(&error);
    Ok(outcome.exit_code())
}

fn compare(matches: &ArgMatches, config: &Config) -> Result<i32> {
    let out = flags::path(matches, "out").unwrap_or_else(|| config.measured.target_folder().join("paired.json"));
    let json = flags::path(matches, "json");
    outputs::fresh(&out)?;
    ensure_writable(&config.measured.target_folder().join("memory.json"))?;
    early::check(config)?;
    early::targets(config)?;
    early::calibrations(config)?;
    let asked = Asked {
        budget: matches.get_one::<String>("budget").map(|text| duration(text)).transpose()?,
        allow_output_change: matches.get_flag("allow-output-change"),
        power: matches.get_flag("power"),
    };
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let programs = programs(matches, config);
    ensure_not(&cancelled)?;
    let Programs { base, head, anchor, base_memory, head_memory, notes } = programs?;
    let request = request(config, base, head, anchor, &asked)?;
    let line = progress::Line::new();
    let measured = measure(&request, config, asked.power, &line, &cancelled);
    line.finish();
    let (mut receipt, own_errors) = measured?;
    let more = !receipt.partial && (base_memory.is_some() || head_memory.is_some());
    // On disk it is partial until its last phase is in it.
    write_json(&out, &PairedReceipt { partial: receipt.partial || more, ..receipt.clone() })?;
    if more {
        memory::attach_to_pair(config, base_memory, head_memory, &mut receipt)?;
        write_json(&out, &receipt)?;
    }
    let policy = PairedPolicy { allow_output_change: asked.allow_output_change, ..PairedPolicy::from(&config.policy) };
    let mut verdict = judge(&receipt, &policy);
    // First of all notes: whoever reads only one should read these.
    verdict.notes.splice(0..0, notes);
    verdict.notes.extend(own_errors.map(Note::from));
    if let Some(json) = json {
        write_json(&json, &verdict)?;
    }
    output::say(&format!("receipt: {}", out.display()));
    output::report(&paired::verdict(&receipt, &verdict));
    Ok(verdict.exit_code)
}

/// How a paired run is to go.
pub struct Asked {
    /// Time to measure in.
    pub budget: Option<Duration>,
    /// Time cases whose output changed, too.
    pub allow_output_change: bool,
    /// Say beforehand what can be shown.
    pub power: bool,
}

/// The workers of both sides; those that count their heap where there are some.
struct Programs {
    base: Program,
    head: Program,
    anchor: Option<AnchorRequest>,
    base_memory: Option<Program>,
    head_memory: Option<Program>,
    /// What head changes of the gate, and what differs in how both were built.
    notes: Vec<Note>,
}

/// All workers: given, or built from the revision and from the working tree.
fn programs(matches: &ArgMatches, config: &Config) -> Result<Programs> {
    let given = |path: std::path::PathBuf| Program { path, commit: None, dirty: None };
    let head_memory = flags::path(matches, "memory-worker").map(given);
    if let (Some(base), Some(head)) = (flags::path(matches, "base-bin"), flags::path(matches, "head-bin")) {
        let (base, head) = (given(base), given(head));
        let limit = config.anchor_limit;
        let anchor = flags::path(matches, "anchor-bin");
        let anchor = anchor.map(|path| AnchorRequest { program: Some(given(path)), limit });
        let mut notes = Vec::new();
        if let (Some(revision), None) = (&config.anchor, &anchor) {
            let text = format!("anchor {revision} is not measured beside given binaries; give --anchor-bin");
            notes.push(Note::from(text));
        }
        return Ok(Programs { base, head, anchor, base_memory: None, head_memory, notes });
    }
    let revision = matches.get_one::<String>("against").context("neither --against nor --base-bin was given")?;
    // What cannot be built at all should not cost the other build first: the revision is checked before anything is compiled.
    let tree = Tree::checkout(revision, Slot::Base, config)?;
    let mut notes = head_changes(&tree)?;
    if let Some(laid) = tree.lay_harness(config)? {
        output::say(&laid);
        notes.push(Note::from(laid));
    }
    let anchor_tree = match &config.anchor {
        // Base's own commit is not measured twice.
        Some(revision) if commit_of(std::path::Path::new("."), revision)? != tree.commit => {
            Some(Tree::checkout(revision, Slot::Anchor, config)?)
        }
        _ => None,
    };
    let base = tree.build(config)?;
    let anchor_program = anchor_tree.map(|tree| tree.build(config)).transpose()?;
    let anchor = config.anchor.as_ref().map(|_| AnchorRequest { program: anchor_program, limit: config.anchor_limit });
    let head = bench_target::worker(&config.bench, flags::path(matches, "worker"))?;
    let head_memory = memory::worker(config, matches)?;
    // Also where head has none any more: what base counts must not escape the gate by a deleted bench.
    let built_here = flags::path(matches, "worker").is_none();
    let base_memory = if head_memory.is_some() || built_here { tree.build_memory(config)? } else { None };
    if built_here {
        notes.extend(tree.unlocked_dependencies()?.map(Note::from));
    }
    Ok(Programs { base, head, anchor, base_memory, head_memory, notes })
}

/// What head's infergate.toml says otherwise than base's; said at once, too.
fn head_changes(base: &Tree) -> Result<Vec<Note>> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let notes: Vec<Note> = match terms::changes(&base.folder()?, &here) {
        Ok(changes) => changes,
        Err(error) => {
            vec![Note::from(format!("base's infergate.toml cannot be compared with head's: {error:#}"))]
        }
    };
    notes.iter().for_each(|note| output::say(&words::note(note)));
    Ok(notes)
}

/// What to measure, of these two workers.
///
/// # Errors
/// When the prompt's file cannot be read.
pub fn request(
    config: &Config,
    base: Program,
    head: Program,
    anchor: Option<AnchorRequest>,
    asked: &Asked,
) -> Result<PairedRequest> {
    Ok(PairedRequest {
        base,
        head,
        anchor,
        load: config.measured.load_request(),
        cases: config.measured.cases.clone(),
        prompt_text: config.measured.prompt.is_some().then(|| config.measured.prompt_text()).transpose()?,
        threshold: config.threshold,
        drift_tolerance: config.policy.drift_tolerance,
        allow_output_change: asked.allow_output_change,
        budget: asked.budget,
    })
}

/// Measures until every case is settled; also what this gate knows of its own errors here.
///
/// # Errors
/// As [`PairedRun::begin`] and [`PairedRun::run`]; a budget that holds no verdict.
pub fn measure(
    request: &PairedRequest,
    config: &Config,
    power: bool,
    line: &progress::Line,
    cancelled: &AtomicBool,
) -> Result<(PairedReceipt, Option<String>)> {
    let mut show = |step: &infergate::progress::Progress| line.show(step);
    let mut run = PairedRun::begin(request, &mut show, cancelled)?;
    let calibrated = find_calibration(config, run.receipt())?;
    if let Some(calibration) = &calibrated {
        let known = block_noise(calibration).into_iter().filter_map(|noise| Some((noise.case, noise.std?)));
        run.expect(&known.collect::<BTreeMap<_, _>>());
    }
    let blocks = run.blocks_in_budget().unwrap_or(MAX_BLOCKS).min(MAX_BLOCKS);
    line.above(|| {
        output::say(&paired::thresholds(run.receipt()));
        if power {
            output::report(&paired::power(run.receipt(), blocks, |case, std, tests| {
                smallest_slowdown(case.threshold.ln(), std, blocks, tests)
            }));
        }
    });
    let fewest = fewest_to_pass();
    ensure!(
        blocks >= fewest,
        "--budget: the time left after the pilot holds {blocks} blocks and a verdict takes at least {fewest}, about {:.0} s; \
         give more time or fewer --cases",
        run.block_ns() as f64 * fewest as f64 / 1e9
    );
    let receipt = run.run(&open, &mut show)?;
    Ok((receipt, own_errors(calibrated.as_ref())))
}

/// This machine class's calibration of this model, where there is one. One that cannot be read is an error, not a silence.
fn find_calibration(config: &Config, receipt: &PairedReceipt) -> Result<Option<Calibration>> {
    let path = calibrate::path(config, &receipt.machine.class, &receipt.head.engine);
    if !flags::is_there(&path) {
        return Ok(None);
    }
    let calibration = read::<Calibration>(&path)?;
    let same = calibration.machine.class == receipt.machine.class && calibration.threads == receipt.threads;
    Ok(same.then_some(calibration))
}

fn own_errors(calibrated: Option<&Calibration>) -> Option<String> {
    match calibrated {
        Some(calibration) => calibration::quote(calibration, &false_alarms(calibration)),
        None => Some(
            "this gate's own error rate was never measured on this machine class; find it with the command `calibrate`"
                .into(),
        ),
    }
}

/// `90s`, `5m`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration> {
    let duration = humantime::parse_duration(text).ok().filter(|duration| !duration.is_zero());
    duration.with_context(|| format!("--budget: '{text}' is no time to measure in; write 90s, 5m or 1h30m"))
}
