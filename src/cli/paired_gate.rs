//! `gate --against REV`: base and head in turn, and a verdict that may block a merge.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};

use super::{bench_target, calibrate, flags, output, progress, revision};
use crate::config::Config;
use crate::gate::paired::{MAX_BLOCKS, PASS_LOOKS, PairedPolicy, Summary, judge, smallest_slowdown, summarise};
use crate::paired::{PairedRequest, PairedRun, Program};
use crate::receipt::{Calibration, Outcome, PairedReceipt, Verdict, ensure_writable, read_calibration, write_json};
use crate::report::{calibration, paired};
use crate::worker::NotComparable;

/// Flags that make a gate a paired one, and those that only make sense then.
pub fn args() -> Vec<Arg> {
    let heading = "Against a revision, on this machine";
    let needs = |arg: Arg| arg.help_heading(heading).requires("paired");
    vec![
        Arg::new("against")
            .long("against")
            .value_name("REV")
            .help("Build this git revision too and compare with it, process by process in turn")
            .help_heading(heading)
            .group("paired")
            .conflicts_with_all(["base-bin", "head-bin"]),
        flags::program("base-bin", "Bench binary to compare with, built elsewhere")
            .help_heading(heading)
            .group("paired")
            .requires("head-bin"),
        flags::program("head-bin", "Bench binary to judge, built elsewhere").help_heading(heading).requires("base-bin"),
        needs(
            Arg::new("budget")
                .long("budget")
                .value_name("TIME")
                .help("Measure for at most this long: 90s, 5m, 1h (builds not counted)"),
        ),
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
    ]
}

/// Whether these flags ask for a paired gate.
pub fn is_asked(matches: &ArgMatches) -> bool {
    matches.contains_id("against") || matches.contains_id("base-bin")
}

/// Builds both, measures, judges, prints.
pub fn run(matches: &ArgMatches, config: &Config) -> Result<i32> {
    ensure!(
        config.policy.targets.is_empty() || !matches.contains_id("targets"),
        "--targets judges a stored run; leave it out beside --against"
    );
    let out = flags::path(matches, "out").unwrap_or_else(|| config.target_folder().join("paired.json"));
    let json = flags::path(matches, "json");
    for path in [Some(&out), json.as_ref()].into_iter().flatten() {
        ensure_writable(path)?;
    }
    let budget = matches.get_one::<String>("budget").map(|text| duration(text)).transpose()?;
    let cancelled = progress::cancelled_by_ctrl_c()?;
    let (base, head) = programs(matches, config)?;
    let request = request(config, matches, base, head, budget)?;
    let line = progress::Line::new();
    let measured = measure(&request, config, matches.get_flag("power"), &line, &cancelled);
    line.finish();
    let (receipt, own_errors) = match measured {
        Ok(measured) => measured,
        Err(error) if error.is::<NotComparable>() => {
            output::error(&error);
            return Ok(Outcome::NotComparable.exit_code());
        }
        Err(error) if error.is::<crate::worker::Interrupted>() => {
            bail!("interrupted before the first block; nothing was measured")
        }
        Err(error) => return Err(error),
    };
    write_json(&out, &receipt)?;
    let mut verdict = judge(&receipt, policy(matches));
    verdict.notes.extend(own_errors);
    finish(&receipt, &verdict, json, &out)
}

fn finish(receipt: &PairedReceipt, verdict: &Verdict, json: Option<PathBuf>, out: &std::path::Path) -> Result<i32> {
    if let Some(json) = json {
        write_json(&json, verdict)?;
    }
    output::say(&format!("receipt: {}", out.display()));
    output::report(&paired::verdict(receipt, verdict));
    Ok(verdict.exit_code)
}

fn policy(matches: &ArgMatches) -> PairedPolicy {
    PairedPolicy { allow_output_change: matches.get_flag("allow-output-change") }
}

