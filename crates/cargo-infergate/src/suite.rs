//! One suite: several fresh worker processes, every case in each, one receipt.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;

use crate::machine::probes;
use infergate_core::case::{Case, choose, choose_benches};
use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::engine::LoadRequest;
use infergate_core::iterations::{LEAST_SAMPLE_NS, LOOK_ITERATIONS, LOOKS, SURELY_SLOW_NS, fitting_iterations};
use infergate_core::progress::Progress;
use infergate_core::sha256;
use infergate_core::worker::{Capability, Client, Program, Sampling, Timeouts, WorkerError, WorkerFile, ensure_not};
use infergate_receipts::{CaseRecord, ProbePair, ProcessSamples, RECEIPT_SCHEMA, Receipt, timestamp};

/// The fewest samples of one case in one process, whatever time they take.
const LEAST_SAMPLES: usize = 3;
/// The most samples of one case in one process.
const MOST_SAMPLES: usize = 200;

/// The longest time that one request to a worker samples (ns): an interruption loses the samples of the request that it ends.
const CHUNK_NS: f64 = 1e9;

/// What to measure, and how.
pub struct SuiteRequest {
    /// The bench binary.
    pub worker: Program,
    pub load: LoadRequest,
    /// Case ids or globs over the grid; empty is the gate's suite.
    pub cases: Vec<String>,
    /// Fresh processes.
    pub runs: usize,
    /// Time to spend on sampling one case in one process.
    pub seconds_per_case: f64,
    /// The program that probes the hardware as a process of its own, see [`probes::in_process`]; `None`: nothing is probed.
    pub prober: Option<PathBuf>,
    /// Text that prompts are cut from; `None` is the built-in one.
    pub prompt_text: Option<String>,
    /// The case that a memory phase will repeat afterwards: it has to fit the model's context, too.
    pub memory_case: Option<Case>,
    /// Keep the text of outputs, if the worker has a tokenizer.
    pub keep_text: bool,
}

/// The cases that [`choose`] finds. A worker of criterion benches has only its own, `benches`.
///
/// # Errors
/// As [`choose`]; a case of the memory phase that does not fit the context, which would otherwise fail after minutes of measuring.
pub fn fitting(
    patterns: &[String],
    memory_case: Option<Case>,
    context_tokens: usize,
    benches: &[Case],
) -> anyhow::Result<Vec<Case>> {
    if !benches.is_empty() {
        return choose_benches(patterns, benches);
    }
    let cases = choose(patterns, context_tokens)?;
    if let Some(case) = memory_case {
        let remedy = "memory.case cannot be repeated; name a shorter one, or set memory.runs to 0";
        anyhow::Context::context(case.ensure_fits(context_tokens), remedy)?;
    }
    Ok(cases)
}

/// Runs the suite. `keep` gets a partial receipt after each process, and before an error. Gives a partial receipt of what was measured so
/// far once `cancelled` is true, or a worker was interrupted.
pub fn run(
    request: &SuiteRequest,
    keep: &mut dyn FnMut(&Receipt),
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<Receipt, WorkerError> {
    let mut suite = Suite::new(request, cancelled)?;
    let outcome = suite.measure(keep, progress);
    // The worker may get Ctrl-C before this process does.
    let stopped = matches!(outcome, Err(WorkerError::Interrupted(_))) || cancelled.load(Ordering::Relaxed);
    match outcome {
        Err(error) if !stopped => {
            if !suite.receipt.cases.is_empty() {
                keep(&suite.receipt(true)?);
            }
            Err(error)
        }
        _ => suite.receipt(stopped),
    }
}

struct Suite<'a> {
    request: &'a SuiteRequest,
    cancelled: &'a AtomicBool,
    worker: WorkerFile,
    /// Time limits of answers, by how long the processes so far took.
    timeouts: Timeouts,
    clock: MonotonicClock,
    /// Whether a process loaded; before that the receipt is empty.
    is_loaded: bool,
    /// The worker's cases, if they are criterion or divan benches; else empty.
    benches: Vec<Case>,
    /// The receipt so far.
    receipt: Receipt,
}

