//! Flags of the keys of infergate.toml, and flags that several commands have.

use std::any::TypeId;
use std::marker::PhantomData;
use std::path::PathBuf;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::config::{self, BENCH_TARGET, Config, KEYS, Layer, current_folder, flag_of};

/// A command that takes some of the keys as flags.
pub trait TakesKeys {
    fn keys() -> Vec<Arg>;
}

/// The keys that were given as flags of the command `C`.
pub struct Keys<C> {
    /// What the flags say.
    pub given: Layer,
    command: PhantomData<C>,
}

impl<C> Keys<C> {
    /// `infergate.toml`, then the environment, then these flags.
    pub fn config(&self) -> Result<Config> {
        Config::load(&current_folder()?, &self.given)
    }

    /// Whether the key of this name was given as a flag.
    pub fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some()
    }
}

// By hand, since each command takes other keys.
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
        let mut given = Layer::default();
        for flag in C::keys() {
            let id = flag.get_id().as_str();
            let key =
                KEYS.into_iter().find(|key| *key == id && matches.value_source(id) == Some(ValueSource::CommandLine));
            let (Some(key), Some(words)) = (key, matches.get_many::<String>(id)) else { continue };
            let words: Vec<String> = words.cloned().collect();
            given.set_words(key, &words).map_err(|error| {
                let text = format!("--{}: {error:#}\n", flag.get_long().unwrap_or_default());
                clap::Error::raw(clap::error::ErrorKind::ValueValidation, text)
            })?;
        }
        Ok(Self { given, command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Bench binaries that were built already.
#[derive(Args)]
#[command(next_help_heading = BENCH_TARGET)]
#[group(skip)]
pub struct Workers {
    /// Bench binary that was built already
    #[arg(long)]
    pub worker: Option<PathBuf>,
    /// Memory bench binary that was built already
    #[arg(long)]
    pub memory_worker: Option<PathBuf>,
}

/// The flags of the keys of `T`. Their words are read with those of file and environment, not by the command's own parser.
pub fn of<T: Args>() -> Vec<Arg> {
    let words = |arg: Arg| {
        let is_switch = arg.get_default_values().first().is_some_and(|word| word == "true" || word == "false");
        let arg = arg.value_parser(value_parser!(String)).allow_hyphen_values(true);
        if is_switch { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg }
    };
    config::flags_of::<T>().into_iter().map(words).collect()
}

/// Keys of a command that measures: what, and how it is built.
pub fn of_suite() -> Vec<Arg> {
    [of::<config::WorkloadKeys>(), of::<config::SessionKeys>(), of::<config::BenchKeys>()].concat()
}

/// The ids of what makes no sense with a receipt that exists already.
pub fn ids_of_suite() -> Vec<String> {
    let ids = of_suite().into_iter().map(|arg| arg.get_id().to_string());
    ids.chain(["worker", "out"].map(str::to_owned)).collect()
}

/// As [`of_suite`], for commands that compare two workers block by block.
pub fn of_pairs() -> Vec<Arg> {
    let more = ["threshold", "mean_threshold", "widest", "base_folder", "bench.carry"];
    [of::<config::WorkloadKeys>(), of::<config::BenchKeys>(), some(&more)].concat()
}

/// What a stored run is measured and judged by, which has no meaning for a paired one.
pub const STORED: [&str; 3] = ["runs", "seconds_per_case", "require_baseline"];

/// The flags of these keys.
pub fn some(names: &[&str]) -> Vec<Arg> {
    let all = of::<config::AllKeys>().into_iter().filter(|arg| names.contains(&arg.get_id().as_str()));
    all.map(|arg| arg.help_heading("Settings")).collect()
}

/// The words of a key's default.
pub fn default_of(key: &str) -> Vec<String> {
    let default = |arg: Arg| arg.get_default_values().iter().map(|word| word.to_string_lossy().into()).collect();
    flag_of(key).map(default).unwrap_or_default()
}

/// Whether the value of a key is a text or a path, which can be anything.
pub fn is_text(key: &str) -> bool {
    flag_of(key).is_some_and(|arg| {
        let value = arg.get_value_parser().type_id();
        value == TypeId::of::<String>() || value == TypeId::of::<PathBuf>()
    })
}
