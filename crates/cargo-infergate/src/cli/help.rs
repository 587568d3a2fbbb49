//! What `-h` and `--help` show: the flags that people use, and all of them with the exit codes.

use clap::Command;

use crate::config::with_value_name;
use infergate_build::output;

/// What a command's exit code means.
pub const EXIT_CODES: &str = "Exit codes:\n  \
    0  pass\n  \
    1  worse: regressed, output changed, counter regressed, leak or target missed\n  \
    2  bad usage, or a run that failed\n  \
    3  inconclusive, unstable, invalid or partial\n  \
    4  not comparable; with --require-baseline also: no baseline";

/// Commands that end with a verdict.
const JUDGES: [&str; 4] = ["gate", "compare", "memory", "load"];

/// Flags that people use. `-h` of a command with more of them shows these alone.
const SHORT: [&str; 34] = [
    "against",
    "swap",
    "server",
    "budget",
    "threshold",
    "good",
    "bad",
    "versions",
    "case",
    "gates",
    "model",
    "cases",
    "threads",
    "runs",
    "memory.runs",
    "bench.target",
    "target",
    "served_model",
    "api",
    "api_key_env",
    "users",
    "rate",
    "until_slo",
    "duration",
    "scenario",
    "input_tokens",
    "output_tokens",
    "receipt",
    "targets",
    "require_baseline",
    "dry_run",
    "out",
    "report",
    "json",
];
const FEW: usize = 12;

/// `command` with named values, this program's name in the text below its flags, and a short help if it has many flags.
pub fn finish(command: Command) -> Command {
    if command.is_hide_set() {
        return command;
    }
    let command = command.mut_args(with_value_name);
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let below = output::named(&below);
    let name = command.get_name().to_owned();
    let codes = if JUDGES.contains(&name.as_str()) { format!("\n\n{EXIT_CODES}") } else { String::new() };
    if command.get_arguments().count() <= FEW {
        return command.after_help(below + &codes);
    }
    let rest = output::named(&format!("The rest of the flags: cargo xtask {name} --help"));
    command
        .mut_args(|arg| if SHORT.contains(&arg.get_id().as_str()) { arg } else { arg.hide_short_help(true) })
        .after_help(format!("{below}\n\n{rest}"))
        .after_long_help(below + &codes)
}
