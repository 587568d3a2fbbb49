//! The flags of `load`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Arg, Args, Subcommand, value_parser};

use crate::cli::flags::{flags_named, flags_of_keys};
use crate::cli::machine_lock::Wait;
use crate::config::{self, duration, one_of, up_to, within};
use infergate_core::load::Spacing;
use infergate_load::api::body::Api;
use infergate_load::plan::shard::Shard;
use serde_json::{Map, Value};

use infergate_receipts::{Limit, MAX_TOKENS, MAX_USERS};

/// Flags that build and start a local engine, or that of `--tokenizer`.
const LOCAL: &str = "Local engine, or tokenizer";
const MACHINES: &str = "Many machines";

/// Measure a server or engine under load
#[derive(Args)]
#[command(args = keys(), subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  cargo xtask load --target http://127.0.0.1:8000 --model MODEL\n  \
    cargo xtask load --target http://127.0.0.1:8000 --model MODEL --users 1,10,50 --scenario chatbot --duration 60s\n  \
    cargo xtask load --target https://api.example.com/v1 --model MODEL --api-key-env API_KEY --rate 2 --arrivals poisson\n  \
    cargo xtask load --target local:synthetic:gpt2 --users 1,8,32 --input-tokens 64 --output-tokens 32\n  \
    cargo xtask load merge load-1.json load-2.json --out load.json\n\n\
    What is measured and how: https://github.com/infergate/infergate/blob/main/docs/reference/load.md")]
pub struct Load {
    /// Where the receipt goes [default: target/infergate/load.json]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Write the verdict here; - is stdout, which then has nothing else
    #[arg(long)]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub wait: Wait,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub levels: Levels,
    #[command(flatten)]
    pub prompts: Prompts,
    /// This client does part K of N; load merge puts the receipts together
    // The merged receipt gets the verdict. A search runs on one machine.
    #[arg(
        long, value_name = "K/N", help_heading = MACHINES, requires = "start_at",
        conflicts_with_all = ["until_slo", "json", "require_baseline", "targets"],
    )]
    pub shard: Option<Shard>,
    /// When all shards begin: 2026-01-31T12:00:00Z, with enough time for the self-audit
    #[arg(long, value_name = "TIME", help_heading = MACHINES, value_parser = start_unix_ns)]
    pub start_at: Option<u64>,
    /// Bench binary that was built already
    #[arg(long, help_heading = LOCAL)]
    pub worker: Option<PathBuf>,
    /// Requests that an open loop has room for at once; a closed one has room for each user
    #[arg(long, help_heading = LOCAL, default_value = "8", value_parser = up_to(4096))]
    pub slots: u32,
    #[command(subcommand)]
    pub command: Option<Commands>,
}

fn keys() -> impl Iterator<Item = Arg> {
    let local = [flags_named(&["threads", "dtype", "options"]), flags_of_keys::<config::BenchKeys>()].concat();
    let others = flags_named(&["seed", "require_baseline", "baselines", "targets"]);
    local.into_iter().map(|arg| arg.help_heading(LOCAL)).chain(others)
}

