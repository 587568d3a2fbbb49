//! The command line: `cargo xtask` here, `cargo infergate` in other repositories.

mod bench;
mod bisect;
mod bless;
mod calibrate;
mod command_program;
mod compare;
mod coverage;
mod demo;
mod doctor;
mod early;
mod flags;
mod gate;
mod help;
mod init;
mod load;
mod load_gate;
mod memory;
mod outputs;
mod paired_gate;
mod report;
mod same_code;
mod schema;
mod server_program;
mod sides;
mod terms;
mod turn;
mod undecided;

use std::env::ArgsOs;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::builds::{asked, bench_target, commits, criterion_front, features, git, layouts, revision, swap, toolchain};
use crate::command_worker;
use crate::coverage::COMMAND as COVERAGE;
use crate::load::script_server;
use crate::machine::probes;
use crate::receipt::Outcome;
use crate::server::worker as server_worker;
use crate::terminal::{output, progress};
use crate::watcher;

/// Set for the gate's own tests alone: times of a worker that says its clock is virtual are not checked. It is no key, for the
/// configuration belongs to what is judged.
const VIRTUAL_CLOCK: &str = "INFERGATE_VIRTUAL_CLOCK";

/// Runs the command line and gives the process's exit code. Errors go to stderr as one line.
pub fn main(args: ArgsOs) -> i32 {
    let (program, args) = program_and_args(args.collect());
    output::set_program_name(program);
    infergate_core::process::outlive_file_limits();
    if std::env::var_os(VIRTUAL_CLOCK).is_some() {
        infergate_core::worker::trust_virtual_clocks();
    }
    let matches = match command(program).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            // clap colours, words and sorts its own messages; its exit code for bad usage is ours too.
            let _ = error.print();
            return error.exit_code();
        }
    };
    output::heed(&matches);
    match dispatch(&matches) {
        Ok(code) => output::code(code),
        Err(error) => {
            output::error(&error);
            Outcome::Failed.exit_code()
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Result<i32> {
    if matches.subcommand().is_some_and(|(name, matches)| measures(name, matches)) {
        // First of all: whoever ends a run gets a sentence, however early.
        progress::cancelled_by_ctrl_c()?;
    }
    match matches.subcommand() {
        // Those write no file, or a folder of them.
        Some((
            "schema"
            | "report"
            | probes::COMMAND
            | command_worker::COMMAND
            | script_server::COMMAND
            | server_worker::COMMAND
            | COVERAGE
            | watcher::COMMAND,
            _,
        ))
        | None => {}
        Some((_, matches)) => outputs::begin(matches)?,
    }
    match matches.subcommand() {
        Some(("bench", matches)) => bench::run(matches),
        Some(("gate", matches)) => gate::run(matches),
        Some(("init", matches)) => init::run(matches),
        Some(("compare", matches)) => compare::run(matches),
        Some(("bless", matches)) => bless::run(matches),
        Some(("bisect", matches)) => bisect::run(matches),
        Some(("calibrate", matches)) => calibrate::run(matches),
        Some(("memory", matches)) => memory::run(matches),
        Some(("load", matches)) => load::run(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("report", matches)) => report::run(matches),
        Some(("schema", matches)) => schema::run(matches),
        Some((probes::COMMAND, matches)) => probe(matches),
        Some((server_worker::COMMAND, matches)) => server_program::serve(matches),
        Some((command_worker::COMMAND, matches)) => command_program::serve(matches),
        Some((COVERAGE, matches)) => coverage::serve(matches),
        Some((watcher::COMMAND, matches)) => watch(matches),
        Some((script_server::COMMAND, matches)) => load::script_server(matches),
        _ => anyhow::bail!("no command was given; see --help"),
    }
}

/// Whether a command measures, and so runs for long and keeps what it has when it is ended.
fn measures(name: &str, matches: &ArgMatches) -> bool {
    match name {
        "bench" | "memory" | "calibrate" | "bisect" | "demo" => true,
        "gate" => !matches.contains_id("receipt"),
        "load" => matches.subcommand().is_none(),
        _ => false,
    }
}

/// What the suite asks a process of this command for.
fn probe(matches: &ArgMatches) -> Result<i32> {
    infergate_core::process::end_with_parent();
    let probes = probes::run(matches.get_one("threads").copied().unwrap_or_default())?;
    println!("{}", serde_json::to_string(&probes)?);
    Ok(0)
}

/// What the command starts a program under that may leave others behind.
fn watch(matches: &ArgMatches) -> Result<i32> {
    let words: Vec<OsString> = matches.get_many("program").into_iter().flatten().cloned().collect();
    watcher::watch(&words)
}

/// The whole command line, for its help and its tests.
pub fn command(program: &'static str) -> Command {
    let commands = [
        gate::command(),
        bench::command(),
        compare::command(),
        memory::command(),
        load::command(),
        bless::command(),
        bisect::command(),
        calibrate::command(),
        report::command(),
        demo::command(),
        init::command(),
        doctor::command(),
        schema::command(),
    ];
    Command::new(program)
        .bin_name(program)
        .version(env!("CARGO_PKG_VERSION"))
        .long_version(long_version())
        .about("A performance regression gate for LLM inference")
        .after_help(help::EXIT_CODES)
        .arg(flags::quiet())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands.map(help::finish))
        .subcommand(command_program::worker_command())
        .subcommand(server_program::worker_command())
        .subcommand(
            Command::new(probes::COMMAND).hide(true).arg(Arg::new("threads").value_parser(value_parser!(usize))),
        )
        .subcommand(
            Command::new(watcher::COMMAND)
                .hide(true)
                .arg(Arg::new("program").num_args(1..).last(true).required(true).value_parser(value_parser!(OsString))),
        )
        .subcommand(load::script_server_command())
        .subcommand(coverage::command())
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
