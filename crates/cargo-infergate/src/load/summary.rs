//! Everything that is derived from a level's records. Pure: the same records give the same numbers.

use std::collections::BTreeMap;

use infergate::load::{Arrivals, FailureClass, RequestRecord};
use infergate::stats::mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Values;
use crate::receipt::LevelRecord;
use crate::stats::Queue;

/// A stretch of the run, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Its begin.
    pub from_ns: u64,
    /// Its end, after its begin.
    pub to_ns: u64,
}

/// How output tokens were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// By the server's usage.
    Usage,
    /// By a tokenizer, in the texts of the answers, for no usage came.
    Tokenizer,
    /// As pieces, for no usage came: a piece that holds several tokens counts as one.
    Pieces,
}

/// One level.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LevelSummary {
    /// Users of a closed loop.
    pub users: Option<u32>,
    /// Requests sent.
    pub issued: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Given up when the run ended.
    pub cancelled: u64,
    /// Failed otherwise, by class.
    pub failures: BTreeMap<FailureClass, u64>,
    /// Attempts that ended in 429 or 5xx and were made again.
    pub retries: u64,
    /// The steady window; `None` where requests were too few for one.
    pub window: Option<Window>,
    /// Requests that started in the window and completed: those that the values below are from.
    pub measured: usize,
    /// How tokens were counted; `None` where nothing was measured.
    pub counted: Option<Counted>,
    /// How long after its start each request was sent: in an open loop the client's own lateness, part of every latency.
    pub late_ns: Values,
    /// Time to first token, nanoseconds.
    pub ttft_ns: Values,
    /// Gaps between pieces, nanoseconds.
    pub itl_ns: Values,
    /// Time per output token of each request, nanoseconds.
    pub tpot_ns: Values,
    /// End-to-end latency, nanoseconds.
    pub e2e_ns: Values,
    /// Decode speed of each request, 1 / TPOT.
    pub decode_tokens_per_s: Values,
    /// Tokens / E2E of each request.
    pub output_tokens_per_s: Values,
    /// Tokens of completed requests that came within the window, per second.
    pub system_tokens_per_s: Option<f64>,
    /// Requests in flight within the window, in the mean.
    pub in_flight: Option<f64>,
    /// What Little's law makes of them, start rate times mean latency, as a share of [`in_flight`](Self::in_flight). `None`
    /// where the window is so short that its ends decide.
    pub little: Option<f64>,
    /// Processor time of the client per time.
    pub client_cpu_share: Option<f64>,
}

/// The window must hold so many mean latencies before Little's law is asked: requests that reach over its ends count less
/// than 5 % then.
const LITTLE_LATENCIES: f64 = 20.0;

impl LevelSummary {
    /// What is known of the queue that its requests stood in.
    pub fn queue(&self) -> Queue {
        if self.users.is_some() { Queue::OfUsers } else { Queue::Unbounded(self.ttft_ns.dependence()) }
    }
}

/// Summarises one level, all its targets together.
pub fn summarise(level: &LevelRecord) -> LevelSummary {
    let requests: Vec<&RequestRecord> = level.requests.iter().collect();
    LevelSummary {
        issued: level.issued,
        in_flight: steady_window(level).map(|window| in_flight(&level.requests, window)),
        little: steady_window(level).and_then(|window| little(&level.requests, window)),
        ..summarise_some(level, &requests)
    }
}

/// Summarises what one of several targets did in a level. How many were in flight is the level's, not the target's.
pub fn summarise_target(level: &LevelRecord, target: u32) -> LevelSummary {
    let requests: Vec<&RequestRecord> = level.requests.iter().filter(|record| record.target == target).collect();
    summarise_some(level, &requests)
}