/// The servers or the engine, and how requests reach them.
#[derive(Args)]
#[command(next_help_heading = "Target")]
#[group(skip)]
pub struct Target {
    /// Server with OpenAI's or Anthropic's API; several, with names, are asked in turn. Or local: your engine with infergate.toml's model;
    /// local:SPEC takes another. Both take no --model
    #[arg(long, value_name = "[NAME=]URL|local[:SPEC]", required = true)]
    pub target: Vec<String>,
    /// The model's name at the server, or at the target NAME
    // Another thing than the key `model`.
    #[arg(id = "served_model", long = "model", value_name = "[NAME=]MODEL")]
    pub model: Vec<String>,
    /// Which API is asked: OpenAI's chat, completions, responses or embeddings, or Anthropic's messages
    #[arg(long, value_name = "api", default_value = "chat", value_parser = one_of(Api::ALL))]
    pub api: Api,
    /// Environment variable that holds the API key, of the target NAME where there are several
    #[arg(long, value_name = "[NAME=]VARIABLE")]
    pub api_key_env: Vec<String>,
    /// Send an API key over plain http to another machine, too: everybody on the way can read it
    #[arg(long)]
    pub key_over_http: bool,
    /// The field that limits an answer of chat or completions; servers know one or the other
    #[arg(
        long, value_name = "limit-field", default_value = "max_tokens",
        value_parser = one_of(["max_tokens", "max_completion_tokens"].map(|field| (field, field))),
    )]
    pub limit_field: &'static str,
    /// Send the extensions ignore_eos and min_tokens: every answer has its full length
    #[arg(long)]
    pub ignore_eos: bool,
    /// JSON object that is merged into each request: '{"temperature":1}'; null removes a key: '{"stream_options":null}'
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub extra_body: Option<Map<String, Value>>,
    /// Header that is sent with each request, to every target; its value is in no file
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Count the tokens of answers by this model's tokenizer, in the engine of the bench target, behind each level: for a server that
    /// sends no usage, and beside the usage of one that does
    #[arg(long, value_name = "SPEC")]
    pub tokenizer: Option<String>,
    /// What a million tokens of prompts and of answers cost, of the target NAME where there are several; the report says what requests
    /// cost
    #[arg(long, value_name = "[NAME=]IN,OUT")]
    pub price: Vec<String>,
    /// Time limit of a whole request, retries included
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub timeout: Duration,
    /// Attempts of a request where the server says 429 or 5xx; a Retry-After in seconds is kept to, and the wait counts; one beyond
    /// --timeout is not begun
    #[arg(long, default_value = "3", value_parser = up_to(100))]
    pub attempts: u32,
}

/// How much load, and for how long.
#[derive(Args)]
#[command(next_help_heading = "Load")]
#[group(skip)]
pub struct Levels {
    /// Closed loop: so many users, each with one request in flight, one level after the other
    #[arg(
        long, value_name = "N,N,...", value_delimiter = ',', default_value = "1,2,4,8,16,32",
        value_parser = up_to(MAX_USERS),
    )]
    pub users: Vec<u32>,
    /// Open loop in place of users: so many requests a second; latency counts from the scheduled start
    #[arg(
        long, value_name = "R,R,...", value_delimiter = ',', conflicts_with = "users",
        value_parser = within(1e-6..=1e6),
    )]
    pub rate: Vec<f64>,
    /// Gaps of an open loop: poisson, constant, or gamma:SHAPE (below 1 burstier than poisson)
    #[arg(long, value_name = "KIND", default_value = "poisson", requires = "rate", value_parser = spacing)]
    pub arrivals: Spacing,
    /// Search for the most users that are shown to meet these limits, by the upper ends of their 95 % intervals, and run them once more;
    /// for example ttft_p95=500ms,itl_p95=70ms
    #[arg(
        long, value_name = "LIMIT,...", value_delimiter = ',', conflicts_with_all = ["users", "rate"],
        value_parser = limit(true),
    )]
    pub until_slo: Vec<Limit>,
    /// The most users to search up to
    #[arg(
        long, default_value = "512", requires = "until_slo", conflicts_with_all = ["users", "rate"], value_parser = up_to(MAX_USERS),
    )]
    pub max_users: u32,
    /// Goodput: requests a second that meet all of these, for example ttft=500ms,tpot=50ms,e2e=10s
    #[arg(long, value_name = "LIMIT,...", value_delimiter = ',', value_parser = limit(false))]
    pub slo: Vec<Limit>,
    /// Measured requests of a level; ramp and warm-up are sent before them, and behind them about one of each user, until the last
    /// measured one has ended [default: 8 for each user, at least 40; with --until-slo at least 4 times what its percentile takes, 288
    /// for P95]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1_000_000), conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Measured are the requests that start within this time, behind ramp and warm-up; more are sent until the last one has ended
    #[arg(long, value_parser = duration)]
    pub duration: Option<Duration>,
    /// Requests of each user (of the schedule in an open loop) that end before measured ones start [default: 1 for each target]
    #[arg(long, value_parser = value_parser!(u64).range(0..=1_000_000))]
    pub warm_up: Option<u64>,
    /// Before the measured requests: users begin one after the other over this time, or the rate rises from 0
    #[arg(long, value_parser = duration)]
    pub ramp: Option<Duration>,
}

