//! An engine that computes nothing and gives its tokens at set times, as many at once as there are requests: a server whose
//! times are known, for tests of whoever measures one.
//!
//! Its tokens are those of [`FakeEngine`], so that an output still tells whether it belongs to its prompt.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::scheduler::{ensure_request_fits, no_free_slot};
use infergate::engine::{Engine, EngineInfo, Event, FakeEngine, LoadRequest, Pacing, RequestId, Scheduler, TokenId};

/// A step waits no longer than this for a token, so that further requests are taken in meanwhile.
const SLICE: Duration = Duration::from_micros(250);
/// Nobody waits for a token for more than eleven days.
const MOST_MS: f64 = 1e9;

/// The times and faults of a [`TimedEngine`].
#[derive(Debug, Clone, PartialEq)]
pub struct TimedScript {
    /// From a request's start to its first token.
    pub ttft: Duration,
    /// From each token to the next.
    pub itl: Duration,
    /// Before this token, counted from 1, it waits for so much longer.
    pub stall: Option<(usize, Duration)>,
    /// The model's context.
    pub context_tokens: usize,
    /// Added to every token's id: two servers that differ here differ in output.
    pub salt: u64,
    /// Memory that each request leaves behind, bytes.
    pub leak_bytes: usize,
}

impl Default for TimedScript {
    /// 200 ms, then 20 ms each.
    fn default() -> Self {
        Self {
            ttft: Duration::from_millis(200),
            itl: Duration::from_millis(20),
            stall: None,
            context_tokens: 8192,
            salt: 0,
            leak_bytes: 0,
        }
    }
}

impl TimedScript {
    /// From options by name: `ttft_ms`, `itl_ms`, `stall_at` and `stall_ms`, `context_tokens`, `salt`, `leak_bytes`.
    ///
    /// # Errors
    /// Another name, or a value that is no number from 0.
    pub fn from_options(options: &BTreeMap<String, String>) -> Result<Self> {
        let mut script = Self::default();
        let (mut stall_at, mut stall) = (None, Duration::ZERO);
        for (name, value) in options {
            let wrong = || format!("option {name} takes a number from 0");
            let count = || value.parse::<u32>().with_context(wrong);
            match name.as_str() {
                "ttft_ms" => script.ttft = milliseconds(value).with_context(wrong)?,
                "itl_ms" => script.itl = milliseconds(value).with_context(wrong)?,
                "stall_ms" => stall = milliseconds(value).with_context(wrong)?,
                "stall_at" => stall_at = Some(usize::try_from(count()?)?),
                "context_tokens" => script.context_tokens = usize::try_from(count()?)?,
                "salt" => script.salt = u64::from(count()?),
                "leak_bytes" => script.leak_bytes = usize::try_from(count()?)?,
                _ => bail!(
                    "no option '{name}'; there are ttft_ms, itl_ms, stall_at, stall_ms, context_tokens, salt and leak_bytes"
                ),
            }
        }
        script.stall = stall_at.map(|at| (at, stall));
        Ok(script)
    }

    /// From a request's start to its token number `index`, from 0.
    fn due(&self, index: usize) -> Duration {
        let tokens = u32::try_from(index).unwrap_or(u32::MAX);
        let stall = self.stall.filter(|(at, _)| index + 1 >= *at).map_or(Duration::ZERO, |(_, stall)| stall);
        self.ttft.saturating_add(self.itl.saturating_mul(tokens)).saturating_add(stall)
    }

    fn fake(&self) -> FakeEngine {
        let script =
            FakeScript { context_tokens: self.context_tokens, output_salt: self.salt, ..FakeScript::default() };
        FakeEngine::new(script, VirtualClock::default())
    }
}

fn milliseconds(text: &str) -> Option<Duration> {
    let ms: f64 = text.parse().ok().filter(|ms| *ms <= MOST_MS)?;
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

/// A factory of [`TimedEngine`]s by the load request's options.
///
/// # Errors
/// As [`TimedScript::from_options`].
pub fn load(request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(TimedEngine::new(TimedScript::from_options(&request.options)?)))
}

