//! The command line: `cargo xtask` here, `cargo infergate` in other repositories.

mod allocated;
mod bench;
mod bench_counters;
mod bisect;
mod bless;
mod calibrate;
mod compare;
mod demo;
mod doctor;
mod explain;
mod files;
mod flags;
mod gate;
mod gate_options;
mod help;
mod init;
mod launched_workers;
mod load;
mod machine_lock;
mod measuring;
mod memory;
mod outputs;
mod pages;
mod paired_gate;
mod preflight;
mod report;
mod same_code;
mod settings_policy;
mod sides;

use std::env::ArgsOs;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::{Config, Layer, one_line};
use crate::machine::probes;
use infergate_build::keep_objects::{compile, is_wrapper};
use infergate_build::{output, watcher};
use infergate_receipts::Outcome;

/// Set by the gate's own tests alone: times of a worker that reports a virtual clock are not checked. It is no key of infergate.toml, which
/// belongs to what is judged.
const VIRTUAL_CLOCK: &str = "INFERGATE_VIRTUAL_CLOCK";

/// A performance regression gate for LLM inference
#[derive(Parser)]
#[command(version, long_version = long_version(), after_help = help::EXIT_CODES)]
struct CommandLine {
    /// Print only errors and the verdict's line
    #[arg(long, short, global = true, display_order = 900)]
    quiet: bool,
    #[command(subcommand)]
    request: Request,
}

/// The command. Its own doc line is its help.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, made once")]
enum Request {
    Gate(gate_options::Gate),
    Bench(bench::Bench),
    Compare(compare::Compare),
    Memory(memory::Memory),
    Load(load::Load),
    Bless(bless::Bless),
    Bisect(bisect::Bisect),
    Calibrate(calibrate::Calibrate),
    Report(report::Report),
    Demo(demo::Demo),
    Init(init::Init),
    Doctor(doctor::Doctor),
    /// Print the default infergate.toml
    #[command(after_help = "Example:\n  cargo xtask schema > infergate.toml")]
    Schema,
    #[command(name = launched_workers::COMMAND, hide = true)]
    Worker(launched_workers::Worker),
    #[command(name = probes::COMMAND, hide = true)]
    Probe {
        threads: usize,
    },
    #[command(name = watcher::COMMAND, hide = true)]
    Watch {
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(name = crate::coverage::COMMAND, hide = true)]
    Coverage(crate::coverage::Coverage),
}

/// Runs the command line and gives the process's exit code. Errors go to stderr as one line.
pub fn main(args: ArgsOs) -> i32 {
    let args: Vec<OsString> = args.collect();
    if args.first().is_some_and(|program| is_wrapper(program)) {
        return compile(&args).unwrap_or_else(|error| {
            output::error(&error);
            Outcome::Failed.exit_code()
        });
    }
    let (program, args) = program_and_args(args);
    output::set_program_name(program);
    infergate_core::process::outlive_file_limits();
    if std::env::var_os(VIRTUAL_CLOCK).is_some() {
        infergate_core::worker::trust_virtual_clocks();
    }
    let mut command = command(program);
    let matches = command.try_get_matches_from_mut(args);
    let parsed = matches.and_then(|matches| Ok((CommandLine::from_arg_matches(&matches)?, matches)));
    let (line, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ErrorKind::ValueValidation => {
            output::error(&one_line(&error));
            return error.exit_code();
        }
        Err(error) => {
            // clap colours, words and sorts its own messages; its exit code for bad usage is ours too.
            let _ = error.print();
            return error.exit_code();
        }
    };
    output::set_quiet(line.quiet);
    match run(line.request, &command, &matches) {
        Ok(code) => output::code(code),
        Err(error) => {
            output::error(&error);
            Outcome::Failed.exit_code()
        }
    }
}

fn run(request: Request, mut command: &Command, mut matches: &ArgMatches) -> Result<i32> {
    while let Some((name, of_subcommand)) = matches.subcommand() {
        command = command.find_subcommand(name).context("a subcommand is missing")?;
        matches = of_subcommand;
    }
    let keys = &Layer::of_flags(command, matches)?;
    // Before files of an earlier run are removed: another gate may still keep its blocks there.
    let _lock = match &request {
        Request::Gate(options) if options.paired.is_paired() => machine_lock::take(&options.wait)?,
        _ => None,
    };
    outputs::begin(command, matches)?;
    let config = || Config::here(keys);
    match request {
        Request::Gate(options) => gate::run(&options, keys),
        Request::Bench(options) => bench::run(&options, &config()?),
        Request::Compare(options) => compare::run(&options, &config()?),
        Request::Memory(options) => memory::run(&options, &config()?),
        Request::Load(options) => load::run(&options, keys),
        Request::Bless(options) => bless::run(&options, &config()?),
        Request::Bisect(options) => bisect::run(&options, config()?),
        Request::Calibrate(options) => calibrate::run(&options, &config()?),
        Request::Report(options) => report::run(&options, &config()?),
        Request::Demo(options) => demo::run(&options),
        Request::Init(options) => init::run(&options),
        Request::Doctor(options) => doctor::run(&options),
        Request::Schema => {
            output::document(include_str!("../templates/infergate.toml"));
            Ok(0)
        }
        Request::Worker(options) => launched_workers::serve(&options),
        Request::Probe { threads } => probe(threads),
        Request::Watch { program } => watcher::watch(&program),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Request::Coverage(options) => crate::coverage::serve(&options),
    }
}

/// The hidden command that probes the hardware for a suite.
fn probe(threads: usize) -> Result<i32> {
    infergate_core::process::end_with_parent();
    let found = serde_json::to_string(&probes::run(threads)?)?;
    // The parent may have ended.
    writeln!(std::io::stdout(), "{found}").context("what was found cannot be written")?;
    Ok(0)
}

/// The whole command line, for its help and its tests.
pub fn command(program: &'static str) -> Command {
    CommandLine::command().name(program).bin_name(program).mut_subcommands(help::finish)
}

/// What `--version` prints: how this command was built, for bug reports and packagers.
fn long_version() -> String {
    let build = infergate_core::build_info::build();
    let flags = if build.flags.is_empty() { "none" } else { &build.flags };
    format!("{}\n{}, {}, flags: {flags}", env!("CARGO_PKG_VERSION"), build.rustc, build.target)
}

/// cargo passes a subcommand its own name: `cargo infergate gate` starts `cargo-infergate infergate gate`.
fn program_and_args(mut args: Vec<OsString>) -> (&'static str, Vec<OsString>) {
    if args.first().and_then(|program| Path::new(program).file_stem()).is_some_and(|name| name == "xtask") {
        return ("cargo xtask", args);
    }
    if args.get(1).is_some_and(|arg| arg == "infergate") {
        args.remove(1);
    }
    ("cargo infergate", args)
}
