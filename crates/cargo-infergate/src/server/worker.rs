//! A server as a worker of the gate. Each scenario has two cases: `NAME/ttft`, the time to the first token, and `NAME/itl`, the
//! time from the first piece to the last / (tokens - 1). A sample is one request. The output is the texts of some prompts that
//! are always the same. Cases under load are the numbers of a [window](crate::paired::load_window).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use infergate_core::case::{BenchName, Case};
use infergate_core::engine::{EngineInfo, LoadRequest, Pacing};
use infergate_core::load::{
    Arrivals, FailureClass, LoadWindow, PLACES, REPEATED_PROMPTS, RequestRecord, Stop, WindowPlan,
};
use infergate_core::outcome::InvariantBroken;
use infergate_core::sha256::WORDS;
use infergate_core::worker::{Capability, Hello, Ids, Loaded, Measured, MemoryState, PreparedReply, Sampling, hello};
use serde::{Deserialize, Serialize};

use super::answer::{Part, sent_tokens, untimed, words_of};
use super::memory::of_started;
use super::process::Server;
use crate::config::ServerConfig;
use infergate_load::api::body::RequestTemplate;
use infergate_load::client::Client;
use infergate_load::client::endpoint::{Endpoint, Limits};
use infergate_load::client::url::Url;
use infergate_load::plan::shard::Shard;
use infergate_load::plan::{LoadPlan, Prompts, Turn};
use infergate_load::targets::live::Live;
use infergate_receipts::window::{METRICS, case_name};
use infergate_receipts::{Build, InferenceMemory, MemorySample, Scenario};

const CAPABILITIES: [Capability; 6] = [
    Capability::Prepare,
    Capability::Sample,
    Capability::Memory,
    Capability::Inference,
    Capability::RequestId,
    Capability::Window,
];

/// How many times a failed request outside the windows is sent again.
const AGAIN: u32 = 4;
/// The pause before it is sent again.
const BEFORE_AGAIN: Duration = Duration::from_millis(100);

/// How many answers of a process may have no token: the first number, and one more for each of the second number of requests.
const MOST_SKIPPED: (u64, u64) = (2, 20);

/// The number of successive answers without times that fails a case: fewer can be accidents.
const MOST_UNTIMED: u32 = 5;

/// Pieces of output and records that fit one answer, of some 18 bytes each.
const MAX_KEPT: u64 = infergate_core::load::MOST_ANSWER_BYTES / 18;

/// The number of the level whose prompt has the output that is compared. The numbers below have the prompts that windows repeat.
const PREPARED: u64 = u64::MAX;

/// Prompts of windows begin here, far from those of single requests.
const WINDOWS: u64 = 1 << 40;

/// The level whose prompt is the one that windows repeat `at` that place.
const fn repeated(at: u64) -> u64 {
    PREPARED - 1 - at
}

/// The seed of the prompts of a level. Prompts that are always the same have one seed in all blocks of a run, others a seed of their block.
const fn seed_of(of_block: u64, number: u64) -> u64 {
    if number >= PREPARED - REPEATED_PROMPTS { of_block & !PLACES } else { of_block }
}

/// The server, and its scenarios.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub settings: ServerConfig,
    pub scenarios: Vec<Scenario>,
    /// The server's address, if it runs already.
    pub url: Option<String>,
}

/// Answers requests on stdin until it ends.
///
/// # Errors
/// A pipe that breaks. That a server fails is an answer.
pub fn serve(job: Job) -> Result<()> {
    crate::command_worker::answer(&mut Worker { job, loaded: None, requests: 0 })
}

struct Worker {
    job: Job,
    loaded: Option<Loading>,
    /// Requests so far. Each is a level with prompts of its own, which no cache holds.
    requests: u64,
}

struct Loading {
    client: Client,
    /// `None` if it was running already: then it stays.
    server: Option<Server>,
    /// The seed of the prompts, another one in each block.
    seed: u64,
    /// The output of each scenario that was computed and compared.
    outputs: BTreeMap<usize, Texts>,
    skipped: u64,
}

