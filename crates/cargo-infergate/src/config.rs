//! Everything `infergate.toml`, the environment and the flags can set: what is measured ([`infergate_core::config::Config`]) and how
//! it is judged.

mod accept;

pub use accept::{accepts, line_at};
pub use infergate_build::wanted::BenchTarget;
pub use infergate_core::config::{FILE_NAME, MemoryConfig, Settings, keys};

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use infergate_core::config::{Config as Measured, FromValue};
use infergate_core::settings;
use infergate_load::api::body::Api;

use infergate_build::wanted::Wanted;
use infergate_judge::Policy;
use infergate_judge::paired::{Limits, THRESHOLD};
use infergate_receipts::{Accept, Target};
use keys::{Key, Value};

settings! {
    /// Each field with a key is that key in [`keys::KEYS`], which has its range.
    Config {
        /// What a bench target takes too.
        measured: Measured = Measured::default();
        /// Fresh processes of one session.
        runs: usize = 5, "runs";
        /// Time to sample one case in one process, seconds.
        seconds_per_case: f64 = 3.0, "seconds_per_case";
        /// The ratio of head to base from which on a slowdown fails.
        threshold: f64 = THRESHOLD, "threshold";
        /// The same of the means; `None`: by how quiet they are.
        mean_threshold: Option<f64> = None, "mean_threshold";
        /// The ratio that has to be excluded where noise leaves the threshold undecided; `None`: by what a case is.
        widest: Option<f64> = None, "widest";
        /// What decides a verdict.
        policy: Policy = Policy::default();
        /// Folder of the committed baselines.
        baselines: PathBuf = "baselines".into(), "baselines";
        /// Folder that keeps the checkout and build of a base revision; `None`: in the user's cache.
        base_folder: Option<PathBuf> = None, "base_folder";
        /// What a paired run does that could not be decided.
        undecided: Undecided = Undecided::Fail, "undecided";
        /// The changes that are declared as intended.
        accept: Vec<Accept> = Vec::new();
        /// The bench target that is the worker.
        bench: BenchTarget = BenchTarget::default();
        /// The program that is the worker instead.
        worker: WorkerCommand = WorkerCommand::default();
        /// The server that is compared instead.
        server: ServerConfig = ServerConfig::default();
    }
}

settings! {
    /// A program that is run once a sample, `[worker]`.
    WorkerCommand {
        /// Program and arguments; empty: the bench target is the worker. `{side}` in one of them becomes `base` or `head`.
        command: Vec<String> = Vec::new(), "worker.command";
        /// What builds it in a revision's checkout, program and arguments; empty: nothing has to be built.
        build: Vec<String> = Vec::new(), "worker.build";
        /// Whether what it prints is its output and is compared.
        check_output: bool = true, "worker.check_output";
    }
}

settings! {
    /// A server that is started from each revision, `[server]`.
    ServerConfig {
        /// What starts it, program and arguments; `{port}` in one of them becomes a free port, `{side}` `base` or `head`.
        command: Vec<String> = Vec::new(), "server.command";
        /// What builds it in a revision's checkout, program and arguments; empty: nothing has to be built.
        build: Vec<String> = Vec::new(), "server.build";
        /// The path that answers 2xx once it is ready.
        ready: String = "/health".into(), "server.ready";
        /// How long it may take until then, seconds.
        ready_s: u64 = 300, "server.ready_s";
        /// The model's name in requests.
        model: String = "default".into(), "server.model";
        /// Which of its endpoints is asked.
        api: Api = Api::Chat, "server.api";
        /// Whether requests ask for answers of their full length, by two extensions.
        ignore_eos: bool = false, "server.ignore_eos";
        /// Whether its answers are compared.
        check_output: bool = true, "server.check_output";
        /// Users at once; `None`: one request at a time.
        users: Option<u32> = None, "server.users";
        /// How long a window of load is, seconds; `None`: chosen from the pilot.
        window_s: Option<f64> = None, "server.window_s";
        /// The ratio from which on a system time per token fails.
        throughput_limit: f64 = 1.05, "server.throughput_limit";
        /// The ratio from which on a P90 of TTFT or of ITL fails.
        latency_limit: f64 = 1.10, "server.latency_limit";
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
}

impl FromValue for Undecided {
    fn from_value(value: &Value) -> Result<Self> {
        match value.to::<String>()?.as_str() {
            "fail" => Ok(Self::Fail),
            "warn" => Ok(Self::Warn),
            other => bail!("undecided takes fail or warn, not '{other}'"),
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
        let policy = &mut self.policy;
        match key.name {
            "require_baseline" => policy.require_baseline = value.to()?,
            "drift_tolerance" => policy.drift_tolerance = value.to()?,
            "counter_tolerance" => policy.counter_tolerance = value.to()?,
            "targets" => {
                let lines: Vec<String> = value.to()?;
                policy.targets = lines.iter().map(|line| line.parse::<Target>()).collect::<Result<_>>()?;
            }
            _ => {
                self.bench.is_named |= key.name == "bench.target";
                let is_own = self.put(key, &value)?
                    || self.bench.put(key, &value)?
                    || self.worker.put(key, &value)?
                    || self.server.put(key, &value)?;
                if !is_own {
                    self.measured.set(key, value)?;
                }
            }
        }
        ensure_path(&self.server.ready)
    }
}

/// A server that is ready is asked once more, and its worker starts.
const BESIDE_READY: Duration = Duration::from_secs(10);

impl ServerConfig {
    /// How long the worker that starts it may take: one that is ready is asked once more.
    pub fn least_load(&self) -> Duration {
        Duration::from_secs(self.ready_s).saturating_add(BESIDE_READY)
    }
}

impl Config {
    /// What is built of each side, and where.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            bench: self.bench.clone(),
            base_folder: self.base_folder.clone(),
            target_folder: self.measured.target_folder(),
        }
    }

    /// From which ratios on a paired run fails.
    pub fn limits(&self) -> Limits {
        let ServerConfig { throughput_limit, latency_limit, .. } = self.server;
        Limits {
            threshold: self.threshold,
            mean_threshold: self.mean_threshold,
            widest: self.widest,
            throughput: throughput_limit,
            latency: latency_limit,
        }
    }
}

/// Nothing but a path goes into the line of a request.
fn ensure_path(text: &str) -> Result<()> {
    let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(is_path, "server.ready takes a path such as /health");
    Ok(())
}
