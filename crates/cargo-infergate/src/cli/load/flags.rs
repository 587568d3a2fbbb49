//! The flags of `load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, Command, value_parser};

use super::super::turn;
use super::merge;
use crate::cli::flags;
use crate::load::scenario::{MAX_TOKENS, MAX_TURNS};
use crate::receipt::MAX_USERS;

/// The command.
pub fn command() -> Command {
    Command::new("load")
        .about("Measure a server or engine under load")
        .args(target())
        .args(load())
        .args(use_of())
        .args(shards())
        .args(local())
        .args(flags::one("seed"))
        .args(flags::judge_load())
        .arg(out())
        .arg(flags::json("Write the verdict here"))
        .arg(turn::arg())
        .subcommand(merge::command())
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true)
        .after_help(
            "Examples:\n  cargo xtask load --target http://127.0.0.1:8000 --model MODEL\n  \
             cargo xtask load --target http://127.0.0.1:8000 --model MODEL --users 1,10,50 --scenario chatbot --duration 60s\n  \
             cargo xtask load --target https://api.example.com/v1 --model MODEL --api-key-env API_KEY --rate 2 --arrivals poisson\n  \
             cargo xtask load --target local:synthetic:gpt2 --users 1,8,32 --input-tokens 64 --output-tokens 32\n  \
             cargo xtask load merge load-0.json load-1.json --out load.json\n\n\
             What is measured and how: docs/LOAD.md",
        )
}

fn target() -> Vec<Arg> {
    let arg = |name: &'static str| Arg::new(name).long(name).help_heading("Target");
    vec![
        arg("target")
            .value_name("[NAME=]URL|local[:SPEC]")
            .action(ArgAction::Append)
            .required(true)
            .help("Server with an OpenAI-compatible API, http:// or https://; several, with names, are asked in turn. Or local: the engine of the bench target, with this model"),
        arg("model")
            .value_name("[NAME=]MODEL")
            .action(ArgAction::Append)
            .help("The model's name at the server, or at the target NAME"),
        arg("api").default_value("chat").value_parser(["chat", "completions"]).help("Which endpoint is asked"),
        arg("http")
            .default_value("1")
            .value_parser(["1", "2"])
            .help("Version of HTTP; 2 without TLS is spoken from the first byte"),
        arg("api-key-env")
            .value_name("[NAME=]VARIABLE")
            .action(ArgAction::Append)
            .help("Environment variable that holds the API key, of the target NAME where there are several"),
        arg("api-key-file")
            .value_name("[NAME=]FILE")
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf))
            .help("File that holds the API key, of the target NAME where there are several"),
        arg("key-over-http")
            .action(ArgAction::SetTrue)
            .help("Send an API key over plain http to another machine, too: everybody on the way can read it"),
        arg("limit-field")
            .default_value("max_tokens")
            .value_parser(["max_tokens", "max_completion_tokens"])
            .help("The field that limits an answer; servers know one or the other"),
        arg("ignore-eos")
            .action(ArgAction::SetTrue)
            .help("Send ignore_eos, an extension: every answer has its full length"),
        arg("min-tokens")
            .action(ArgAction::SetTrue)
            .help("Send min_tokens, an extension, with the number of output tokens"),
        arg("no-usage")
            .action(ArgAction::SetTrue)
            .help("Do not ask for token counts: some servers refuse stream_options"),
        arg("tokenizer").value_name("SPEC").help(
            "Count the tokens of answers by this model's tokenizer, in the engine of the bench target, behind each level: for a server \
             that sends no usage, and beside the usage of one that does",
        ),
        arg("price")
            .value_name("[NAME=]IN,OUT")
            .action(ArgAction::Append)
            .help("What a million tokens of prompts and of answers cost, of the target NAME where there are several; the report says what requests cost"),
        arg("timeout")
            .value_name("TIME")
            .default_value("300s")
            .value_parser(time)
            .help("For a whole request, retries included"),
        arg("connect-timeout").value_name("TIME").default_value("10s").value_parser(time).help("For a connection"),
        arg("attempts").value_name("N").default_value("3").value_parser(value_parser!(u32).range(1..=100)).help(
            "Attempts of a request where the server says 429 or 5xx; Retry-After is kept to, and the wait counts",
        ),
    ]
}

/// What a local engine, or that of `--tokenizer`, is built and started by.
fn local() -> Vec<Arg> {
    let heading = "Local engine, or tokenizer";
    let keys = [
        "threads",
        "dtype",
        "options",
        "bench.package",
        "bench.target",
        "bench.features",
        "bench.default_features",
        "bench.profile",
    ];
    let mut args: Vec<Arg> = keys.into_iter().flat_map(flags::one).map(|arg| arg.help_heading(heading)).collect();
    args.push(flags::program("worker", "Bench binary that was built already").help_heading(heading));
    args.push(
        Arg::new("slots")
            .long("slots")
            .help_heading(heading)
            .value_name("N")
            .default_value("8")
            .value_parser(value_parser!(u32).range(1..=4096))
            .help("Requests that an open loop has room for at once; a closed one has room for each user"),
    );
    args
}