/// See the [module](self).
pub struct TimedEngine {
    script: TimedScript,
    fake: FakeEngine,
    /// When the sequence was started, and its tokens so far.
    begun: Option<(Instant, usize)>,
}

impl TimedEngine {
    /// An engine by `script`.
    pub fn new(script: TimedScript) -> Self {
        Self { fake: script.fake(), script, begun: None }
    }

    /// Waits until the next token of the sequence is due.
    fn wait(&mut self) {
        if let Some((begun, given)) = &mut self.begun {
            thread::sleep(self.script.due(*given).saturating_sub(begun.elapsed()));
            *given += 1;
        }
    }
}

impl Engine for TimedEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo { name: "timed".into(), model: "timed".into(), pacing: Pacing::Streaming, ..self.fake.info() }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.begun = Some((Instant::now(), 0));
        let token = self.fake.start(prompt)?;
        self.wait();
        Ok(token)
    }

    fn next(&mut self) -> Result<TokenId> {
        let token = self.fake.next()?;
        self.wait();
        Ok(token)
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self::new(self.script.clone())))
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        ensure!(requests > 0, "a scheduler for zero requests serves nobody; ask for room for at least one");
        let (script, running, leaked) = (self.script.clone(), Vec::new(), Vec::new());
        Ok(Box::new(Timed { script, slots: requests, running, submitted: 0, leaked }))
    }
}

/// Every request keeps its own time, whatever the others do.
struct Timed {
    script: TimedScript,
    slots: usize,
    running: Vec<Running>,
    submitted: u64,
    leaked: Vec<Vec<u8>>,
}

struct Running {
    request: RequestId,
    fake: FakeEngine,
    /// Empty once it was read.
    prompt: Vec<TokenId>,
    begun: Instant,
    given: usize,
    max_tokens: usize,
}

impl Running {
    fn due(&self, script: &TimedScript) -> Instant {
        self.begun + script.due(self.given)
    }

    fn next(&mut self, age: Duration) -> Result<Event> {
        let token = match self.prompt.is_empty() {
            false => self.fake.start(&std::mem::take(&mut self.prompt))?,
            true => self.fake.next()?,
        };
        let (index, age_ns) = (self.given, u64::try_from(age.as_nanos())?);
        self.given += 1;
        Ok(Event { request: self.request, token, index, age_ns, finished: self.given == self.max_tokens })
    }
}

impl Timed {
    /// The next token of every request where it is due.
    fn due(&mut self) -> Result<Vec<Event>> {
        let now = Instant::now();
        let mut events = Vec::new();
        for running in &mut self.running {
            if let Some(age) = now.checked_duration_since(running.due(&self.script)) {
                events.push(running.next(age)?);
            }
        }
        self.running.retain(|running| running.given < running.max_tokens);
        Ok(events)
    }
}

impl Scheduler for Timed {
    fn capacity(&self) -> usize {
        self.slots
    }

    fn in_flight(&self) -> usize {
        self.running.len()
    }

    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId> {
        ensure_request_fits(prompt, max_tokens, self.script.context_tokens)?;
        if self.running.len() >= self.slots {
            bail!(no_free_slot(self.slots));
        }
        if self.script.leak_bytes > 0 {
            // Written to, or the system would not give it.
            self.leaked.push(vec![1; self.script.leak_bytes]);
        }
        let request = RequestId(self.submitted);
        self.submitted += 1;
        let (fake, prompt, begun) = (self.script.fake(), prompt.to_vec(), Instant::now());
        self.running.push(Running { request, fake, prompt, begun, given: 0, max_tokens });
        Ok(request)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        let events = self.due();
        match events {
            Ok(events) if events.is_empty() => {}
            Ok(events) => return Ok(events),
            Err(error) => {
                self.running.clear();
                return Err(error);
            }
        }
        let Some(next) = self.running.iter().map(|running| running.due(&self.script)).min() else {
            return Ok(Vec::new());
        };
        thread::sleep(next.saturating_duration_since(Instant::now()).min(SLICE));
        Ok(Vec::new())
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        let before = self.running.len();
        self.running.retain(|running| running.request != request);
        self.running.len() < before
    }

    fn batches(&self) -> Option<bool> {
        Some(true)
    }
}
