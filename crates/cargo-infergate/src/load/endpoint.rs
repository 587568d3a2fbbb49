//! A server as a target: its client, on one thread.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::Target;
use super::client::Endpoint;
use super::cpu::thread_cpu_ns;
use super::live::Live;
use super::plan::LevelPlan;
use super::runner::run_level;
use super::stamped::RunClock;
use crate::receipt::{LevelRecord, TargetRecord};

/// What a level gave.
pub struct Outcome {
    /// Its record.
    pub level: LevelRecord,
    /// It ended early, because it kept as much as it may.
    pub is_full: bool,
}

/// A client of one server. Everything it does happens on the thread that calls it.
pub struct Client {
    runtime: Runtime,
    endpoint: Rc<Endpoint>,
    clock: RunClock,
}

impl Client {
    /// A client of `endpoint`, whose clock starts now.
    ///
    /// # Errors
    /// When the system gives no event queue.
    pub fn new(endpoint: Endpoint) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("no event queue for connections")?;
        Ok(Self { runtime, endpoint: Rc::new(endpoint), clock: RunClock::start() })
    }

    /// Nanoseconds since its clock started.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Runs one level. Each level opens its own connections.
    pub fn run_level(&self, plan: &LevelPlan, live: &Arc<Live>) -> Outcome {
        let cpu_before = thread_cpu_ns();
        let work = run_level(self.endpoint.clone(), plan.clone(), self.clock, live.clone());
        let ran = LocalSet::new().block_on(&self.runtime, work);
        let cpu = cpu_before.zip(thread_cpu_ns()).map(|(before, after)| after.saturating_sub(before));
        let level = LevelRecord {
            scenario: plan.scenario,
            arrivals: plan.arrivals,
            stop: plan.stop,
            warm_up_requests: plan.warm_up_requests,
            began_ns: ran.began_ns,
            wall_ns: ran.wall_ns,
            client_cpu_ns: cpu,
            issued: ran.records.len() as u64,
            requests: ran.records,
        };
        Outcome { level, is_full: ran.is_full }
    }
}

/// A server that was asked for by its URL.
pub struct EndpointTarget {
    /// Its client.
    pub client: Client,
    /// What the receipt says of it.
    pub record: TargetRecord,
}

impl Target for EndpointTarget {
    fn record(&self) -> TargetRecord {
        self.record.clone()
    }

    fn run_level(&mut self, plan: &LevelPlan, live: &Arc<Live>) -> Result<Outcome> {
        Ok(self.client.run_level(plan, live))
    }
}