/// The server's answers to the prompts that are always the same.
#[derive(Clone)]
struct Texts {
    /// The words of the SHA-256 of each text; empty if texts are not compared.
    ids: Vec<u32>,
    /// Tokens of the first answer, by the server's usage.
    tokens: Option<u64>,
}

impl Measured for Worker {
    fn hello(&self) -> Result<Hello> {
        Ok(hello(&CAPABILITIES, Build::default(), false))
    }

    /// Adds to the error of a request that the server ended.
    fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        let server = self.loaded.as_mut().and_then(|loaded| loaded.server.as_mut());
        match server.filter(|_| !error.is::<InvariantBroken>()).and_then(Server::ended_soon) {
            Some(how) => anyhow!("{error:#}; the server ended {how}"),
            None => error,
        }
    }

    fn load(&mut self, request: &LoadRequest, _prompt_text: Option<String>) -> Result<Loaded> {
        // A second one ends the first.
        self.loaded = None;
        let begun = std::time::Instant::now();
        let ServerConfig { ref model, api, ignore_eos, .. } = self.job.settings;
        let (server, url) = match &self.job.url {
            Some(url) => (None, url.clone()),
            None => {
                let server = Server::start(&self.job.settings)?;
                let url = format!("http://{}", server.address);
                (Some(server), url)
            }
        };
        let url = Url::parse(&url, api)?;
        // With further attempts a refusal would be hidden in the time of a later one.
        let limits = Limits { attempts: 1, ..Limits::default() };
        let template = RequestTemplate {
            api,
            model: model.clone(),
            limit_field: "max_tokens",
            ignore_eos,
            ..RequestTemplate::default()
        };
        let client = Client::new(vec![Endpoint::over_network(&url, None, template, limits)?])?;
        self.loaded = Some(Loading { client, server, seed: request.seed, outputs: BTreeMap::new(), skipped: 0 });
        let engine = EngineInfo {
            name: "server".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: model.clone(),
            dtype: "none".into(),
            // It may go on by itself: a whole request is the smallest turn.
            pacing: Pacing::Streaming,
            ..EngineInfo::default()
        };
        let is_under_load = self.job.settings.users.is_some();
        let timed = self.cases()?.into_iter().filter(|(.., part)| matches!(part, Part::Load) == is_under_load);
        let benches = timed.map(|(case, ..)| case).collect();
        let load_ns = begun.elapsed().as_nanos() as u64;
        Ok(Loaded { engine, load_ns, devices: Vec::new(), cost: None, benches })
    }

    fn prepare(&mut self, case: Case, known: Ids, _: Ids) -> Result<PreparedReply> {
        let (scenario, _) = self.find(case)?;
        let texts = self.verified(case, scenario, known)?;
        Ok(PreparedReply { counted_tokens: texts.tokens, ..PreparedReply::of_ids(texts.ids) })
    }

    fn sample(&mut self, case: Case, Sampling { count, iterations, .. }: Sampling) -> Result<Vec<Vec<u64>>> {
        ensure!(iterations == 1, "worker: a sample is one request; ask for more samples");
        let (scenario, part) = self.find(case)?;
        (0..count).map(|_| Ok(vec![self.next_ns(case, scenario, part)?])).collect()
    }

    fn memory(&mut self, case: Option<Case>) -> Result<MemoryState> {
        if let Some(case) = case {
            let (scenario, _) = self.find(case)?;
            self.ask_next(scenario)?;
        }
        let is_ours = self.loaded.as_ref().is_some_and(|loaded| loaded.server.is_some());
        let sample = if is_ours { of_started(std::process::id()) } else { MemorySample::default() };
        let missing = (is_ours && sample.rss_bytes.is_none())
            .then(|| "there is no /proc with the server's resident set".to_owned());
        Ok(MemoryState { sample, peak_live_bytes: None, peak_rss_bytes: None, missing: missing.into_iter().collect() })
    }

    fn inference(&mut self, _case: Case) -> Result<InferenceMemory> {
        Ok(InferenceMemory::default())
    }

    /// Many users at once.
    fn window(&mut self, case: Case, plan: WindowPlan) -> Result<LoadWindow> {
        let (scenario, _) = self.find(case)?;
        let turn = Turn { request: 0, conversation: 0, turn: 0 };
        let text = |at| Ok(self.level(scenario, repeated(at))?.ask(turn).0);
        let texts = (0..REPEATED_PROMPTS).map(text).collect::<Result<_>>()?;
        let seed = self.loaded()?.seed;
        let level = LoadPlan {
            prompts: Prompts::Repeating { seed, window: plan, texts },
            arrivals: Arrivals::Closed { users: plan.users },
            stop: Stop::Duration { ns: plan.length_ns - plan.ramp_ns },
            ramp_ns: plan.ramp_ns,
            max_kept: MAX_KEPT,
            ..self.level(scenario, WINDOWS + plan.number)?
        };
        let loaded = self.loaded()?;
        let seen = window(&loaded.client, &level, plan);
        ensure!(
            loaded.server.as_mut().and_then(Server::ended).is_none(),
            "the server did not bear the load of {} users",
            plan.users
        );
        Ok(seen)
    }
}

