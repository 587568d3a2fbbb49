//! Everything `infergate.toml`, the environment and the flags can set: what is measured ([`infergate_core::config::Config`]) and how
//! it is judged.

mod accept;

pub use accept::accepts;
pub use infergate_core::config::{FILE_NAME, MemoryConfig, Settings, keys};

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::load::body::Api;
use anyhow::{Result, bail};
use infergate_core::config::Config as Measured;

use crate::gate::Policy;
use crate::gate::paired::Limits;
use crate::receipt::{Accept, Target};
use keys::{Key, Value};

/// Each field is the key of the same name in [`keys::KEYS`], which has its default and its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What a bench target takes too.
    pub measured: Measured,
    /// Fresh processes of one session.
    pub runs: usize,
    /// Time to sample one case in one process, seconds.
    pub seconds_per_case: f64,
    /// The ratio of head to base from which on a slowdown fails; `None`: by how quiet a case is.
    pub threshold: Option<f64>,
    /// The same of the means; `None`: by how quiet they are.
    pub mean_threshold: Option<f64>,
    /// Builds of each side that blocks draw from; `None`: by how much layouts differ, and how long a link takes.
    pub layouts: Option<usize>,
    /// An older revision that head is compared with in the same blocks.
    pub anchor: Option<String>,
    /// The ratio of head to the anchor from which on a slowdown fails.
    pub anchor_limit: f64,
    /// What decides a verdict.
    pub policy: Policy,
    /// Folder of the committed baselines.
    pub baselines: PathBuf,
    /// Folder that keeps the checkout and build of a base revision; `None`: in the user's cache.
    pub base_folder: Option<PathBuf>,
    /// What a paired run does that could not be decided.
    pub undecided: Undecided,
    /// The changes that are declared as intended.
    pub accept: Vec<Accept>,
    /// The bench target that is the worker.
    pub bench: BenchTarget,
    /// The program that is the worker instead.
    pub worker: WorkerCommand,
    /// The server that is compared instead.
    pub server: ServerConfig,
}

/// A server that is started from each revision, `[server]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// What starts it, program and arguments; `{port}` in one of them becomes a free port.
    pub command: Vec<String>,
    /// What builds it in a revision's checkout, program and arguments; empty: nothing has to be built.
    pub build: Vec<String>,
    /// The path that answers 2xx once it is ready.
    pub ready: String,
    /// How long it may take until then, seconds.
    pub ready_s: u64,
    /// The model's name in requests.
    pub model: String,
    /// Which of its endpoints is asked.
    pub api: Api,
    /// Whether requests ask for answers of their full length, an extension.
    pub ignore_eos: bool,
    /// Whether requests say that an answer must not be shorter than asked for, another extension.
    pub min_tokens: bool,
    /// Whether its answers are compared.
    pub check_output: bool,
    /// Users at once; `None`: one request at a time.
    pub users: Option<u32>,
    /// How long a window of load is, seconds; `None`: chosen from the pilot.
    pub window_s: Option<f64>,
    /// The ratio from which on a system time per token fails.
    pub throughput_limit: f64,
    /// The ratio from which on a P90 of TTFT or of ITL fails.
    pub latency_limit: f64,
    /// The ratio from which on a longest gap fails.
    pub gap_limit: f64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            build: Vec::new(),
            ready: "/health".into(),
            ready_s: 300,
            model: "default".into(),
            api: Api::Chat,
            ignore_eos: false,
            min_tokens: false,
            check_output: true,
            users: None,
            window_s: None,
            throughput_limit: 1.05,
            latency_limit: 1.10,
            gap_limit: 1.5,
        }
    }
}

/// What a paired run does that could not be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undecided {
    /// Exit 3.
    #[default]
    Fail,
    /// Exit 0 for what noise left open, with a note.
    Warn,
    /// Measure once more; what ends undecided then fails.
    Again,
}

impl FromStr for Undecided {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "fail" => Ok(Self::Fail),
            "warn" => Ok(Self::Warn),
            "again" => Ok(Self::Again),
            other => bail!("undecided takes fail, warn or again, not '{other}'"),
        }
    }
}

/// A program that is run once a sample, `[worker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// Program and arguments; empty: the bench target is the worker.
    pub command: Vec<String>,
    /// What builds it in a revision's checkout, program and arguments; empty: nothing has to be built.
    pub build: Vec<String>,
    /// Whether what it prints is its output and is compared.
    pub check_output: bool,
}

impl Default for WorkerCommand {
    fn default() -> Self {
        Self { command: Vec::new(), build: Vec::new(), check_output: true }
    }
}

/// The bench target that is the worker, `[bench]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchTarget {
    /// Its package; `None`: the one of the current folder.
    pub package: Option<String>,
    /// Its name.
    pub target: String,
    /// The name of the one that counts its heap, for the memory phase.
    pub memory_target: String,
    /// Features to build both with.
    pub features: Vec<String>,
    /// Whether both are built with their package's default features.
    pub default_features: bool,
    /// Profile to build both with; `None`: cargo's own for benches.
    pub profile: Option<String>,
    /// What it reads and git ignores, linked into each checkout: paths below the current folder.
    pub carry: Vec<String>,
    /// A program and its arguments that make what it reads, run in each checkout.
    pub prepare: Vec<String>,
}

