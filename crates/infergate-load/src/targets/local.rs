//! The engine of a bench target as a target: its scheduler is driven inside one worker process, without a network.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use infergate_core::engine::LoadRequest;
use infergate_core::load::{LevelPlan, LoadLevel, RequestRecord, RequestShape};
use infergate_core::worker::{Capability, Client, Program, Timeouts, WorkerError};

use crate::plan::{LoadPlan, Prompts};
use crate::receipt::{LevelRecord, TargetRecord};
use crate::targets::live::Live;
use crate::targets::{Outcome, Target};

/// Requests of each level whose output is computed again alone.
const COMPARED: u32 = 3;

/// A worker with its model loaded.
pub struct LocalTarget<'a> {
    client: Client<'a>,
    record: TargetRecord,
    /// Requests at once in an open loop; a closed one has room for each user.
    open_slots: u32,
    begun: Instant,
}

impl<'a> LocalTarget<'a> {
    /// Starts `program` and loads the model.
    pub fn open(
        program: &Program,
        request: &LoadRequest,
        open_slots: u32,
        cancelled: &'a AtomicBool,
    ) -> Result<Self, WorkerError> {
        let (mut client, hello) = Client::spawn(&program.open()?, request, Timeouts::default(), cancelled)?;
        if !client.can(Capability::LoadLevel) {
            return Err(WorkerError::Refused(format!(
                "{}: the bench target cannot serve several requests; build it with a newer infergate",
                program.path.display()
            )));
        }
        let loaded = client.load(request, None)?;
        let record = TargetRecord::Local {
            engine: Box::new(loaded.engine),
            build: Box::new(hello.build),
            threads: request.threads,
            load_ns: loaded.load_ns,
            cost: loaded.cost,
        };
        Ok(Self { client, record, open_slots, begun: Instant::now() })
    }

    fn plan(&self, plan: &LoadPlan) -> LevelPlan {
        let (seed, shared) = if let Prompts::Words { seed, shared } = plan.prompts { (seed, shared) } else { (0, 0) };
        let prompt_tokens = plan.shape.input_tokens as usize;
        LevelPlan {
            arrivals: plan.arrivals,
            stop: plan.stop,
            warm_up_requests: plan.warm_up_requests,
            slots: plan.arrivals.users().unwrap_or(self.open_slots),
            scenarios: vec![RequestShape {
                prompt_tokens,
                output_tokens: plan.shape.output_tokens as usize,
                shared_prefix_tokens: (shared as usize).min(prompt_tokens.saturating_sub(1)),
            }],
            turns: plan.shape.turns,
            turn_tokens: plan.shape.turn_tokens as usize,
            seed: plan.prompt_seed(seed),
            compared: COMPARED,
        }
    }
}

impl Target for LocalTarget<'_> {
    fn records(&self) -> Vec<TargetRecord> {
        vec![self.record.clone()]
    }

    fn run_level(&mut self, plan: &LoadPlan, live: &Arc<Live>) -> Result<Outcome> {
        let wanted = self.plan(plan);
        let began_ns = u64::try_from(self.begun.elapsed().as_nanos())?;
        let level = match self.client.load_level(&wanted) {
            // Who ends the run wants what there was before.
            Err(WorkerError::Interrupted(_)) if live.is_cancelled() => LoadLevel::default(),
            level => level?,
        };
        for record in &level.records {
            live.sent();
            live.pieces(record.chunk_ns.len() as u64);
            live.ended(record.failure.is_some());
        }
        let wall_ns = level.records.iter().map(|record| record.ended_ns).max().unwrap_or(0);
        let record = |record: RequestRecord| {
            let record = record.with_times(|ns| ns + began_ns);
            RequestRecord { scenario: plan.scenario, ..record }
        };
        let requests: Vec<RequestRecord> = level.records.into_iter().map(record).collect();
        let level = LevelRecord {
            scenario: plan.scenario,
            arrivals: plan.arrivals,
            whole: None,
            stop: plan.stop,
            warm_up_requests: plan.warm_up_requests,
            ramp_ns: 0,
            steady: level.steady.map(|window| window.later(began_ns)),
            began_ns,
            wall_ns,
            client_cpu_ns: None,
            received: None,
            requests,
            batch: Some(level.batch),
        };
        Ok(Outcome { level, is_full: false })
    }
}