/// Runs `level`, which is that of `plan`, until the plan's time limit.
fn window(client: &Client, level: &LoadPlan, plan: WindowPlan) -> LoadWindow {
    let late = Arc::new(AtomicBool::new(false));
    let live = Arc::new(Live::new(late.clone()));
    let (done, is_done) = mpsc::channel::<()>();
    let limit = Duration::from_nanos(plan.give_up_ns);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            late.store(is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout), Ordering::Relaxed);
        });
        let outcome = client.run_level(level, &live);
        drop(done);
        outcome
    });
    let since = |ns: u64| ns.saturating_sub(outcome.level.began_ns);
    let records = outcome.level.requests.iter().map(|record| record.clone().with_times(since)).collect();
    LoadWindow { records, full: outcome.is_full }
}

impl Worker {
    /// The cases of this server, each with its scenario and its part of an answer; single requests also under load, for the memory phase.
    fn cases(&self) -> Result<Vec<(Case, usize, Part)>> {
        let mut cases = Vec::new();
        for (at, Scenario { name, .. }) in self.job.scenarios.iter().enumerate() {
            let single = [(format!("{name}/ttft"), Part::Ttft), (format!("{name}/itl"), Part::Itl)];
            let of_load = METRICS
                .into_iter()
                .filter_map(|(metric, _)| Some((case_name(name, self.job.settings.users?, metric)?, Part::Load)));
            for (name, part) in single.into_iter().chain(of_load) {
                cases.push((Case::Bench(BenchName::new(&name)?), at, part));
            }
        }
        Ok(cases)
    }

    fn find(&self, case: Case) -> Result<(usize, Part)> {
        let found = self.cases()?.into_iter().find(|(known, ..)| *known == case).map(|(_, at, part)| (at, part));
        found.with_context(|| format!("worker: there is no case {case} of this server"))
    }

    /// The output of a scenario, once for all its cases: computed twice, or compared with the known one. If it is known, the prompts that
    /// windows repeat are not sent: a fresh server has to read them under load first. Otherwise they are sent twice, too, since answers
    /// that vary by chance would look like a difference between both builds.
    fn verified(&mut self, case: Case, scenario: usize, known: Ids) -> Result<Texts> {
        let computed = self.loaded()?.outputs.get(&scenario).cloned();
        let is_new = computed.is_none();
        let mut output = computed.map_or_else(|| self.output(scenario), Ok)?;
        let mut is_same = true;
        if let Some(known) = known {
            is_same = known.get(..WORDS) == output.ids.get(..WORDS);
            output.ids = known;
        } else if is_new {
            is_same = self.output(scenario)?.ids == output.ids;
            if is_same && self.job.settings.check_output {
                let texts = self.repeated_texts(scenario)?;
                is_same = texts == self.repeated_texts(scenario)?;
                output.ids.extend(texts);
            }
        }
        let text = "the same prompt gives another text in another request; make the server deterministic, or set server.check_output = false";
        ensure!(is_same, InvariantBroken(format!("{case}: {text}")));
        self.loaded()?.outputs.insert(scenario, output.clone());
        Ok(output)
    }

    fn loaded(&mut self) -> Result<&mut Loading> {
        self.loaded.as_mut().context("worker: nothing is loaded; send load first")
    }

