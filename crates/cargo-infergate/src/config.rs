//! Everything `infergate.toml`, the environment and the flags can set: what is measured and how it is judged.
//!
//! A key `runs` can be given as `runs = 5` in `infergate.toml`, as `INFERGATE_RUNS=5` and as `--runs 5`; the later wins. A key of a
//! table, `bench.package`, is `INFERGATE_BENCH_PACKAGE` and `--bench-package`. All of them are words first ([`Layer`]), which are put
//! upon each other and then read as the flags of [`AllKeys`], so that one rule says what a key takes.

mod tables;

pub use infergate_build::workspace::BenchTarget;
pub use infergate_core::config::{FILE_NAME, KEYS, MAX_FILE_BYTES, find_file};
pub use tables::Tables;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use clap::builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _, value_parser};
use infergate_core::case::Case;
use infergate_core::config::{
    Config as Measured, MEMORY_RUNS, MemoryConfig, SEEDS, THREADS, case_pattern, entries, list, options, variable,
    variable_name,
};
use infergate_core::text_file::read_text;
use infergate_load::api::body::Api;
use serde::{Deserialize, Serialize};

use infergate_build::bench_target::BuildRequest;
use infergate_judge::Policy;
use infergate_judge::paired::Limits;
use infergate_receipts::Target;

/// The settings of the command.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Settings that a bench target has, too.
    pub measured: Measured,
    /// How much one session against a baseline measures.
    pub session: SessionKeys,
    /// How head is compared with a revision.
    pub paired: PairedKeys,
    /// What decides a verdict.
    pub policy: Policy,
    /// Folder of the committed baselines.
    pub baselines: PathBuf,
    /// The tables of the file, which are no keys.
    pub tables: Tables,
    /// What flags set, which override any file.
    pub flags: Layer,
    /// The bench target that is the worker.
    pub bench: BenchTarget,
    /// The program that is the worker instead.
    pub worker: WorkerCommand,
    /// The server that is compared instead.
    pub server: ServerConfig,
}

/// Every key, as a flag.
#[derive(Args)]
pub struct AllKeys {
    #[command(flatten)]
    workload: WorkloadKeys,
    #[command(flatten)]
    session: SessionKeys,
    #[command(flatten)]
    paired: PairedKeys,
    #[command(flatten)]
    judging: JudgingKeys,
    #[command(flatten)]
    memory: MemoryKeys,
    #[command(flatten)]
    bench: BenchKeys,
    #[command(flatten)]
    worker: WorkerCommand,
    #[command(flatten)]
    server: ServerConfig,
}

/// What is measured.
#[derive(Args)]
#[command(next_help_heading = "What to measure")]
pub struct WorkloadKeys {
    /// Model: synthetic:gpt2 (also distilgpt2, smollm2-135m, tiny), a .gguf file, a folder, or hf:ORG/NAME[@REV][/FILE.gguf]
    #[arg(long, value_name = "SPEC", default_value = "synthetic:gpt2")]
    model: String,
    /// Compute type; f32 dequantizes a GGUF at load; default: as the file has it
    #[arg(long)]
    dtype: Option<String>,
    /// Threads to compute with; default: every core this process may use
    #[arg(long, value_parser = value_parser!(u64).range(THREADS))]
    threads: Option<u64>,
    /// Seed of synthetic weights and prompts
    #[arg(long, default_value = "1", value_parser = value_parser!(u64).range(SEEDS))]
    seed: u64,
    /// What else the engine understands, NAME=VALUE each; never written into a receipt
    #[arg(long, value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Text file that prompts are cut from; default: a public-domain text that comes with infergate
    #[arg(long)]
    prompt: Option<PathBuf>,
    /// Cases, ids or globs; empty: the gate's suite of five (the full grid for `cargo bench`)
    #[arg(long, value_name = "GLOB", value_parser = case_pattern)]
    cases: Vec<String>,
}

/// One session against a baseline.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "What to measure")]
pub struct SessionKeys {
    /// Fresh processes of one session
    #[arg(long, default_value = "5", value_parser = value_parser!(u64).range(1..=1000))]
    pub runs: u64,
    /// Time to sample one case in one process; at least 3 samples, at most 200
    #[arg(long, default_value = "3", value_parser = within(0.0..=3600.0))]
    pub seconds_per_case: f64,
}

