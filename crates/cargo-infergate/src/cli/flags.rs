//! Flags made from the table of keys, and back into a [`Config`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::config::keys::{KEYS, Key, Kind};
use crate::config::{Config, Settings as _};

/// Keys that say what is measured.
const MEASURE: &[&str] =
    &["model", "dtype", "threads", "seed", "options", "prompt", "cases", "runs", "seconds_per_case"];
/// Of these, the ones of one session against a baseline.
const SESSION: &[&str] = &["runs", "seconds_per_case"];
/// Keys that say how the bench target is built.
const BUILD: &[&str] = &[
    "bench.package",
    "bench.target",
    "bench.memory_target",
    "bench.features",
    "bench.default_features",
    "bench.profile",
];
/// Keys of the memory phase.
const MEMORY: &[&str] = &["memory.case", "memory.runs", "memory.growth_limit_bytes"];
/// Keys that say how it is judged.
const JUDGE: &[&str] = &[
    "alpha",
    "stored_floor",
    "cv_limit",
    "min_sessions",
    "require_baseline",
    "drift_tolerance",
    "counter_tolerance",
    "targets",
    "baselines",
];
/// Of these, the ones that judge a paired run too.
const JUDGE_BOTH: &[&str] = &["drift_tolerance", "counter_tolerance", "targets", "baselines"];
/// And the ones that judge a load run.
const JUDGE_LOAD: &[&str] = &["alpha", "stored_floor", "min_sessions", "require_baseline", "baselines"];
/// Their heading.
const JUDGING: &str = "How to judge";

/// Flags of a command that measures: what, and how it is built.
pub fn measure() -> Vec<Arg> {
    let worker = program("worker", "Bench binary that was built already");
    [args(MEASURE, "What to measure"), args(BUILD, "Bench target"), vec![worker.help_heading("Bench target")]].concat()
}

/// The ids of what makes no sense beside a receipt that exists already.
pub fn measure_ids() -> impl Iterator<Item = &'static str> {
    MEASURE.iter().chain(BUILD).copied().chain(["worker", "out"])
}

/// As [`measure`], for commands that compare two workers block by block.
pub fn measure_pairs() -> Vec<Arg> {
    let what: Vec<&str> = MEASURE.iter().copied().filter(|key| !SESSION.contains(key)).collect();
    [args(&what, "What to measure"), args(BUILD, "Bench target"), one("threshold"), one("mean_threshold")].concat()
}

/// The ids of what a stored run is measured and judged by, which has no meaning for a paired one.
pub fn stored_ids() -> impl Iterator<Item = &'static str> {
    SESSION.iter().chain(JUDGE).copied().filter(|id| !JUDGE_BOTH.contains(id))
}

/// Flags of a command that judges.
pub fn judge() -> Vec<Arg> {
    args(JUDGE, JUDGING)
}

/// Flags of the command that measures a load run and judges it.
pub fn judge_load() -> Vec<Arg> {
    let baseline = Arg::new("baseline")
        .long("baseline")
        .value_name("FILE")
        .help(
            "Load baseline to judge the run by [default: the one of this machine class and model, where there is one]",
        )
        .value_parser(value_parser!(PathBuf));
    [vec![baseline.help_heading(JUDGING)], args(JUDGE_LOAD, JUDGING)].concat()
}

/// Flags of a command that runs the memory phase beside other things.
pub fn memory() -> Vec<Arg> {
    [args(MEMORY, "Memory phase"), vec![memory_worker()]].concat()
}

/// `--memory-worker PATH`.
pub fn memory_worker() -> Arg {
    program("memory-worker", "Memory bench binary that was built already").help_heading("Bench target")
}

/// As [`memory`], for the command that does nothing else: `--runs`, `--case`, `--worker`.
pub fn memory_alone() -> Vec<Arg> {
    let what: Vec<&str> = MEASURE.iter().copied().filter(|key| !SESSION.contains(key)).collect();
    let build: Vec<&str> = BUILD.iter().copied().filter(|key| *key != "bench.target").collect();
    let short = |arg: Arg| {
        let long = arg.get_long().unwrap_or_default().trim_start_matches("memory-").to_owned();
        arg.long(long)
    };
    let memory = args(MEMORY, "Memory phase").into_iter().map(short).collect();
    [memory, args(&what, "What to follow"), args(&build, "Bench target"), vec![memory_worker().long("worker")]].concat()
}