/// Prompts and answers.
#[derive(Args)]
#[command(next_help_heading = "Prompts and answers")]
#[group(skip)]
pub struct Prompts {
    /// Which of [[scenario]] in infergate.toml, else of chatbot, retrieval, code, agent [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// One plain scenario in their place: tokens of a prompt
    #[arg(long, value_parser = up_to(MAX_TOKENS), requires = "output_tokens", conflicts_with = "scenario")]
    pub input_tokens: Option<u32>,
    /// Tokens of an answer, beside --input-tokens
    #[arg(long, value_parser = up_to(MAX_TOKENS), requires = "input_tokens")]
    pub output_tokens: Option<u32>,
    /// Prompts from JSON lines, {"prompt": "...", "output_tokens": 64} each, in place of made-up ones
    #[arg(long)]
    pub dataset: Option<PathBuf>,
    /// Context to stay within: scenarios beyond it are made smaller
    #[arg(long, value_parser = up_to(MAX_TOKENS))]
    pub context: Option<u32>,
    /// Tokens at the start that all prompts share, where a prefix cache is what is to be measured
    #[arg(
        long, default_value = "0", conflicts_with = "dataset",
        value_parser = value_parser!(u32).range(0..=i64::from(MAX_TOKENS)),
    )]
    pub shared_prefix: u32,
    /// Prompts by --seed alone: the same in each run, so that a second run may find them in a cache
    #[arg(long)]
    pub same_prompts: bool,
}

/// Subcommands of `load`.
#[derive(Subcommand)]
pub enum Commands {
    Merge(Merge),
}

/// Put the shards of a load together
#[derive(Args)]
pub struct Merge {
    /// Receipt of each shard
    #[arg(value_name = "RECEIPT", required = true)]
    pub receipts: Vec<PathBuf>,
    /// Where the receipt of the whole load goes
    #[arg(long)]
    pub out: PathBuf,
}

/// `poisson`, `constant` or `gamma:0.5`.
fn spacing(text: &str) -> Result<Spacing> {
    match (text, text.strip_prefix("gamma:")) {
        ("poisson", _) => Ok(Spacing::Poisson),
        ("constant", _) => Ok(Spacing::Constant),
        (_, Some(shape)) => Ok(Spacing::Gamma { shape: within(0.01..=1e6)(shape)? }),
        _ => bail!("write poisson, constant or gamma:SHAPE"),
    }
}

/// A limit of a level, `ttft_p95=500ms`, or of each request, `ttft=500ms`.
fn limit(of_level: bool) -> impl Fn(&str) -> Result<Limit> + Clone {
    move |text| {
        let limit: Limit = text.parse()?;
        let is_of_level = limit.percentile.is_some();
        ensure!(is_of_level == of_level, "write ttft_p95=500ms for --until-slo, and ttft=500ms for --slo");
        Ok(limit)
    }
}

/// Nanoseconds since 1970 of `2026-01-31T12:00:00Z`.
fn start_unix_ns(text: &str) -> Result<u64> {
    let time = humantime::parse_rfc3339(text).context("write a time in UTC such as 2026-01-31T12:00:00Z")?;
    if let Ok(late) = time.elapsed() {
        let late = humantime::format_duration(Duration::from_secs(late.as_secs().max(1)));
        bail!("that was {late} ago; give a time that every shard can reach, for example in two minutes");
    }
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos()).context("is beyond the year 2554")
}

fn object(text: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(text).context("give a JSON object such as {\"temperature\":1}")
}