/// How head is compared with a revision.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Against a revision, on this machine")]
pub struct PairedKeys {
    /// Against a revision, a slowdown by this ratio or more fails, 1.02 or 2%
    #[arg(long, default_value = "1.02", value_parser = ratio)]
    pub threshold: f64,
    /// Against a revision, the same ratio of the means, which see a few steps that take much longer; default: 1.05 where the means of a
    /// case are quiet, 1.10 elsewhere, and more for a wide threshold
    #[arg(long, value_parser = ratio)]
    pub mean_threshold: Option<f64>,
    /// Against a revision, a case that noise leaves inconclusive passes if a slowdown by this ratio is excluded; default: 1.05, and 1.10
    /// for criterion and divan benches
    #[arg(long, value_parser = ratio)]
    pub widest: Option<f64>,
    /// Against a revision, what a run that ends inconclusive or unstable does: fail; or warn, which passes what noise left open and
    /// says so
    #[arg(long, default_value = "fail", value_name = "fail|warn", value_parser = ["fail", "warn"])]
    inconclusive: String,
    /// Folder, outside the repository, that keeps the checkout and build of a base revision; default: the user's cache
    #[arg(long)]
    pub base_folder: Option<PathBuf>,
    /// Files and folders that it reads and git ignores, linked into each checkout
    #[arg(id = "bench.carry", long)]
    carry: Vec<String>,
}

/// How a run is judged.
#[derive(Args)]
#[command(next_help_heading = "How to judge")]
pub struct JudgingKeys {
    /// Whether a run without a comparable baseline fails (exit 4) instead of being advisory
    #[arg(long, default_value = "false", action = ArgAction::Set)]
    require_baseline: bool,
    /// Logits that differ by up to this fraction of the largest one (root mean square) drifted, more is a changed output; default: by the
    /// dtype, 1e-6 for f32
    #[arg(long, value_parser = within(0.0..=1.0))]
    drift_tolerance: Option<f64>,
    /// A counter of bytes may rise by this fraction and passes; a number of allocations may not rise at all
    #[arg(long, default_value = "0.01", value_parser = within(0.0..=1.0))]
    counter_tolerance: f64,
    /// Absolute limits, `CASE METRIC < VALUE` each (also <=, > and >=), in the unit that the metric names
    #[arg(long, value_name = "LIMIT")]
    targets: Vec<Target>,
    /// Folder of the committed baselines
    #[arg(long, default_value = "baselines")]
    baselines: PathBuf,
}

/// The memory phase, `[memory]`.
#[derive(Args)]
#[command(next_help_heading = "Memory phase")]
pub struct MemoryKeys {
    /// Case that the memory phase repeats
    #[arg(id = "memory.case", long, default_value = "generate/p128-o16")]
    case: Case,
    /// Runs of the memory phase; a verdict on leaks takes at least 20; 0 looks for no leak, and counts no allocations of criterion benches
    #[arg(id = "memory.runs", long, default_value = "100", value_parser = value_parser!(u64).range(MEMORY_RUNS))]
    runs: u64,
}

/// How the bench target is built, `[bench]`.
#[derive(Args)]
#[command(next_help_heading = "Bench target")]
pub struct BenchKeys {
    /// Package of the bench target; default: the one of the current folder
    #[arg(id = "bench.package", long)]
    package: Option<String>,
    /// Bench target that is the measured worker; default: `inference` if that is an engine's, else all that use criterion or divan
    #[arg(id = "bench.target", long)]
    target: Option<String>,
    /// Features to build it with
    #[arg(id = "bench.features", long)]
    features: Vec<String>,
    /// Build it with its package's default features
    #[arg(id = "bench.default_features", long, default_value = "true", action = ArgAction::Set)]
    default_features: bool,
    /// Profile to build it with; default: cargo's own for benches
    #[arg(id = "bench.profile", long)]
    profile: Option<String>,
}

/// A program that is run once a sample, `[worker]`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Against a revision, on this machine")]
pub struct WorkerCommand {
    /// Against a revision, in place of a bench target: a program and its arguments, run once a sample in each checkout; its output is what
    /// it prints
    #[arg(id = "worker.command", long, value_name = "PROGRAM,ARGUMENT,...")]
    pub command: Vec<String>,
    /// A program and its arguments that build that command, run once in each checkout
    #[arg(id = "worker.build", long, value_name = "PROGRAM,ARGUMENT,...")]
    pub build: Vec<String>,
    /// Compare what the command prints; false for one that prints times
    #[arg(id = "worker.check_output", long, default_value = "true", action = ArgAction::Set)]
    pub check_output: bool,
}

