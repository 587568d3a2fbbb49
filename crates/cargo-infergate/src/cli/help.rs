//! What `-h` and `--help` show: the flags that people use, and all of them with the exit codes.

use clap::Command;

use super::output;
use crate::config::with_value_name;

/// What a command's exit code means.
pub const EXIT_CODES: &str = "Exit codes:\n  \
    0  pass\n  \
    1  worse: regressed, output changed, counter regressed, leak or target missed\n  \
    2  bad usage, or a run that failed\n  \
    3  no verdict: unstable, inconclusive, invalid or partial\n  \
    4  not comparable; with --require-baseline also: no baseline";

/// Commands that end with a verdict.
const JUDGES: [&str; 4] = ["gate", "compare", "memory", "load"];

/// The flags of long commands that `-h` shows; those of the others are few.
const SHORT: [(&str, &[&str]); 9] = [
    (
        "gate",
        &[
            "against",
            "swap",
            "server",
            "budget",
            "threshold",
            "model",
            "cases",
            "threads",
            "bench.target",
            "targets",
            "memory.runs",
            "receipt",
            "report",
            "json",
        ],
    ),
    ("bench", &["model", "cases", "threads", "runs", "bench.package", "bench.target", "bench.features", "out", "json"]),
    ("compare", &["base", "head", "require_baseline", "targets", "json"]),
    ("memory", &["memory.case", "memory.runs", "model", "threads", "out", "json"]),
    (
        "load",
        &[
            "target",
            "model",
            "api",
            "api_key_env",
            "users",
            "rate",
            "until_slo",
            "duration",
            "scenario",
            "input_tokens",
            "output_tokens",
            "baseline",
            "out",
            "json",
        ],
    ),
    ("bless", &["receipt", "dry_run", "model", "cases", "runs", "bench.target", "baselines", "json"]),
    ("bisect", &["good", "bad", "swap", "versions", "case", "threshold", "budget", "model", "bench.target", "json"]),
    ("calibrate", &["gates", "against", "model", "cases", "threads", "bench.target", "out", "json"]),
    ("doctor", &["baselines", "json"]),
];

/// `command` with its values named, its name as it was started in what stands below its flags, and a short help where it has many of them.
pub fn finish(command: Command) -> Command {
    if command.is_hide_set() {
        return command;
    }
    let command = command.mut_args(with_value_name);
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let below = output::named(&below);
    let name = command.get_name().to_owned();
    let codes = if JUDGES.contains(&name.as_str()) { format!("\n\n{EXIT_CODES}") } else { String::new() };
    let Some((_, shown)) = SHORT.iter().find(|(long, _)| *long == name) else {
        return command.after_help(below + &codes);
    };
    debug_assert!(shown.iter().all(|id| command.get_arguments().any(|arg| arg.get_id() == *id)), "{name}");
    let rest = output::named(&format!("The rest of the flags: cargo xtask {name} --help"));
    command
        .mut_args(|arg| if shown.contains(&arg.get_id().as_str()) { arg } else { arg.hide_short_help(true) })
        .after_help(format!("{below}\n\n{rest}"))
        .after_long_help(below + &codes)
}