fn summarise_some(level: &LevelRecord, requests: &[&RequestRecord]) -> LevelSummary {
    let window = steady_window(level);
    let failed = |class| requests.iter().filter(move |record| class_of(record) == Some(class)).count() as u64;
    let mut failures: BTreeMap<FailureClass, u64> = BTreeMap::new();
    for class in requests.iter().filter_map(|record| class_of(record)).filter(|class| *class != FailureClass::Cancelled)
    {
        *failures.entry(class).or_default() += 1;
    }
    let completed: Vec<&RequestRecord> = requests.iter().copied().filter(|record| record.failure.is_none()).collect();
    let measured: Vec<&RequestRecord> = match window {
        Some(Window { from_ns, to_ns }) => {
            completed.iter().copied().filter(|record| (from_ns..to_ns).contains(&record.scheduled_ns)).collect()
        }
        None => Vec::new(),
    };
    let asked: Vec<&RequestRecord> = window.map_or_else(Vec::new, |window| asked_in(requests, window));
    let latency = |time: fn(&RequestRecord) -> Option<f64>| {
        Values::of(&asked, f64::INFINITY, |one| time(one).into_iter().collect())
    };
    let speed =
        |speed: fn(&RequestRecord) -> Option<f64>| Values::of(&asked, 0.0, |one| speed(one).into_iter().collect());
    LevelSummary {
        users: if let Arrivals::Closed { users } = level.arrivals { Some(users) } else { None },
        issued: requests.len() as u64,
        completed: completed.len() as u64,
        cancelled: failed(FailureClass::Cancelled),
        failures,
        retries: requests.iter().map(|record| u64::from(record.retries)).sum(),
        window,
        measured: measured.len(),
        counted: counted(&measured),
        late_ns: Values::of(&measured, f64::INFINITY, |one| vec![one.sent_ns.saturating_sub(one.scheduled_ns) as f64]),
        ttft_ns: latency(ttft_ns),
        itl_ns: Values::of(&asked, f64::INFINITY, gaps_ns),
        tpot_ns: latency(tpot_ns),
        e2e_ns: latency(e2e_ns),
        decode_tokens_per_s: speed(|record| per_second(1.0, tpot_ns(record)?)),
        output_tokens_per_s: speed(|record| per_second(tokens(record) as f64, e2e_ns(record)?)),
        system_tokens_per_s: window.and_then(|window| system_tokens_per_s(&completed, window)),
        in_flight: None,
        little: None,
        client_cpu_share: level.client_cpu_ns.and_then(|cpu| Some(per_second(cpu as f64, level.wall_ns as f64)? / 1e9)),
    }
}

/// `throughput(N) / (N * throughput(1))`; `None` where either is not known.
pub fn scaling_efficiency(level: &LevelSummary, single: &LevelSummary) -> Option<f64> {
    let alone = single.system_tokens_per_s.filter(|rate| *rate > 0.0 && single.users == Some(1))?;
    Some(level.system_tokens_per_s? / (f64::from(level.users?) * alone))
}

/// The time in which the load was what was asked for. Closed loop: from when the last user had ended its warm-up until the
/// first user had no more to send. Open loop: from the first start behind the warm-up to the last. No ramp is in it. Of shards
/// that were put together: what they have in common, where the level says it. `None` where that is no time at all.
pub fn steady_window(level: &LevelRecord) -> Option<Window> {
    if let Some(window) = level.steady {
        return (window.from_ns < window.to_ns).then_some(window);
    }
    let warm_up = usize::try_from(level.warm_up_requests).ok()?;
    // Before it not everybody had begun, or the rate was not reached.
    let full_ns = level.began_ns.saturating_add(level.ramp_ns);
    let (from_ns, to_ns) = match level.arrivals {
        Arrivals::Open { .. } => {
            let mut starts = level.requests.get(warm_up..)?.iter().map(|record| record.scheduled_ns);
            (starts.find(|start_ns| *start_ns >= full_ns)?, level.requests.last()?.scheduled_ns)
        }
        Arrivals::Closed { users } => {
            let mut ends: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
            for record in &level.requests {
                ends.entry(record.user).or_default().push(record.ended_ns);
            }
            if users == 0 || ends.len() != users as usize {
                return None;
            }
            let mut window = (full_ns, u64::MAX);
            for ends in ends.values() {
                // Who did warm-up alone leaves no window.
                ends.get(warm_up)?;
                let warm = warm_up.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(full_ns);
                window = (window.0.max(warm), window.1.min(*ends.last()?));
            }
            window
        }
    };
    (from_ns < to_ns).then_some(Window { from_ns, to_ns })
}

/// Output tokens of a request: by usage, by a tokenizer, by the counts of its pieces, or one a piece.
pub fn tokens(record: &RequestRecord) -> u64 {
    let pieces = record.chunk_tokens.iter().map(|tokens| u64::from(*tokens)).sum();
    let counted = record.output_tokens.or(record.text_tokens);
    counted.unwrap_or(if pieces > 0 { pieces } else { record.chunk_ns.len() as u64 })
}

/// `t_1 - t_0`, nanoseconds.
pub fn ttft_ns(record: &RequestRecord) -> Option<f64> {
    Some(record.chunk_ns.first()?.saturating_sub(record.scheduled_ns) as f64)
}