/// A server that is started from each revision, `[server]`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Against a revision, on this machine")]
pub struct ServerConfig {
    /// With gate --server: a program and its arguments that start a server; {port} in one of them becomes a free port, {side} base or head
    #[arg(id = "server.command", long, value_name = "PROGRAM,ARGUMENT,...")]
    pub command: Vec<String>,
    /// A program and its arguments that build the server, run once in each checkout
    #[arg(id = "server.build", long, value_name = "PROGRAM,ARGUMENT,...")]
    pub build: Vec<String>,
    /// Path that answers 2xx once the server is ready
    #[arg(id = "server.ready", long, default_value = "/health", value_parser = path)]
    pub ready: String,
    /// Seconds within which it has to be ready
    #[arg(id = "server.ready_s", long, default_value = "300", value_parser = value_parser!(u64).range(1..=86_400))]
    pub ready_s: u64,
    /// The model's name at the server
    #[arg(id = "server.model", long, default_value = "default")]
    pub model: String,
    /// Which of its APIs to use: chat, completions, responses or messages
    #[arg(id = "server.api", long, default_value = "chat", value_parser = one_of(Api::OF_TOKENS))]
    pub api: Api,
    /// Send the extensions ignore_eos and min_tokens: every answer has its full length
    #[arg(id = "server.ignore_eos", long, default_value = "false", action = ArgAction::Set)]
    pub ignore_eos: bool,
    /// Compare what the server says; false for one that does not say the same twice
    #[arg(id = "server.check_output", long, default_value = "true", action = ArgAction::Set)]
    pub check_output: bool,
    /// With gate --server: time so many users at once; default: one request at a time
    #[arg(id = "server.users", long, visible_alias = "users", value_parser = up_to(10_000))]
    pub users: Option<u32>,
    /// Seconds of a window of load; default: at least 10, by how long requests take
    #[arg(id = "server.window_s", long, value_parser = within(0.05..=600.0))]
    pub window_s: Option<f64>,
    /// Under load, the ratio from which on the system time per output token fails
    #[arg(id = "server.throughput_limit", long, default_value = "1.05", value_parser = ratio)]
    pub throughput_limit: f64,
    /// Under load, the ratio from which on the P90 of TTFT or of ITL fails
    #[arg(id = "server.latency_limit", long, default_value = "1.10", value_parser = ratio)]
    pub latency_limit: f64,
}

const MOST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// A number in this range.
pub fn within(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.with_context(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// A number from 1 up to `most`.
pub fn up_to(most: u32) -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=i64::from(most))
}

/// A ratio, also as the percentage above 1: 1.05 or 5%. Whoever writes 5 means 5 %, and a gate with a limit of five times as slow would
/// pass nearly everything: so a ratio is below 2.
fn ratio(text: &str) -> Result<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let ratio = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| 1.0 + percent / 100.0).filter(|ratio| *ratio <= 100.0),
        None => number(text).filter(|ratio| *ratio < 2.0),
    };
    let ratio = ratio.filter(|ratio| *ratio >= 1.001);
    ratio.context("give a percentage from 0.1% to 9900%, or a ratio below 2 such as 1.05")
}

/// `90s`, `5m`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration> {
    let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero() && *time <= MOST_TIME);
    time.context("give a time above 0 and up to 7 days, for example 500ms, 90s or 1h30m")
}

/// Nothing but a path goes into the line of a request.
fn path(text: &str) -> Result<String> {
    let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(is_path, "give a path such as /health");
    Ok(text.to_owned())
}

/// The flags of these keys; their ids are the keys. They come after the flags that a command already has.
pub fn flags_of<T: Args>() -> Vec<Arg> {
    let flag = |arg: &Arg| with_value_name(arg.clone().long(flag_name(arg.get_id().as_str())));
    T::augment_args(Command::new(FILE_NAME).next_display_order(None)).get_arguments().map(flag).collect()
}

/// The flag of a key.
pub fn flag_of(key: &str) -> Option<Arg> {
    flags_of::<AllKeys>().into_iter().find(|arg| arg.get_id() == key)
}

/// `bench-target` of `bench.target`.
fn flag_name(key: &str) -> String {
    key.replace(['.', '_'], "-")
}

