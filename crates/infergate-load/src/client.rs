//! The client: it sends requests, stamps what comes back, and knows how late its stamps are.
//!
//! `endpoint` is a server and one request to it, `runner` a level of requests. `audit` drives the client against `script_server`, whose
//! times are known.

pub mod audit;
pub mod connection;
pub mod dial;
pub mod endpoint;
mod kernel_time;
pub mod runner;
pub mod script_server;
pub mod stamped;
pub mod stream;
#[cfg(feature = "tls")]
mod tls;
pub mod url;

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use infergate_core::process::clock_ns;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::api::text::AnswerText;
use crate::plan::LoadPlan;
use crate::receipt::{ErrorNs, ReceiveRecord};
use crate::targets::Outcome;
use crate::targets::live::Live;
use endpoint::Endpoint;
use runner::run_level;
use stamped::RunClock;

/// A client of some servers. Everything it does happens on the thread that calls it.
pub struct Client {
    runtime: Runtime,
    endpoints: Rc<[Endpoint]>,
    clock: RunClock,
}

impl Client {
    /// A client of `endpoints`, one at least, whose clock starts now.
    pub fn new(endpoints: Vec<Endpoint>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("no event queue for connections")?;
        Ok(Self { runtime, endpoints: endpoints.into(), clock: RunClock::start() })
    }

    /// Nanoseconds since its clock started.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The texts of answers that its endpoints kept.
    pub fn take_texts(&self) -> Vec<AnswerText> {
        self.endpoints.iter().flat_map(Endpoint::take_texts).collect()
    }

    /// Runs one level. Each level opens its own connections.
    pub fn run_level(&self, plan: &LoadPlan, live: &Arc<Live>) -> Outcome {
        let thread_ns = || clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let before_ns = thread_ns();
        let _ = self.receive_delays();
        let work = run_level(self.endpoints.clone(), plan.clone(), self.clock, live.clone());
        let mut outcome = LocalSet::new().block_on(&self.runtime, work);
        let cpu_ns = before_ns.zip(thread_ns());
        outcome.level.client_cpu_ns = cpu_ns.map(|(before, after)| after.saturating_sub(before));
        outcome.level.received = self.receive_delays();
        outcome
    }

    /// What the system says of all reads since this was asked last; `None` where it says nothing.
    fn receive_delays(&self) -> Option<ReceiveRecord> {
        let delays = self
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.dial.receive_delays())
            .flat_map(|delays| delays.take());
        let delays_ns: Vec<f64> = delays.map(f64::from).collect();
        (!delays_ns.is_empty())
            .then(|| ReceiveRecord { reads: delays_ns.len() as u64, delay_ns: ErrorNs::of(&delays_ns) })
    }
}