/// `t_n - t_0`, nanoseconds.
pub fn e2e_ns(record: &RequestRecord) -> Option<f64> {
    Some(record.chunk_ns.last()?.saturating_sub(record.scheduled_ns) as f64)
}

/// `(t_n - t_1) / (n - 1)` for n tokens, nanoseconds. `None` below two tokens, or where all came in one piece.
pub fn tpot_ns(record: &RequestRecord) -> Option<f64> {
    let [first, .., last] = record.chunk_ns.as_slice() else { return None };
    let gaps = tokens(record).checked_sub(1).filter(|gaps| *gaps > 0)?;
    Some(last.saturating_sub(*first) as f64 / gaps as f64)
}

/// Each gap between two pieces, nanoseconds.
pub fn gaps_ns(record: &RequestRecord) -> Vec<f64> {
    record.chunk_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect()
}

/// Requests that started within `window` and were not given up when the run ended.
fn asked_in<'a>(requests: &[&'a RequestRecord], window: Window) -> Vec<&'a RequestRecord> {
    let counts = |record: &&RequestRecord| {
        (window.from_ns..window.to_ns).contains(&record.scheduled_ns)
            && class_of(record) != Some(FailureClass::Cancelled)
    };
    requests.iter().copied().filter(counts).collect()
}

/// Requests that started within `window`.
pub fn in_window(requests: &[RequestRecord], window: Window) -> impl Iterator<Item = &RequestRecord> {
    requests.iter().filter(move |record| (window.from_ns..window.to_ns).contains(&record.scheduled_ns))
}

/// The requests that a level's values are from, of one target or of all: those that started in the steady window and completed.
pub fn measured(level: &LevelRecord, target: Option<u32>) -> Vec<&RequestRecord> {
    let Some(window) = steady_window(level) else { return Vec::new() };
    let is_its = |record: &&RequestRecord| target.is_none_or(|target| record.target == target);
    in_window(&level.requests, window).filter(is_its).filter(|record| record.failure.is_none()).collect()
}

fn class_of(record: &RequestRecord) -> Option<FailureClass> {
    record.failure.as_ref().map(|failure| failure.class)
}

fn counted(measured: &[&RequestRecord]) -> Option<Counted> {
    let by_usage = |record: &&RequestRecord| record.output_tokens.is_some() || !record.chunk_tokens.is_empty();
    let how = if measured.iter().all(by_usage) {
        Counted::Usage
    } else if measured.iter().all(|record| by_usage(record) || record.text_tokens.is_some()) {
        Counted::Tokenizer
    } else {
        Counted::Pieces
    };
    (!measured.is_empty()).then_some(how)
}

fn system_tokens_per_s(completed: &[&RequestRecord], window: Window) -> Option<f64> {
    let within = |ns: &u64| window.from_ns < *ns && *ns <= window.to_ns;
    let came = |record: &&RequestRecord| -> f64 {
        if record.chunk_tokens.is_empty() {
            let pieces = record.chunk_ns.iter().filter(|ns| within(ns)).count() as f64;
            return pieces * tokens(record) as f64 / record.chunk_ns.len().max(1) as f64;
        }
        let pieces = record.chunk_ns.iter().zip(&record.chunk_tokens);
        pieces.filter(|(ns, _)| within(ns)).map(|(_, tokens)| f64::from(*tokens)).sum()
    };
    per_second(completed.iter().map(came).sum(), (window.to_ns - window.from_ns) as f64)
}

/// Time in flight of all requests within the window / its length.
fn in_flight(requests: &[RequestRecord], window: Window) -> f64 {
    let within = |record: &RequestRecord| {
        let end = record.ended_ns.min(window.to_ns);
        end.saturating_sub(record.scheduled_ns.max(window.from_ns)) as f64
    };
    requests.iter().map(within).sum::<f64>() / (window.to_ns - window.from_ns) as f64
}

fn little(requests: &[RequestRecord], window: Window) -> Option<f64> {
    let started = in_window(requests, window);
    let latencies: Vec<f64> =
        started.map(|record| record.ended_ns.saturating_sub(record.scheduled_ns) as f64).collect();
    let (latency_ns, length_ns) = (mean(&latencies)?, (window.to_ns - window.from_ns) as f64);
    let in_flight = in_flight(requests, window);
    let long_enough = length_ns >= LITTLE_LATENCIES * latency_ns && in_flight > 0.0;
    long_enough.then(|| latencies.len() as f64 / length_ns * latency_ns / in_flight)
}

fn per_second(count: f64, ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| count * 1e9 / ns)
}
