//! Flags made from the table of keys, and back into a [`Config`]; and flags that several commands have.

use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

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
pub const JUDGING: &str = "How to judge";

/// A command that takes some of the keys as flags.
pub trait TakesKeys {
    /// Their flags.
    fn keys() -> Vec<Arg>;
}

/// The keys that were given as flags of the command `C`, each with its words.
pub struct Keys<C> {
    given: Vec<(&'static Key, Vec<String>)>,
    command: PhantomData<C>,
}

impl<C> Keys<C> {
    /// `infergate.toml`, then the environment, then these flags.
    ///
    /// # Errors
    /// As [`Config::load`]; a flag's value out of range, by the flag.
    pub fn config(&self) -> Result<Config> {
        self.over(Config::load(&env::current_dir().context("the current folder cannot be read")?)?)
    }

    /// `config`, and over it these flags.
    ///
    /// # Errors
    /// A flag's value out of range, by the flag.
    pub fn over(&self, mut config: Config) -> Result<Config> {
        for (key, words) in &self.given {
            config.apply_text(key, words).with_context(|| format!("--{}", key.flag()))?;
        }
        Ok(config)
    }

    /// Whether the key of this name was given as a flag.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(key, _)| key.name == name)
    }
}

// By hand, since which flags there are is in the table of keys.
impl<C: TakesKeys> Args for Keys<C> {
    fn augment_args(command: Command) -> Command {
        command.args(C::keys())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: TakesKeys> FromArgMatches for Keys<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = C::keys();
        let known = KEYS.iter().filter(|key| flags.iter().any(|flag| flag.get_id() == key.name));
        let words = |key: &'static Key| Some((key, matches.get_many::<String>(key.name)?.cloned().collect()));
        Ok(Self { given: known.filter_map(words).collect(), command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Bench binaries that were built already.
#[derive(Args)]
#[command(next_help_heading = "Bench target")]
#[group(skip)]
pub struct Workers {
    /// Bench binary that was built already
    #[arg(long, value_name = "PATH")]
    pub worker: Option<PathBuf>,
    /// Memory bench binary that was built already
    #[arg(long, value_name = "PATH")]
    pub memory_worker: Option<PathBuf>,
}

/// Keys of a command that measures: what, and how it is built.
pub fn measure() -> Vec<Arg> {
    [args(MEASURE, "What to measure"), args(BUILD, "Bench target")].concat()
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

/// Keys of a command that judges.
pub fn judge() -> Vec<Arg> {
    args(JUDGE, JUDGING)
}

/// Keys of the command that measures a load run and judges it.
pub fn judge_load() -> Vec<Arg> {
    args(JUDGE_LOAD, JUDGING)
}

/// Keys of a command that runs the memory phase beside other things.
pub fn memory() -> Vec<Arg> {
    args(MEMORY, "Memory phase")
}

/// As [`memory`], for the command that does nothing else: `--runs`, `--case`.
pub fn memory_alone() -> Vec<Arg> {
    let what: Vec<&str> = MEASURE.iter().copied().filter(|key| !SESSION.contains(key)).collect();
    let build: Vec<&str> = BUILD.iter().copied().filter(|key| *key != "bench.target").collect();
    let short = |arg: Arg| {
        let long = arg.get_long().unwrap_or_default().trim_start_matches("memory-").to_owned();
        arg.long(long)
    };
    let memory = memory().into_iter().map(short).collect();
    [memory, args(&what, "What to follow"), args(&build, "Bench target")].concat()
}

/// The flag of one key.
pub fn one(name: &'static str) -> Vec<Arg> {
    args(&[name], "Settings")
}

/// A flag's value that is one of these words, each with what it means.
pub fn one_of<T, const N: usize>(words: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.each_ref().map(|(word, _)| *word)).try_map(move |given| {
        let found = words.iter().find(|(word, _)| *word == given);
        found.map(|(_, meaning)| meaning.clone()).ok_or("is none of these words")
    })
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
