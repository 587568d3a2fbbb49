//! The command line: `cargo xtask` here, `cargo infergate` in other repositories.

mod allocated;
mod bench;
mod bench_counters;
mod bisect;
mod bless;
mod calibrate;
mod command_program;
mod compare;
mod coverage;
mod demo;
mod doctor;
mod early;
mod explain;
mod flags;
mod gate;
mod gate_flags;
mod help;
mod init;
#[cfg(feature = "load")]
mod load;
mod load_gate;
mod memory;
mod outputs;
mod pages;
mod paired_gate;
mod report;
mod same_code;
mod scenarios;
mod schema;
mod server_program;
#[cfg(feature = "load")]
mod server_worker;
mod sessions;
mod sides;
mod terms;
mod turn;

use std::env::ArgsOs;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::command_worker;
use crate::coverage::COMMAND as COVERAGE;
use crate::machine::probes;
use infergate_build::watcher;
use infergate_build::{bench_choice, bench_target, criterion_front, features, git, sources, swap, toolchain};
use infergate_build::{output, progress};
use infergate_receipts::Outcome;

/// Set for the gate's own tests alone: times of a worker that says its clock is virtual are not checked. It is no key, for the
/// configuration belongs to what is judged.
const VIRTUAL_CLOCK: &str = "INFERGATE_VIRTUAL_CLOCK";

/// A performance regression gate for LLM inference
#[derive(Parser)]
#[command(version, long_version = long_version(), after_help = help::EXIT_CODES)]
struct CommandLine {
    /// Say errors and the verdict's line alone
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    asked: Asked,
}

/// What was asked for. A command's own doc line is what its help says of it.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, made once")]
enum Asked {
    Gate(gate_flags::Gate),
    Bench(bench::Bench),
    Compare(compare::Compare),
    Memory(memory::Memory),
    #[cfg(feature = "load")]
    Load(load::Load),
    Bless(sessions::Bless),
    Bisect(bisect::Bisect),
    Calibrate(calibrate::Calibrate),
    Report(report::Report),
    Demo(demo::Demo),
    Init(init::Init),
    Doctor(doctor::Doctor),
    Schema(schema::Schema),
    #[command(name = command_worker::COMMAND, hide = true)]
    CommandWorker(command_program::CommandWorker),
    #[cfg(feature = "load")]
    #[command(name = server_program::COMMAND, hide = true)]
    ServerWorker(server_worker::ServerWorker),
    #[command(name = probes::COMMAND, hide = true)]
    Probe {
        threads: Option<usize>,
    },
    #[command(name = watcher::COMMAND, hide = true)]
    Watch {
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    #[cfg(feature = "load")]
    #[command(name = infergate_load::client::script_server::COMMAND, hide = true)]
    ScriptServer(load::ScriptServer),
    #[command(name = COVERAGE, hide = true)]
    Coverage(coverage::Coverage),
}

/// Runs the command line and gives the process's exit code. Errors go to stderr as one line.
pub fn main(args: ArgsOs) -> i32 {
    let (program, args) = program_and_args(args.collect());
    output::set_program_name(program);
    infergate_core::process::outlive_file_limits();
    if std::env::var_os(VIRTUAL_CLOCK).is_some() {
        infergate_core::worker::trust_virtual_clocks();
    }
    let matches = command(program).try_get_matches_from(args);
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => {
            // clap colours, words and sorts its own messages; its exit code for bad usage is ours too.
            let _ = error.print();
            return error.exit_code();
        }
    };
    output::set_quiet(line.quiet);
    match run(line.asked) {
        Ok(code) => output::code(code),
        Err(error) => {
            output::error(&error);
            Outcome::Failed.exit_code()
        }
    }
}

fn run(asked: Asked) -> Result<i32> {
    match asked {
        Asked::Gate(asked) => gate::run(&asked),
        Asked::Bench(asked) => bench::run(&asked),
        Asked::Compare(asked) => compare::run(&asked),
        Asked::Memory(asked) => memory::run(&asked),
        #[cfg(feature = "load")]
        Asked::Load(asked) => load::run(&asked),
        Asked::Bless(asked) => bless::run(&asked),
        Asked::Bisect(asked) => bisect::run(&asked),
        Asked::Calibrate(asked) => calibrate::run(&asked),
        Asked::Report(asked) => report::run(&asked),
        Asked::Demo(asked) => demo::run(&asked),
        Asked::Init(asked) => init::run(&asked),
        Asked::Doctor(asked) => doctor::run(&asked),
        Asked::Schema(_) => schema::run(),
        Asked::CommandWorker(asked) => command_program::serve(asked),
        #[cfg(feature = "load")]
        Asked::ServerWorker(asked) => server_worker::serve(asked),
        Asked::Probe { threads } => probe(threads.unwrap_or_default()),
        Asked::Watch { program } => watcher::watch(&program),
        #[cfg(feature = "load")]
        Asked::ScriptServer(asked) => load::script_server(&asked),
        Asked::Coverage(asked) => coverage::serve(&asked),
    }
}

/// What the suite asks a process of this command for.
fn probe(threads: usize) -> Result<i32> {
    infergate_core::process::end_with_parent();
    let found = serde_json::to_string(&probes::run(threads)?)?;
    // Whoever asked may be gone.
    writeln!(std::io::stdout(), "{found}").context("what was found cannot be written")?;
    Ok(0)
}

/// The whole command line, for its help and its tests.
pub fn command(program: &'static str) -> Command {
    CommandLine::command().name(program).bin_name(program).mut_subcommands(help::finish)
}

/// What `--version` says: how this command was built matters to whoever reports a fault, and to whoever packs it.
fn long_version() -> String {
    let build = infergate_core::build_info::build();
    let flags = if build.flags.is_empty() { "none" } else { &build.flags };
    format!("{}\n{}, {}, flags: {flags}", env!("CARGO_PKG_VERSION"), build.rustc, build.target)
}

/// cargo passes a subcommand its own name: `cargo infergate gate` starts `cargo-infergate infergate gate`.
fn program_and_args(mut args: Vec<OsString>) -> (&'static str, Vec<OsString>) {
    let name = args.first().map(|program| Path::new(program).file_stem().unwrap_or_default().to_owned());
    if name.is_some_and(|name| name == "xtask") {
        return ("cargo xtask", args);
    }
    if args.get(1).is_some_and(|arg| arg == "infergate") {
        args.remove(1);
    }
    ("cargo infergate", args)
}