impl<'a> Suite<'a> {
    fn new(request: &'a SuiteRequest, cancelled: &'a AtomicBool) -> Result<Self, WorkerError> {
        let receipt = Receipt {
            schema: RECEIPT_SCHEMA.into(),
            created: timestamp(),
            threads: request.load.threads,
            seed: request.load.seed,
            prompt_text_sha256: request.prompt_text.as_deref().map(sha256::of),
            ..Receipt::default()
        };
        Ok(Self {
            request,
            cancelled,
            worker: request.worker.open()?,
            timeouts: Timeouts::default(),
            clock: MonotonicClock::default(),
            is_loaded: false,
            benches: Vec::new(),
            receipt,
        })
    }

    fn measure(
        &mut self,
        keep: &mut dyn FnMut(&Receipt),
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<(), WorkerError> {
        let mut report = |label: &str, done_steps: usize, total_steps: usize| {
            progress(&Progress { label: label.to_owned(), done_steps, total_steps });
        };
        report("probing the hardware", 0, 1);
        self.probe(false)?;
        let mut cases: Vec<Case> = Vec::new();
        for run in 0..self.request.runs {
            report(
                &format!("process {} of {}: loading", run + 1, self.request.runs),
                run * cases.len(),
                self.steps(&cases),
            );
            let mut client = self.start_worker()?;
            if run == 0 {
                let context_tokens = self.receipt.engine.context_tokens;
                cases = fitting(&self.request.cases, self.request.memory_case, context_tokens, &self.benches)?;
            }
            self.time_to_first_token(&mut client, &cases)?;
            for (index, &case) in cases.iter().enumerate() {
                ensure_not(self.cancelled)?;
                let label = format!("process {} of {}: {case}", run + 1, self.request.runs);
                report(&label, run * cases.len() + index, self.steps(&cases));
                self.measure_case(&mut client, case)?;
            }
            self.timeouts = client.timeouts.clone();
            drop(client);
            keep(&self.receipt(true)?);
            // Once a process, so that a slow moment of the machine is not taken for its limit.
            report("probing the hardware", (run + 1) * cases.len(), self.steps(&cases));
            self.probe(run + 1 == self.request.runs)?;
        }
        Ok(())
    }

    fn steps(&self, cases: &[Case]) -> usize {
        (self.request.runs * cases.len()).max(1)
    }

    fn probe(&mut self, is_last: bool) -> Result<(), WorkerError> {
        let Some(program) = &self.request.prober else { return Ok(()) };
        let probed = probes::in_process(program, self.request.load.threads, self.cancelled)?;
        let known = self.receipt.probes.unwrap_or(ProbePair { before: probed, after: None, best: None });
        let best = known.best.map_or(probed, |best| best.best_of(probed));
        self.receipt.probes = Some(ProbePair { after: is_last.then_some(probed), best: Some(best), ..known });
        Ok(())
    }

    /// Starts a worker and has it load. The load time of the cold start is part of its first `ttft`.
    fn start_worker(&mut self) -> Result<Client<'a>, WorkerError> {
        let (mut client, hello) =
            Client::spawn(&self.worker, &self.request.load, self.timeouts.clone(), self.cancelled)?;
        let loaded = client.load(&self.request.load, self.request.prompt_text.as_deref())?;
        let receipt = &mut self.receipt;
        (receipt.tool, receipt.build) = (hello.tool, hello.build);
        if !self.is_loaded {
            receipt.machine = hello.machine.with_devices(loaded.devices);
            (receipt.engine, self.benches, self.is_loaded) = (loaded.engine, loaded.benches, true);
        } else if receipt.engine != loaded.engine {
            return Err(WorkerError::Failed(anyhow!(
                "the worker loaded another engine or model than before; do not change model files while they are measured"
            )));
        }
        Ok(client)
    }

    fn time_to_first_token(&mut self, client: &mut Client, cases: &[Case]) -> Result<(), WorkerError> {
        // Benches have no first token, and a worker of another language may not know it.
        let Some(prompt_tokens) = cases.iter().map(Case::prompt_tokens).min().filter(|p| *p > 0) else { return Ok(()) };
        if !client.can(Capability::Ttft) {
            return Ok(());
        }
        self.receipt.cold.push(client.ttft(prompt_tokens)?);
        self.receipt.warm.push(client.ttft(prompt_tokens)?);
        Ok(())
    }