/// Both workers: given, or built from the revision and from the working tree.
fn programs(matches: &ArgMatches, config: &Config) -> Result<(Program, Program)> {
    let given = |path| Program { path, commit: None, dirty: None };
    if let (Some(base), Some(head)) = (flags::path(matches, "base-bin"), flags::path(matches, "head-bin")) {
        return Ok((given(base), given(head)));
    }
    let revision = matches.get_one::<String>("against").context("neither --against nor --base-bin was given")?;
    let head_bin = || -> Result<Program> {
        let path = bench_target::build(&config.bench)?;
        let (commit, dirty) = crate::build_info::git(std::path::Path::new("."));
        Ok(Program { path, commit, dirty })
    };
    // What cannot be built at all should not cost the other build first: the revision is checked before anything is compiled.
    let tree = revision::checkout(revision, config)?;
    let base = revision::build(&tree, config)?;
    Ok((base, head_bin()?))
}

fn request(
    config: &Config,
    matches: &ArgMatches,
    base: Program,
    head: Program,
    budget: Option<Duration>,
) -> Result<PairedRequest> {
    Ok(PairedRequest {
        base,
        head,
        load: config.load_request(),
        cases: config.cases.clone(),
        prompt_text: config.prompt.is_some().then(|| config.prompt_text()).transpose()?,
        threshold: config.threshold,
        allow_output_change: matches.get_flag("allow-output-change"),
        budget,
    })
}

fn measure(
    request: &PairedRequest,
    config: &Config,
    power: bool,
    line: &progress::Line,
    cancelled: &std::sync::atomic::AtomicBool,
) -> Result<(PairedReceipt, Option<String>)> {
    let mut show = |step: &crate::suite::Progress| line.show(step);
    let mut run = PairedRun::begin(request, &mut show, cancelled)?;
    let calibrated = find_calibration(config, run.receipt())?;
    if let Some((_, summary)) = &calibrated {
        let known = summary.noise.iter().filter_map(|noise| Some((noise.case, noise.std?)));
        run.expect(&known.collect::<BTreeMap<_, _>>());
    }
    let blocks = run.blocks_in_budget().unwrap_or(MAX_BLOCKS).min(MAX_BLOCKS);
    line.finish();
    output::say(&paired::thresholds(run.receipt()));
    if power {
        output::report(&paired::power(run.receipt(), blocks, |case, std, tests| {
            smallest_slowdown(case.threshold.ln(), std, blocks, tests)
        }));
    }
    let fewest = PASS_LOOKS[0];
    ensure!(
        blocks >= fewest,
        "--budget: the time left after the pilot holds {blocks} blocks and a verdict takes at least {fewest}, about {:.0} s; \
         give more time or fewer --cases",
        run.block_ns() as f64 * fewest as f64 / 1e9
    );
    let receipt = run.run(&|receipt| calibrate::open(&receipt.cases, &receipt.blocks), &mut show)?;
    Ok((receipt, own_errors(calibrated.as_ref())))
}

/// This machine class's calibration of this model, where there is one. One that cannot be read is an error, not a silence.
fn find_calibration(config: &Config, receipt: &PairedReceipt) -> Result<Option<(Calibration, Summary)>> {
    let path = calibrate::path(config, &receipt.machine.class, &receipt.head.engine);
    if !path.is_file() {
        return Ok(None);
    }
    let calibration = read_calibration(&path)?;
    let same = calibration.machine.class == receipt.machine.class && calibration.threads == receipt.threads;
    Ok(same.then(|| summarise(&calibration)).map(|summary| (calibration, summary)))
}

fn own_errors(calibrated: Option<&(Calibration, Summary)>) -> Option<String> {
    match calibrated {
        Some((calibration, summary)) => calibration::quote(calibration, summary),
        None => Some(
            "this gate's own error rate was never measured on this machine class; find it with `cargo xtask calibrate`"
                .into(),
        ),
    }
}

/// `90s`, `5m`, `1h30m`, by the library that reads dates here too.
fn duration(text: &str) -> Result<Duration> {
    let span: jiff::SignedDuration =
        text.parse().with_context(|| format!("--budget: '{text}' is no time; write 90s, 5m or 1h30m"))?;
    Duration::try_from(span)
        .ok()
        .filter(|duration| !duration.is_zero())
        .with_context(|| format!("--budget: '{text}' is no time to measure in; write 90s, 5m or 1h30m"))
}