/// The value of a flag is named by its type, unless the flag has a better name for it than its own.
pub fn with_value_name(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let is_unnamed =
        arg.get_long().is_some() && arg.get_value_names().is_some_and(|names| names[0].eq_ignore_ascii_case(id));
    let names = [
        (TypeId::of::<PathBuf>(), "FILE"),
        (TypeId::of::<String>(), "NAME"),
        (TypeId::of::<bool>(), "BOOL"),
        (TypeId::of::<f64>(), "N"),
        (TypeId::of::<u32>(), "N"),
        (TypeId::of::<u64>(), "N"),
        (TypeId::of::<Duration>(), "TIME"),
    ];
    let value = arg.get_value_parser().type_id();
    match names.iter().find(|(known, _)| is_unnamed && value == *known) {
        Some((_, name)) => arg.value_name(*name),
        None => arg,
    }
}

/// The values, as words, of keys that a file, the environment or flags set. Each is one that its key accepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layer(BTreeMap<&'static str, Vec<String>>);

impl Layer {
    /// The keys of the file `path`, which holds `text`; paths in it are relative to its folder.
    ///
    /// # Errors
    /// As [`entries`], and a value that its key does not take; each with line and column.
    pub fn of_file(path: &Path, text: &str) -> Result<Self> {
        let mut layer = Self::default();
        for entry in entries(path, text)? {
            layer.set(entry.key, entry.words).with_context(|| format!("{}: {}", entry.place, entry.key))?;
        }
        // From any folder below the file the gate must find the same baselines.
        let baselines = path.with_file_name("baselines").to_string_lossy().into_owned();
        layer.0.entry("baselines").or_insert_with(|| vec![baselines]);
        Ok(layer)
    }

    /// The environment variables that are set and not empty.
    ///
    /// # Errors
    /// A value that its key does not take.
    pub fn of_environment() -> Result<Self> {
        let mut layer = Self::default();
        for key in KEYS {
            if let Some(value) = variable(key)? {
                layer.set_words(key, &[value]).with_context(|| variable_name(key))?;
            }
        }
        Ok(layer)
    }

    /// The keys that were given to `command` as flags.
    ///
    /// # Errors
    /// A value that its key does not take.
    pub fn of_flags(command: &Command, matches: &ArgMatches) -> Result<Self> {
        let mut layer = Self::default();
        for flag in command.get_arguments() {
            let key = KEYS.into_iter().find(|key| flag.get_id() == *key);
            let (Some(key), Some(name)) = (key, flag.get_long()) else { continue };
            if matches.value_source(key) == Some(ValueSource::CommandLine) {
                let words: Vec<String> = matches.get_many::<String>(key).into_iter().flatten().cloned().collect();
                layer.set_words(key, &words).with_context(|| format!("--{name}"))?;
            }
        }
        Ok(layer)
    }

    /// Sets a key from a flag's or variable's words. A list is several words, or one with commas between its entries.
    ///
    /// # Errors
    /// Words that the key does not take.
    pub fn set_words(&mut self, key: &'static str, words: &[String]) -> Result<()> {
        self.set(key, if is_list(key) { list(words) } else { words.iter().map(|word| word.trim().into()).collect() })
    }

    fn set(&mut self, key: &'static str, words: Vec<String>) -> Result<()> {
        ensure!(is_list(key) || matches!(&words[..], [word] if !word.is_empty()), "give one text that is not empty");
        let alone = Self(BTreeMap::from([(key, words)]));
        alone.config(Tables::default())?;
        self.0.extend(alone.0);
        Ok(())
    }

    /// These keys, and below them those of `other`.
    pub fn over(self, mut other: Self) -> Self {
        other.0.extend(self.0);
        other
    }

