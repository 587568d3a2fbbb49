//! `load --target local`: the levels of a load run on the engine of a bench target, in one worker process.
//!
//! The worker's path comes from `cli::bench_target::worker`, as for every other command. What it gives is raw; windows,
//! percentiles and verdicts are made of it elsewhere.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{anyhow, ensure};

use crate::receipt::{Build, Machine};
use infergate::engine::{EngineInfo, LoadRequest};
use infergate::load::{Arrivals, LevelPlan, LoadLevel, RequestShape, Stop};
use infergate::progress::Progress;
use infergate::worker::{Capability, Client, Patience, WorkerError, WorkerFile, ensure_not};

/// Requests of each level whose output is computed again alone.
pub const COMPARED: u32 = 3;

/// Which levels to run, on what.
#[derive(Debug, Clone)]
pub struct LocalRequest {
    /// The bench binary.
    pub worker: PathBuf,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
    /// Whether the tree it was built from had changes.
    pub dirty: Option<bool>,
    /// The model.
    pub load: LoadRequest,
    /// Run one after the other.
    pub levels: Vec<LevelPlan>,
}

/// What the levels gave.
#[derive(Debug, Clone)]
pub struct LocalRun {
    /// infergate's version in the worker.
    pub tool: String,
    /// The machine as the worker sees it, with the engine's devices.
    pub machine: Machine,
    /// How the worker was compiled.
    pub build: Build,
    /// Engine and model.
    pub engine: EngineInfo,
    /// Time to load the model, nanoseconds.
    pub load_ns: u64,
    /// Each level that was finished, with its plan.
    pub levels: Vec<(LevelPlan, LoadLevel)>,
    /// It was ended by its user before the last level was finished.
    pub partial: bool,
}

/// A closed loop at each of `users`, `requests_per_user` requests for each user, with room for all of them. Prompts differ
/// between levels, too.
pub fn closed_levels(users: &[u32], requests_per_user: u64, scenarios: &[RequestShape], seed: u64) -> Vec<LevelPlan> {
    let level = |(number, users): (u64, &u32)| LevelPlan {
        arrivals: Arrivals::Closed { users: *users },
        stop: Stop::Requests { count: u64::from(*users).saturating_mul(requests_per_user) },
        slots: *users,
        scenarios: scenarios.to_vec(),
        // Any number of levels away from the next run's seed.
        seed: seed.wrapping_add(number << 32),
        compared: COMPARED,
    };
    (1..).zip(users).map(level).collect()
}

/// Starts the worker, loads the model, warms up with one request of each scenario, and runs the levels in turn. When the user
/// ends the run, the levels so far come back as a partial run.
///
/// # Errors
/// A worker that dies, hangs or cannot serve, a plan that does not fit the model, an output that a batch changed.
pub fn run(
    request: &LocalRequest,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<LocalRun, WorkerError> {
    let mut report = |label: &str, done_steps: usize| {
        progress(&Progress { label: label.to_owned(), done_steps, total_steps: request.levels.len() });
    };
    let file = WorkerFile::open(&request.worker)?;
    report("loading", 0);
    let (mut client, hello) = Client::spawn(&file, &request.load, Patience::default(), cancelled)?;
    if !client.can(Capability::LoadLevel) {
        let path = request.worker.display();
        return Err(WorkerError::Refused(format!(
            "{path}: the bench target cannot serve several requests; build it with a newer infergate"
        )));
    }
    let loaded = client.load(&request.load, None)?;
    check(&request.levels, &loaded.engine)?;
    let build = Build {
        commit: request.commit.clone(),
        dirty: request.dirty,
        worker_sha256: Some(file.sha256().to_owned()),
        ..hello.build
    };
    let mut run = LocalRun {
        tool: hello.tool,
        machine: hello.machine.with_devices(loaded.devices),
        build,
        engine: loaded.engine,
        load_ns: loaded.load_ns,
        levels: Vec::new(),
        partial: false,
    };
    let outcome = levels(&mut client, request, &mut run.levels, &mut report, cancelled);
    match outcome {
        // Ctrl-C at a terminal reaches the worker, too, and may reach it first.
        Err(WorkerError::Interrupted(_)) => run.partial = true,
        other => other?,
    }
    Ok(run)
}

/// Every level is checked before the first one takes its minutes.
fn check(levels: &[LevelPlan], engine: &EngineInfo) -> anyhow::Result<()> {
    ensure!(
        !levels.is_empty(),
        "a load run without levels measures nothing; name at least one number of users or a rate"
    );
    for (number, level) in (1..).zip(levels) {
        level.validate(engine.context_tokens).map_err(|error| anyhow!("level {number}: {error:#}"))?;
    }
    Ok(())
}

fn levels(
    client: &mut Client,
    request: &LocalRequest,
    done: &mut Vec<(LevelPlan, LoadLevel)>,
    report: &mut dyn FnMut(&str, usize),
    cancelled: &AtomicBool,
) -> Result<(), WorkerError> {
    report("warming up", 0);
    if let Some(first) = request.levels.first() {
        client.load_level(&warm_up(first))?;
    }
    for (number, plan) in request.levels.iter().enumerate() {
        ensure_not(cancelled)?;
        report(&label(plan), number);
        let level = client.load_level(plan).map_err(|error| error.of(&label(plan)))?;
        done.push((plan.clone(), level));
    }
    Ok(())
}

/// One request of each scenario, one after the other. How long it takes bounds the wait for the levels.
fn warm_up(first: &LevelPlan) -> LevelPlan {
    LevelPlan {
        arrivals: Arrivals::Closed { users: 1 },
        stop: Stop::Requests { count: first.scenarios.len() as u64 },
        slots: 1,
        scenarios: first.scenarios.clone(),
        // No level's prompts.
        seed: !first.seed,
        compared: 0,
    }
}

/// How a level is named while it runs.
fn label(plan: &LevelPlan) -> String {
    match plan.arrivals {
        Arrivals::Closed { users: 1 } => "1 user".to_owned(),
        Arrivals::Closed { users } => format!("{users} users"),
        Arrivals::Open { requests_per_s, .. } => format!("{requests_per_s} requests/s"),
    }
}