    fn measure_case(&mut self, client: &mut Client, case: Case) -> Result<(), WorkerError> {
        // With the first process's output the worker compares each sample, and need not compute the whole output again.
        let known = self.receipt.cases.iter().find(|known| known.id == case).map(|known| known.output.ids.clone());
        let outcome = client.prepare(case, known).and_then(|prepared| {
            let text = if self.request.keep_text { client.text(&prepared.output.ids)? } else { None };
            Ok((prepared, text, self.sample(client, case)?))
        });
        match outcome {
            Ok((prepared, text, samples)) => match self.receipt.cases.iter_mut().find(|known| known.id == case) {
                Some(known) => known.processes.push(samples),
                None => self.receipt.cases.push(CaseRecord {
                    id: case,
                    output: prepared.output,
                    text,
                    counters: BTreeMap::new(),
                    work: prepared.work,
                    processes: vec![samples],
                }),
            },
            Err(WorkerError::Invalid(broken)) if self.receipt.invalid.contains(&broken) => {}
            Err(WorkerError::Invalid(broken)) => self.receipt.invalid.push(broken),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Samples a case. A first iteration shows how long one takes and how many make a sample; samples then fill the time for the case. An
    /// engine that reads the prompt again between samples gets up to three times as long. An interruption keeps the samples so far.
    fn sample(&self, client: &mut Client, case: Case) -> Result<ProcessSamples, WorkerError> {
        let start_ns = self.clock.now_ns();
        let mut samples = sample(client, case, 1, 1)?;
        let iterations = self.iterations(client, case, &samples)?;
        if iterations > 1 {
            samples = sample(client, case, 1, iterations)?;
        }
        let each_ns = first_ns(&samples) * iterations as f64;
        let budget_ns = self.request.seconds_per_case * 1e9;
        let wanted = ((budget_ns / each_ns).round() as usize).clamp(LEAST_SAMPLES, MOST_SAMPLES);
        let chunk = ((CHUNK_NS / each_ns) as usize).max(1);
        let in_time =
            |taken: usize| taken < LEAST_SAMPLES || (self.clock.now_ns() - start_ns) as f64 <= 3.0 * budget_ns;
        while samples.samples_ns.len() < wanted
            && in_time(samples.samples_ns.len())
            && !self.cancelled.load(Ordering::Relaxed)
        {
            let count = chunk.min(wanted - samples.samples_ns.len());
            match sample(client, case, count, iterations) {
                Ok(more) => samples.samples_ns.extend(more.samples_ns),
                // The samples so far are kept, and whoever ended the worker wanted the run to end.
                Err(WorkerError::Interrupted(_)) => self.cancelled.store(true, Ordering::Relaxed),
                Err(error) => return Err(error),
            }
        }
        Ok(samples)
    }

    /// The number of iterations in a sample, after the `first` one: a process's first iteration may be slow.
    fn iterations(&self, client: &mut Client, case: Case, first: &ProcessSamples) -> Result<usize, WorkerError> {
        let known = self.receipt.cases.iter().find(|known| known.id == case).and_then(|known| known.processes.first());
        if let Some(known) = known {
            return Ok(known.iterations_per_sample);
        }
        if !client.can(Capability::Iterations) {
            return Ok(1);
        }
        let mut each_ns = first_ns(first);
        if (LEAST_SAMPLE_NS..SURELY_SLOW_NS).contains(&each_ns) {
            // A single iteration that the system interrupted looks slow.
            each_ns = sample(client, case, LOOKS, 1)?.times_ns().into_iter().fold(each_ns, f64::min);
        }
        if each_ns >= LEAST_SAMPLE_NS {
            return Ok(1);
        }
        Ok(fitting_iterations(first_ns(&sample(client, case, 1, LOOK_ITERATIONS)?)))
    }

    /// The receipt so far.
    fn receipt(&self, partial: bool) -> Result<Receipt, WorkerError> {
        if !self.is_loaded {
            return Err(WorkerError::Failed(anyhow!("interrupted before a model was loaded; nothing was measured")));
        }
        Ok(Receipt { partial, wall_ns: Some(self.clock.now_ns()), ..self.receipt.clone() })
    }
}

/// Samples of a worker. A bench is warmed up: the first iteration of its closure can do what no further one does.
fn sample(client: &mut Client, case: Case, count: usize, iterations: usize) -> Result<ProcessSamples, WorkerError> {
    let warm_up = client.can(Capability::WarmUp);
    client.sample(case, Sampling { warm_up, ..Sampling::of(count, iterations) })
}

/// The time of an iteration by the first sample, nanoseconds, at least one.
fn first_ns(samples: &ProcessSamples) -> f64 {
    samples.times_ns().first().copied().unwrap_or(0.0).max(1.0)
}