impl Default for BenchTarget {
    fn default() -> Self {
        Self {
            package: None,
            target: "inference".into(),
            memory_target: "memory".into(),
            features: Vec::new(),
            default_features: true,
            profile: None,
            carry: Vec::new(),
            prepare: Vec::new(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            measured: Measured::default(),
            runs: 5,
            seconds_per_case: 3.0,
            threshold: None,
            mean_threshold: None,
            layouts: None,
            anchor: None,
            anchor_limit: 1.05,
            policy: Policy::default(),
            baselines: "baselines".into(),
            base_folder: None,
            undecided: Undecided::default(),
            accept: Vec::new(),
            bench: BenchTarget::default(),
            worker: WorkerCommand::default(),
            server: ServerConfig::default(),
        }
    }
}

impl Settings for Config {
    /// From any folder below the file the gate must find the same baselines.
    fn found_in(&mut self, folder: &Path) {
        self.baselines = folder.join(&self.baselines);
    }

    fn set_tables(&mut self, path: &Path, text: &str) -> Result<()> {
        self.accept = accepts(path, text)?;
        Ok(())
    }

    fn set(&mut self, key: &Key, value: Value) -> Result<()> {
        match (key.name, value) {
            ("runs", Value::Count(count)) => self.runs = usize::try_from(count)?,
            ("seconds_per_case", Value::Number(number)) => self.seconds_per_case = number,
            ("alpha", Value::Number(number)) => self.policy.alpha = number,
            ("threshold", Value::Number(number)) => self.threshold = Some(number),
            ("mean_threshold", Value::Number(number)) => self.mean_threshold = Some(number),
            ("layouts", Value::Count(count)) => self.layouts = Some(usize::try_from(count)?),
            ("anchor", Value::Text(text)) => self.anchor = Some(text),
            ("anchor_limit", Value::Number(number)) => self.anchor_limit = number,
            ("stored_floor", Value::Number(number)) => self.policy.stored_floor = number,
            ("cv_limit", Value::Number(number)) => self.policy.cv_limit = number,
            ("min_sessions", Value::Count(count)) => self.policy.min_sessions = usize::try_from(count)?,
            ("require_baseline", Value::Switch(on)) => self.policy.require_baseline = on,
            ("drift_tolerance", Value::Number(number)) => self.policy.drift_tolerance = Some(number),
            ("counter_tolerance", Value::Number(number)) => self.policy.counter_tolerance = number,
            ("targets", Value::List(list)) => {
                self.policy.targets = list.iter().map(|line| line.parse::<Target>()).collect::<Result<_>>()?;
            }
            ("base_folder", Value::Text(text)) => self.base_folder = Some(text.into()),
            ("baselines", Value::Text(text)) => self.baselines = text.into(),
            ("undecided", Value::Text(text)) => self.undecided = text.parse()?,
            ("worker.command", Value::List(list)) => self.worker.command = list,
            ("worker.build", Value::List(list)) => self.worker.build = list,
            ("worker.check_output", Value::Switch(on)) => self.worker.check_output = on,
            ("server.command", Value::List(list)) => self.server.command = list,
            ("server.build", Value::List(list)) => self.server.build = list,
            ("server.ready", Value::Text(text)) => self.server.ready = path(text)?,
            ("server.ready_s", Value::Count(count)) => self.server.ready_s = count,
            ("server.model", Value::Text(text)) => self.server.model = text,
            ("server.api", Value::Text(text)) => self.server.api = api(&text)?,
            ("server.ignore_eos", Value::Switch(on)) => self.server.ignore_eos = on,
            ("server.min_tokens", Value::Switch(on)) => self.server.min_tokens = on,
            ("server.check_output", Value::Switch(on)) => self.server.check_output = on,
            ("server.users", Value::Count(count)) => self.server.users = Some(u32::try_from(count)?),
            ("server.window_s", Value::Number(number)) => self.server.window_s = Some(number),
            ("server.throughput_limit", Value::Number(number)) => self.server.throughput_limit = number,
            ("server.latency_limit", Value::Number(number)) => self.server.latency_limit = number,
            ("server.gap_limit", Value::Number(number)) => self.server.gap_limit = number,
            ("bench.memory_target", Value::Text(text)) => self.bench.memory_target = text,
            ("bench.package", Value::Text(text)) => self.bench.package = Some(text),
            ("bench.target", Value::Text(text)) => self.bench.target = text,
            ("bench.features", Value::List(list)) => self.bench.features = list,
            ("bench.default_features", Value::Switch(on)) => self.bench.default_features = on,
            ("bench.profile", Value::Text(text)) => self.bench.profile = Some(text),
            ("bench.carry", Value::List(list)) => self.bench.carry = list,
            ("bench.prepare", Value::List(list)) => self.bench.prepare = list,
            (_, value) => self.measured.set(key, value)?,
        }
        self.policy.memory = self.measured.memory.policy;
        Ok(())
    }
}

impl Config {
    /// From which ratios on a paired run fails.
    pub fn limits(&self) -> Limits {
        let ServerConfig { throughput_limit, latency_limit, gap_limit, .. } = self.server;
        Limits {
            threshold: self.threshold,
            mean_threshold: self.mean_threshold,
            anchor: self.anchor_limit,
            throughput: throughput_limit,
            latency: latency_limit,
            gap: gap_limit,
        }
    }
}

/// Nothing but a path goes into the line of a request.
fn path(text: String) -> Result<String> {
    let plain = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { Ok(text) } else { bail!("server.ready takes a path such as /health") }
}

fn api(word: &str) -> Result<Api> {
    let found = [Api::Chat, Api::Completions].into_iter().find(|api| api.name() == word);
    found.map_or_else(|| bail!("server.api takes chat or completions, not '{word}'"), Ok)
}
