//! Flags of the keys of infergate.toml, and flags that several commands have.

use std::any::TypeId;
use std::path::PathBuf;

use clap::{Arg, Args, value_parser};

use crate::config::{self, flag_of};

/// Bench binaries that were built already.
#[derive(Args)]
#[command(next_help_heading = "What to measure")]
#[group(skip)]
pub struct Workers {
    /// Bench binary that was built already
    #[arg(long)]
    pub worker: Option<PathBuf>,
    /// Memory bench binary that was built already
    #[arg(long)]
    pub memory_worker: Option<PathBuf>,
}

/// The flags of the keys of `T`. Their values are parsed with those of file and environment, not by the command's own parser.
pub fn flags_of_keys<T: Args>() -> Vec<Arg> {
    let words = |arg: Arg| {
        let is_switch = arg.get_default_values().first().is_some_and(|word| word == "true" || word == "false");
        let arg = arg.value_parser(value_parser!(String)).allow_hyphen_values(true);
        if is_switch { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg }
    };
    config::flags_of::<T>().into_iter().map(words).collect()
}

/// The keys of a command that measures a suite: what, and how it is built.
pub fn of_suite() -> Vec<Arg> {
    [
        flags_of_keys::<config::WorkloadKeys>(),
        flags_of_keys::<config::SessionKeys>(),
        flags_of_keys::<config::BenchKeys>(),
    ]
    .concat()
}

/// The ids of flags that make no sense with a receipt that exists already.
pub fn ids_of_suite() -> Vec<String> {
    let ids = of_suite().into_iter().map(|arg| arg.get_id().to_string());
    ids.chain(["worker", "out"].map(str::to_owned)).collect()
}

/// As [`of_suite`], for commands that compare two workers block by block.
pub fn of_pairs() -> Vec<Arg> {
    let more = ["threshold", "mean_threshold", "widest", "base_folder", "bench.carry"];
    [flags_of_keys::<config::WorkloadKeys>(), flags_of_keys::<config::BenchKeys>(), flags_named(&more)].concat()
}

/// The flags of the keys of these names.
pub fn flags_named(names: &[&str]) -> Vec<Arg> {
    flags_of_keys::<config::AllKeys>().into_iter().filter(|arg| names.contains(&arg.get_id().as_str())).collect()
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