/// The flag of one key.
pub fn one(name: &'static str) -> Vec<Arg> {
    args(&[name], "Settings")
}

/// A flag that names a bench binary.
pub fn program(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("PATH").help(help).value_parser(value_parser!(PathBuf))
}

/// `--out FILE`, where the receipt goes.
pub fn out() -> Arg {
    Arg::new("out")
        .long("out")
        .value_name("FILE")
        .help("Where the receipt goes [default: target/infergate/receipt.json]")
        .value_parser(value_parser!(PathBuf))
}

/// `--json FILE`.
pub fn json(what: &'static str) -> Arg {
    let help = format!("{what}; - is stdout, which then has nothing else");
    Arg::new("json").long("json").value_name("FILE").help(help).value_parser(value_parser!(PathBuf))
}

/// `--quiet`, of every command.
pub fn quiet() -> Arg {
    Arg::new("quiet")
        .long("quiet")
        .short('q')
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Say errors and the verdict's line alone")
}

fn args(names: &[&str], heading: &'static str) -> Vec<Arg> {
    let known = names.iter().filter_map(|name| Key::find(name));
    known.map(|key| arg(key).help_heading(heading)).collect()
}

fn arg(key: &'static Key) -> Arg {
    let default = key.default.filter(|default| *default != "[]").map(|default| format!(" [default: {default}]"));
    // One at a time it reads better in the singular; and short where nothing else has the name.
    let other_name = match key.name {
        "options" => Some("option"),
        "server.users" => Some("users"),
        _ => None,
    };
    let arg = Arg::new(key.name).long(key.flag()).visible_aliases(other_name).help(format!(
        "{}{}",
        key.doc,
        default.unwrap_or_default()
    ));
    match key.kind {
        Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL"),
        Kind::List => arg.action(ArgAction::Append).value_name(value_name(key)),
        Kind::Text => arg.value_name(value_name(key)),
        Kind::Count(..) | Kind::Number(..) | Kind::Ratio(..) => arg.value_name("N").allow_negative_numbers(true),
    }
}

fn value_name(key: &Key) -> &'static str {
    match key.name {
        "model" => "SPEC",
        "memory.case" => "ID",
        "cases" => "GLOB",
        "options" => "NAME=VALUE",
        "targets" => "LIMIT",
        "anchor" => "REV",
        "prompt" | "baselines" | "base_folder" => "PATH",
        _ => "NAME",
    }
}

/// `infergate.toml`, then the environment, then this command's flags.
///
/// # Errors
/// As [`Config::load`]; a flag's value out of range, by the flag.
pub fn config(matches: &ArgMatches) -> Result<Config> {
    over(Config::load(&env::current_dir().context("the current folder cannot be read")?)?, matches)
}

/// `config`, and over it this command's flags.
///
/// # Errors
/// A flag's value out of range, by the flag.
pub fn over(mut config: Config, matches: &ArgMatches) -> Result<Config> {
    for key in KEYS {
        if let Ok(Some(words)) = matches.try_get_many::<String>(key.name) {
            let words: Vec<String> = words.cloned().collect();
            config.apply_text(key, &words).with_context(|| format!("--{}", key.flag()))?;
        }
    }
    Ok(config)
}

/// The path of the flag `name`, if it was given.
pub fn path(matches: &ArgMatches, name: &str) -> Option<PathBuf> {
    matches.get_one::<PathBuf>(name).cloned()
}

/// The `.json` files straight in `folder`, sorted; none where there is no such folder.
///
/// # Errors
/// A folder that is there and cannot be read.
pub fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = entries(folder)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    Ok(paths)
}

/// Everything straight in `folder`, sorted; nothing where there is no such folder.
///
/// # Errors
/// A folder that is there and cannot be read: what is in it would be passed over in silence.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths: Vec<PathBuf> = paths.with_context(|| format!("{}: cannot be read", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// Whether anything stands at `path`, be it no file, a link to nowhere, or one that cannot be read: reading it says so.
pub fn is_there(path: &Path) -> bool {
    let missing = |error: &std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    path.symlink_metadata().map_or_else(|error| !missing(&error), |_| true)
}