    /// Keeps the keys for which `keeps` is true.
    pub fn only(mut self, keeps: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|key, _| keeps(key));
        self
    }

    /// The words of a key; `None` where it is not set.
    pub fn get(&self, key: &str) -> Option<&[String]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// The settings by these keys, with the default of every other one.
    ///
    /// # Errors
    /// A value that its key does not take.
    pub fn config(&self, tables: Tables) -> Result<Config> {
        let flag = |(key, words): (&&str, &Vec<String>)| -> Vec<String> {
            words.iter().map(|word| format!("--{}={word}", flag_name(key))).collect()
        };
        let command = Command::new(FILE_NAME).no_binary_name(true).args(flags_of::<AllKeys>());
        let matches = command.try_get_matches_from(self.0.iter().flat_map(flag));
        let keys = matches.and_then(|matches| AllKeys::from_arg_matches(&matches)).map_err(|error| one_line(&error))?;
        let AllKeys { workload, session, paired, judging, memory, bench, worker, server } = keys;
        let usual = Measured::default();
        Ok(Config {
            measured: Measured {
                model: workload.model,
                dtype: workload.dtype,
                threads: workload.threads.map_or(usual.threads, |threads| threads as usize),
                seed: workload.seed,
                options: options(&workload.options)?,
                prompt: workload.prompt,
                cases: workload.cases,
                memory: MemoryConfig { case: memory.case, runs: memory.runs as usize },
            },
            policy: Policy {
                require_baseline: judging.require_baseline,
                counter_tolerance: judging.counter_tolerance,
                drift_tolerance: judging.drift_tolerance,
                targets: judging.targets,
                inconclusive_passes: paired.inconclusive == "warn",
                ..Policy::default()
            },
            baselines: judging.baselines,
            bench: BenchTarget {
                package: bench.package,
                is_named: bench.target.is_some(),
                target: bench.target.unwrap_or_else(|| BenchTarget::default().target),
                features: bench.features,
                default_features: bench.default_features,
                profile: bench.profile,
                together: Vec::new(),
                carry: paired.carry.clone(),
            },
            session,
            paired,
            tables,
            flags: Self::default(),
            worker,
            server,
        })
    }
}

/// clap's message of several lines, in one line.
pub fn one_line(error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    anyhow!("{}", lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: "))
}

/// Whether the key is given several times, or with commas.
fn is_list(key: &str) -> bool {
    flag_of(key).is_some_and(|arg| matches!(arg.get_action(), ArgAction::Append))
}

/// Time in which the worker of a ready server starts and answers.
const AFTER_READY: Duration = Duration::from_secs(10);

impl ServerConfig {
    /// The time limit of the worker that starts it.
    pub fn least_load(&self) -> Duration {
        Duration::from_secs(self.ready_s) + AFTER_READY
    }
}

impl Config {
    /// The file in `folder` or the nearest above it (up to the repository's root), then the environment, then `flags`.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML, an unknown key, a value that its key does not take.
    pub fn load(folder: &Path, flags: &Layer) -> Result<Self> {
        let (file, tables) = match find_file(folder) {
            None => Default::default(),
            Some(path) => {
                let text = read_text(&path, MAX_FILE_BYTES)?;
                (Layer::of_file(&path, &text)?, Tables::of_file(&path, &text)?)
            }
        };
        Self::of(flags, file, tables)
    }

    /// The settings of `file`, overridden by the environment and that by `flags`.
    ///
    /// # Errors
    /// A value that its key does not take.
    pub fn of(flags: &Layer, file: Layer, tables: Tables) -> Result<Self> {
        let config = flags.clone().over(Layer::of_environment()?).over(file).config(tables)?;
        Ok(Self { flags: flags.clone(), ..config })
    }

    /// As [`load`](Self::load), in the current folder.
    ///
    /// # Errors
    /// As [`load`](Self::load), or when the current folder cannot be read.
    pub fn here(flags: &Layer) -> Result<Self> {
        Self::load(&current_folder()?, flags)
    }

    /// What is built of each side, and where a revision is checked out.
    pub fn build_request(&self) -> BuildRequest {
        BuildRequest { bench: self.bench.clone(), base_folder: self.paired.base_folder.clone() }
    }

    /// The ratios from which on a paired run fails.
    pub fn limits(&self) -> Limits {
        Limits {
            threshold: self.paired.threshold,
            mean_threshold: self.paired.mean_threshold,
            widest: self.paired.widest,
            throughput: self.server.throughput_limit,
            latency: self.server.latency_limit,
        }
    }
}

/// A flag's value that is one of these words, each with what it means.
pub fn one_of<T, const N: usize>(words: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.each_ref().map(|(word, _)| *word)).try_map(move |given| {
        let found = words.iter().find(|(word, _)| *word == given);
        found.map(|(_, meaning)| meaning.clone()).ok_or("is none of these words")
    })
}

/// Where relative paths count from.
///
/// # Errors
/// When the folder is gone or cannot be read.
pub fn current_folder() -> Result<PathBuf> {
    std::env::current_dir().context("the current folder cannot be read")
}