    /// The answer to the prompt that is always the same, after another prompt: a server that keeps the last prompt computes only what is
    /// new, and numbers of another batch can end in another text.
    fn output(&mut self, scenario: usize) -> Result<Texts> {
        self.ask_next(scenario)?;
        let record = self.ask(scenario, PREPARED)?;
        let ids = self.job.settings.check_output.then(|| words_of(&record)).transpose()?.unwrap_or_default();
        Ok(Texts { ids, tokens: sent_tokens(&record) })
    }

    /// The hashes of the answers to the prompts that windows repeat.
    fn repeated_texts(&mut self, scenario: usize) -> Result<Vec<u32>> {
        let text = |at| words_of(&self.ask(scenario, repeated(at))?);
        (0..REPEATED_PROMPTS).map(text).collect::<Result<Vec<_>>>().map(|texts| texts.concat())
    }

    /// The time of the next answer that has one: on a busy machine all pieces of a short one can come in one read.
    fn next_ns(&mut self, case: Case, scenario: usize, part: Part) -> Result<u64> {
        let mut why = "";
        for _ in 0..MOST_UNTIMED {
            let record = self.ask_next(scenario)?;
            if let Some(ns) = part.of(&record)? {
                return Ok(ns);
            }
            why = untimed(&record);
        }
        bail!("{case}: {why} ({MOST_UNTIMED} answers in a row)")
    }

    /// One request of a scenario, whose prompt no other has and whose answer has a token. A prompt whose answer ends at once is skipped:
    /// both builds have one now and then. More of them fail.
    fn ask_next(&mut self, scenario: usize) -> Result<RequestRecord> {
        loop {
            self.requests += 1;
            let requests = self.requests;
            let record = self.ask(scenario, requests - 1)?;
            let Some(failure) = &record.failure else { return Ok(record) };
            let loaded = self.loaded()?;
            loaded.skipped += 1;
            ensure!(
                loaded.skipped <= MOST_SKIPPED.0 + requests / MOST_SKIPPED.1,
                "{} ({} of {requests} answers of one process)",
                failure.detail,
                loaded.skipped
            );
        }
    }

    /// Sends one request of a scenario, with the prompt of the level `number`. Its answer may be empty, unless `ignore_eos` keeps the model
    /// from ending at once. Under load failures are counted in the windows, so a request outside them that is refused or cut is sent again.
    fn ask(&mut self, scenario: usize, number: u64) -> Result<RequestRecord> {
        let mut left = if self.job.settings.users.is_some() { AGAIN } else { 0 };
        let plan = self.level(scenario, number)?;
        loop {
            let live = Arc::new(Live::default());
            let mut requests = self.loaded()?.client.run_level(&plan, &live).level.requests;
            let record = requests.pop().context("the client sent no request")?;
            let Some(failure) = &record.failure else { return Ok(record) };
            let is_short = failure.class == FailureClass::WrongLength && record.chunk_ns.is_empty();
            if is_short && !self.job.settings.ignore_eos {
                return Ok(record);
            }
            if let Some(words) = live.words.get() {
                eprintln!("the server says: {words}");
            }
            ensure!(
                left > 0 && failure.class != FailureClass::Timeout,
                "the server did not answer a request: {}",
                failure.detail
            );
            left -= 1;
            std::thread::sleep(BEFORE_AGAIN);
        }
    }

    /// One user and one request of a scenario, whose prompt is that of the level `number`.
    fn level(&mut self, scenario: usize, number: u64) -> Result<LoadPlan> {
        let seed = self.loaded()?.seed;
        Ok(LoadPlan {
            scenario: u32::try_from(scenario)?,
            shape: Scenario { turns: 1, ..self.job.scenarios[scenario].clone() },
            arrivals: Arrivals::Closed { users: 1 },
            stop: Stop::Requests { count: 1 },
            warm_up_requests: 0,
            ramp_ns: 0,
            shard: Shard::WHOLE,
            seed: number,
            prompts: Prompts::Words { seed: seed_of(seed, number), shared: 0 },
            max_kept: u64::MAX,
        })
    }
}