fn load() -> Vec<Arg> {
    let arg = |name: &'static str| Arg::new(name).long(name).help_heading("Load");
    vec![
        arg("users")
            .value_name("N,N,...")
            .value_delimiter(',')
            .default_value("1,2,4,8,16,32")
            .value_parser(value_parser!(u32).range(1..=i64::from(MAX_USERS)))
            .help("Closed loop: so many users, each with one request in flight, one level after the other"),
        arg("rate")
            .value_name("R,R,...")
            .value_delimiter(',')
            .value_parser(value_parser!(f64))
            .help("Open loop in place of users: so many requests a second; latency counts from the scheduled start"),
        arg("arrivals")
            .value_name("KIND")
            .default_value("poisson")
            .requires("rate")
            .help("Gaps of an open loop: poisson, constant, or gamma:SHAPE (below 1 burstier than poisson)"),
        arg("until-slo")
            .value_name("LIMIT,...")
            .value_delimiter(',')
            .conflicts_with_all(["users", "rate"])
            .help("Search for the most users that are shown to meet these limits, by the upper ends of their 95 % intervals, and run them once more; for example ttft_p95=500ms,itl_p95=70ms"),
        arg("max-users")
            .value_name("N")
            .default_value("512")
            .value_parser(value_parser!(u32).range(1..=i64::from(MAX_USERS)))
            .help("The most users to search up to"),
        arg("slo")
            .value_name("LIMIT,...")
            .value_delimiter(',')
            .help("Goodput: requests a second that meet all of these, for example ttft=500ms,tpot=50ms,e2e=10s"),
        arg("requests")
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..=1_000_000))
            .conflicts_with("duration")
            .help(
                "Measured requests of a level; ramp and warm-up are sent before them, and behind them about one of each user, until \
                 the last measured one has ended [default: 8 for each user, at least 40]",
            ),
        arg("duration").value_name("TIME").value_parser(time).help(
            "Measured are the requests that start within this time of a level; further ones are sent until the last of them has ended",
        ),
        arg("warm-up")
            .value_name("N")
            .value_parser(value_parser!(u64).range(0..=1_000_000))
            .help("Requests of each user before the measured ones (of the schedule in an open loop) [default: 1 for each target]"),
        arg("ramp").value_name("TIME").value_parser(time).help(
            "Before the measured requests: users begin one after the other over this time, or the rate rises from 0",
        ),
    ]
}

fn shards() -> Vec<Arg> {
    let arg = |name: &'static str| Arg::new(name).long(name).help_heading("Many machines");
    vec![
        arg("shard").value_name("K/N").requires("start-at").help(
            "This client does part K, from 0, of N; load merge puts the receipts together [default with --start-at: from \
             SLURM_ARRAY_TASK_ID, or JOB_COMPLETION_INDEX and INFERGATE_SHARDS]",
        ),
        arg("start-at")
            .value_name("TIME")
            .help("When all shards begin: 2026-01-31T12:00:00Z, or seconds since 1970, with enough time for the self-audit"),
    ]
}

fn use_of() -> Vec<Arg> {
    let arg = |name: &'static str| Arg::new(name).long(name).help_heading("Prompts and answers");
    let tokens = || value_parser!(u32).range(1..=i64::from(MAX_TOKENS));
    vec![
        arg("scenario")
            .value_name("NAME")
            .value_delimiter(',')
            .action(ArgAction::Append)
            .help("Which of [[scenario]] in infergate.toml, else of chatbot, retrieval, code, agent [default: all]"),
        arg("input-tokens")
            .value_name("N")
            .value_parser(tokens())
            .requires("output-tokens")
            .conflicts_with("scenario")
            .help("One plain scenario in their place: tokens of a prompt"),
        arg("output-tokens").value_name("N").value_parser(tokens()).requires("input-tokens").help("And of an answer"),
        arg("turns")
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..=i64::from(MAX_TURNS)))
            .requires("input-tokens")
            .help("And requests of a conversation, each of which begins with the prompt before it"),
        arg("dataset").value_name("FILE").value_parser(value_parser!(PathBuf)).help(
            "Prompts from JSON lines, {\"prompt\": \"...\", \"output_tokens\": 64} each, in place of made-up ones",
        ),
        arg("context")
            .value_name("N")
            .value_parser(tokens())
            .help("The model's context: scenarios beyond it are made smaller"),
        arg("shared-prefix")
            .value_name("N")
            .default_value("0")
            .value_parser(value_parser!(u32).range(0..=i64::from(MAX_TOKENS)))
            .help("Tokens at the start that all prompts share, where a prefix cache is what is to be measured"),
        arg("same-prompts")
            .action(ArgAction::SetTrue)
            .help("Prompts by --seed alone: the same in each run, so that a second run may find them in a cache"),
        arg("earlier")
            .value_name("RECEIPT")
            .value_parser(value_parser!(PathBuf))
            .requires("same-prompts")
            .help("Receipt of an earlier run with the same prompts: a warning says where a cache answered this one"),
    ]
}

fn out() -> Arg {
    Arg::new("out")
        .long("out")
        .value_name("FILE")
        .help("Where the receipt goes [default: target/infergate/load.json]")
        .value_parser(value_parser!(PathBuf))
}

/// `30s`, `2min`, `500ms`.
fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| format!("{error}; write for example 30s or 2min"))?;
    let within = time > Duration::ZERO && time <= Duration::from_secs(7 * 24 * 3600);
    if within { Ok(time) } else { Err("give a time above 0 and up to 7 days".into()) }
}
