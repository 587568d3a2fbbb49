//! Flags made from the table of keys, and back into a [`Config`]; and flags that several commands have.

use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::config::keys::{Group, KEYS, Key, Kind};
use crate::config::{Config, Settings as _};

/// The heading of what says how a run is judged.
pub const JUDGING: &str = "How to judge";

/// A command that takes some of the keys as flags.
pub trait TakesKeys {
    fn keys() -> Vec<Arg>;
}

/// The keys that were given as flags of the command `C`, each with its words.
pub struct Keys<C> {
    /// With the name of its flag, which a command may have shortened.
    given: Vec<(&'static Key, String, Vec<String>)>,
    command: PhantomData<C>,
}

impl<C> Keys<C> {
    /// `infergate.toml`, then the environment, then these flags.
    pub fn config(&self) -> Result<Config> {
        self.over(Config::load(&env::current_dir().context("the current folder cannot be read")?)?)
    }

    /// `config`, and over it these flags.
    pub fn over(&self, mut config: Config) -> Result<Config> {
        for (key, flag, words) in &self.given {
            config.apply_text(key, words).with_context(|| format!("--{flag}"))?;
        }
        Ok(config)
    }

    /// Whether the key of this name was given as a flag.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(key, ..)| key.name == name)
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
        let given = |flag: &Arg| {
            let key = Key::find(flag.get_id().as_str())?;
            let words = matches.get_many::<String>(key.name)?.cloned().collect();
            Some((key, flag.get_long()?.to_owned(), words))
        };
        Ok(Self { given: C::keys().iter().filter_map(given).collect(), command: PhantomData })
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

/// The flags of the keys of a group.
pub fn of(group: Group) -> Vec<Arg> {
    let heading = match group {
        Group::Measure | Group::Session => "What to measure",
        Group::Build => "Bench target",
        Group::Memory => "Memory phase",
        Group::JudgeStored | Group::Judge => JUDGING,
        Group::Paired => "Against a revision, on this machine",
    };
    KEYS.iter().filter(|key| key.group == group).map(|key| arg(key).help_heading(heading)).collect()
}

pub fn ids(groups: &[Group]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| groups.contains(&key.group)).map(|key| key.name)
}

/// Keys of a command that measures: what, and how it is built.
pub fn measure() -> Vec<Arg> {
    [of(Group::Measure), of(Group::Session), of(Group::Build)].concat()
}

/// The ids of what makes no sense beside a receipt that exists already.
pub fn measure_ids() -> impl Iterator<Item = &'static str> {
    ids(&[Group::Measure, Group::Session, Group::Build]).chain(["worker", "out"])
}

/// As [`measure`], for commands that compare two workers block by block.
pub fn measure_pairs() -> Vec<Arg> {
    [of(Group::Measure), of(Group::Build), one("threshold"), one("mean_threshold"), one("widest")].concat()
}

/// The ids of what a stored run is measured and judged by, which has no meaning for a paired one.
pub fn stored_ids() -> impl Iterator<Item = &'static str> {
    ids(&[Group::Session, Group::JudgeStored])
}

/// Keys of a command that judges.
pub fn judge() -> Vec<Arg> {
    [of(Group::JudgeStored), of(Group::Judge)].concat()
}

/// The flag of one key.
pub fn one(name: &'static str) -> Vec<Arg> {
    Key::find(name).into_iter().map(|key| arg(key).help_heading("Settings")).collect()
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

fn arg(key: &'static Key) -> Arg {
    let default = key.default.filter(|default| *default != "[]").map(|default| format!(" [default: {default}]"));
    let help = format!("{}{}", key.doc, default.unwrap_or_default());
    let arg = Arg::new(key.name).long(key.flag()).visible_aliases(key.alias).value_name(key.value).help(help);
    match key.kind {
        Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Kind::List => arg.action(ArgAction::Append),
        Kind::Text | Kind::Path => arg,
        Kind::Count(..) | Kind::Number(..) | Kind::Ratio(..) => arg.allow_negative_numbers(true),
    }
}

/// The `.json` files straight in `folder`, sorted; none where there is no such folder.
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
