//! The flags of `gate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgGroup, Args};

use super::flags::{self, Workers, flags_of_keys};
use super::machine_lock::Wait;
use crate::config::{self, JudgingKeys};
use infergate_load::plan::shard::Shard;
use infergate_receipts::Side;

/// Measure, compare with a baseline or revision, decide
#[derive(Args)]
#[command(args = keys())]
#[command(after_help = "Examples:\n  cargo xtask gate\n  cargo xtask gate --against origin/main\n  \
    cargo xtask gate --against HEAD~1 --budget 5m\n  cargo xtask gate --model model.gguf --runs 3 --json verdict.json\n  \
    cargo xtask gate --receipt target/infergate/receipt.json\n  \
    cargo xtask gate --targets 'prefill/p128 ttft_ms < 2500' --targets 'decode/* tokens_per_s > 20'")]
pub struct Gate {
    /// Where the receipt goes [default: target/infergate/receipt.json; with --against paired.json there]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Judge this receipt instead of measuring; repeatable: the shards of one gate are one suite
    #[arg(long, conflicts_with_all = flags::ids_of_suite(), conflicts_with = PAIRED)]
    pub receipt: Vec<PathBuf>,
    /// Write the verdict here; - is stdout, which then has nothing else
    #[arg(long)]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub wait: Wait,
    /// Write a report here too: comment, Markdown, HTML, JSON, CSV, pictures, JUnit, annotations
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub paired: Paired,
    #[command(flatten)]
    pub workers: Workers,
}

fn keys() -> Vec<Arg> {
    [paired_keys(), flags::of_suite(), flags_of_keys::<JudgingKeys>(), flags_of_keys::<config::MemoryKeys>()].concat()
}

/// Flags that make a gate a paired one, and flags that make it one of servers.
const PAIRED: &str = "paired";
const SERVERS: &str = "servers";

/// Flags that make a gate a paired one, and those that only make sense then.
#[derive(Args)]
#[command(next_help_heading = "Against a revision, on this machine")]
#[command(group = ArgGroup::new(PAIRED).args(["against", "swap", "toolchain", "base_bin", "base_url"])
    .conflicts_with_all(["runs", "seconds_per_case", "require_baseline", "worker"]))]
#[group(skip)]
pub struct Paired {
    /// Build this git revision too and compare with it, process by process in turn
    #[arg(long, value_name = "REV")]
    pub against: Option<String>,
    /// Compare HEAD as it is locked with HEAD on another version of a dependency; once for each that moves
    #[arg(long, value_name = "CRATE=VERSION|PATH|URL")]
    pub swap: Vec<String>,
    /// Compare HEAD as it is with HEAD built by another toolchain of rustup: beta, nightly, 1.95.0
    #[arg(long, value_name = "NAME")]
    pub toolchain: Option<String>,
    /// Bench binary to compare with, built elsewhere
    #[arg(long, requires = "head_bin")]
    pub base_bin: Option<PathBuf>,
    /// Compare the server of [server] in infergate.toml, started from both revisions
    #[arg(long, requires = PAIRED, group = SERVERS, conflicts_with_all = ["base_bin", "base_url", "swap", "toolchain"])]
    pub server: bool,
    /// Server to compare with, started elsewhere; repeatable: time is judged with at least 4 servers a side
    #[arg(long, value_name = "URL", group = SERVERS, requires = "head_url")]
    pub base_url: Vec<String>,
    /// Server to judge, started elsewhere; as often as --base-url
    #[arg(long, value_name = "URL", requires = "base_url")]
    pub head_url: Vec<String>,
    /// Bench binary to judge, built elsewhere
    #[arg(long, requires = "base_bin")]
    pub head_bin: Option<PathBuf>,
    /// Time both sides for at most this long: 90s, 5m, 1h. Builds, counting, the memory phase and explaining come on top
    #[arg(long, requires = PAIRED, value_parser = config::duration)]
    pub budget: Option<Duration>,
    /// Measure a few blocks only and say what they show: no verdict, exit code 0
    #[arg(long, requires = PAIRED, conflicts_with_all = ["out", "json", "report", "budget", "shard"])]
    pub quick: bool,
    /// Measure this shard of the cases: 2/8 is the second of eight; `gate --receipt` judges the receipts of all
    #[arg(long, value_name = "K/N", requires = PAIRED)]
    pub shard: Option<Shard>,
    /// Whose infergate.toml says limits, targets and cases: base's, or head's [default: base]
    #[arg(
        long, value_name = "SIDE", requires = "against",
        value_parser = config::one_of([("base", Side::Base), ("head", Side::Head)]),
    )]
    pub settings: Option<Side>,
    /// Time also what the machine code says is the same: to see how this machine's noise is judged
    #[arg(long, requires = PAIRED)]
    pub time_same_code: bool,
    /// Show a changed output and judge time all the same
    #[arg(long)]
    pub allow_output_change: bool,
    /// Say which functions take the time of these cases, whatever their verdict, and not of those that regressed; globs, repeatable
    #[arg(long, value_name = "CASE", requires = PAIRED, conflicts_with_all = ["no_explain", "quick"])]
    pub explain: Vec<String>,
    /// Do not look for the functions that take the time of a case that regressed
    #[arg(long, requires = PAIRED)]
    pub no_explain: bool,
}

impl Paired {
    /// Whether this is a paired gate.
    pub fn is_paired(&self) -> bool {
        let is_built = self.against.is_some() || !self.swap.is_empty() || self.toolchain.is_some();
        is_built || self.base_bin.is_some() || !self.base_url.is_empty()
    }

    pub fn is_of_servers(&self) -> bool {
        self.server || !self.base_url.is_empty()
    }
}

/// Flags of the keys that hold for a paired gate alone.
fn paired_keys() -> Vec<Arg> {
    let paired = [flags_of_keys::<config::PairedKeys>(), flags_of_keys::<config::WorkerCommand>()].concat();
    let server = flags_of_keys::<config::ServerConfig>().into_iter().map(|arg| arg.requires(SERVERS));
    paired.into_iter().chain(server).map(|arg| arg.requires(PAIRED)).collect()
}
