//! Everything that is derived from a level's records. Pure: the same records give the same numbers.

pub mod cost;
pub mod crossing;
pub mod repeats;
pub mod roofline;
mod session;
pub mod slo;
pub mod token_counts;
pub mod values;

use std::collections::BTreeMap;

pub use infergate_core::load::Window;
use infergate_core::load::{Arrivals, FailureClass, RequestRecord, Stop};
use infergate_core::metric::Metric;
use infergate_core::stats::{Queue, mean};
use infergate_core::trace::per_second;

use crate::receipt::LevelRecord;
use crate::summary::values::Values;

/// How output tokens were counted.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// The time in which the load was what was asked for, to the end of the last measured request; `None` where it never was.
    pub window: Option<Window>,
    /// Requests that were to be measured; `None` where a time was asked for, and for one of several targets.
    pub asked: Option<u64>,
    /// Requests that count: they started in the window, and the load was kept until they had ended, well or not.
    pub started: usize,
    /// Of these, completed: those that the values below are from.
    pub measured: usize,
    /// How tokens were counted; `None` where nothing was measured.
    pub counted: Option<Counted>,
    /// The part of the prompts' tokens that the server had in a cache; `None` where it does not say.
    pub cached_share: Option<f64>,
    /// How long after its start each request was sent: in an open loop the client's own lateness, part of every latency.
    pub late_ns: Values,
    /// The values of each metric of a request, in the order of [`Metric::OF_REQUESTS`].
    values: [Values; Metric::OF_REQUESTS.len()],
    /// Tokens that came within the window of requests that did not fail, per second; `None` for one of several targets.
    pub system_tokens_per_s: Option<f64>,
    /// Requests in flight within the window, in the mean.
    pub in_flight: Option<f64>,
    /// For an open loop: the start rate of completed requests times their mean latency, as a share of how many of them were in
    /// flight: 1 by Little's law. `None` where the window is so short that its ends decide.
    pub little: Option<f64>,
}

/// The window must hold so many mean latencies before Little's law is asked: requests that reach over its ends count less
/// than 5 % then.
const LITTLE_LATENCIES: f64 = 20.0;

impl LevelSummary {
    /// The values of `metric`, one of [`Metric::OF_REQUESTS`].
    pub fn values(&self, metric: Metric) -> &Values {
        &self.values[metric as usize]
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests that were not given up when the run ended.
    pub fn ended(&self) -> u64 {
        self.issued.saturating_sub(self.cancelled)
    }

    /// The part of these that failed.
    pub fn failed_share(&self) -> Option<f64> {
        (self.ended() > 0).then(|| self.failed() as f64 / self.ended() as f64)
    }

    /// Requests that the server refused (429), where they are most of those that failed; else 0. Their users wait, so
    /// fewer are in flight than were asked for.
    pub fn kept_out(&self) -> u64 {
        let limited = self.failures.get(&FailureClass::Status429).copied();
        limited.filter(|count| 2 * count >= self.failed()).unwrap_or(0)
    }

    /// What is known of the queue that its requests stood in.
    pub fn queue(&self) -> Queue {
        if self.users.is_some() { Queue::OfUsers } else { Queue::Unbounded(self.values(Metric::Ttft).dependence()) }
    }
}

/// Summarises one level, all its targets together.
pub fn summarise(level: &LevelRecord) -> LevelSummary {
    summarise_target(level, None)
}

/// Summarises what one of several targets did in a level, or all together. Users take the targets in turn, so that the slowest one
/// decides how many requests a second each is sent, and what comes out of it: these are the level's.
pub fn summarise_target(level: &LevelRecord, target: Option<u32>) -> LevelSummary {
    let requests: Vec<&RequestRecord> = of_target(level, target).collect();
    let window = steady_window(level);
    let of_all = window.filter(|_| target.is_none());
    let mut failures: BTreeMap<FailureClass, u64> = BTreeMap::new();
    for class in requests.iter().filter_map(|record| class_of(record)) {
        *failures.entry(class).or_default() += 1;
    }
    let cancelled = failures.remove(&FailureClass::Cancelled).unwrap_or(0);
    let (started, measured) = (counted_requests(level, target), measured(level, target));
    LevelSummary {
        users: level.arrivals.users(),
        issued: requests.len() as u64,
        completed: requests.iter().filter(|record| record.failure.is_none()).count() as u64,
        cancelled,
        failures,
        retries: requests.iter().map(|record| u64::from(record.retries)).sum(),
        window,
        asked: if let (None, Stop::Requests { count }) = (target, level.stop) { Some(count) } else { None },
        started: started.len(),
        measured: measured.len(),
        counted: counted(&measured),
        cached_share: cached_share(&measured),
        late_ns: Values::of(&measured, |one| vec![one.sent_ns.saturating_sub(one.scheduled_ns) as f64]),
        values: Metric::OF_REQUESTS.map(|metric| Values::of_metric(&started, metric)),
        system_tokens_per_s: of_all.and_then(|window| system_tokens_per_s(&requests, window)),
        in_flight: window.map(|window| in_flight(&requests, window)),
        little: of_all.and_then(|window| little(level, window)),
    }
}

/// `throughput(N) / (N * throughput(1))`; `None` where either is not known, and where requests were refused (429).
pub fn scaling_efficiency(level: &LevelSummary, single: &LevelSummary) -> Option<f64> {
    let is_limited = level.kept_out() + single.kept_out() > 0;
    let alone = single.system_tokens_per_s.filter(|rate| *rate > 0.0 && single.users == Some(1) && !is_limited)?;
    Some(level.system_tokens_per_s? / (f64::from(level.users?) * alone))
}

/// The time in which the load was what was asked for: no ramp, no warm-up, and nothing behind the last measured request. `None` where
/// that is no time at all.
pub fn steady_window(level: &LevelRecord) -> Option<Window> {
    level.steady.filter(|window| window.from_ns < window.to_ns)
}

/// The requests that count, of one target or of all, well ended or not, in the order of their starts: those that are marked.
pub fn counted_requests(level: &LevelRecord, target: Option<u32>) -> Vec<&RequestRecord> {
    by_start(level, target).into_iter().filter(|record| record.measured).collect()
}

/// Those of [`counted_requests`] that completed: the requests that a level's latencies are from.
pub fn measured(level: &LevelRecord, target: Option<u32>) -> Vec<&RequestRecord> {
    counted_requests(level, target).into_iter().filter(|record| record.failure.is_none()).collect()
}

/// All requests of one target or of all, in the order of their starts: those of shards are numbered by shard.
pub fn by_start(level: &LevelRecord, target: Option<u32>) -> Vec<&RequestRecord> {
    let mut requests: Vec<&RequestRecord> = of_target(level, target).collect();
    requests.sort_by_key(|record| record.scheduled_ns);
    requests
}

/// All requests of one target or of all.
pub fn of_target(level: &LevelRecord, target: Option<u32>) -> impl Iterator<Item = &RequestRecord> {
    level.requests.iter().filter(move |record| target.is_none_or(|target| record.target == target))
}

fn class_of(record: &RequestRecord) -> Option<FailureClass> {
    record.failure.as_ref().map(|failure| failure.class)
}

/// Whether it was in flight when the run ended.
pub fn is_given_up(record: &RequestRecord) -> bool {
    class_of(record) == Some(FailureClass::Cancelled)
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

/// A server can leave out the count where it had nothing.
fn cached_share(measured: &[&RequestRecord]) -> Option<f64> {
    measured.iter().find_map(|record| record.cached_tokens)?;
    let sum = |tokens: fn(&RequestRecord) -> Option<u64>| -> f64 {
        measured.iter().filter_map(|record| tokens(record)).map(|tokens| tokens as f64).sum()
    };
    let all = sum(|record| record.input_tokens);
    (all > 0.0).then(|| sum(|record| record.cached_tokens) / all)
}

/// Requests that did not fail, also those that were given up when the level was over: they were a part of the load.
fn system_tokens_per_s(requests: &[&RequestRecord], window: Window) -> Option<f64> {
    let completed = || requests.iter().filter(|record| record.failure.is_none());
    let pieces: usize = completed().map(|record| record.chunk_ns.len()).sum();
    // Nobody counted the tokens of one that was given up: its pieces hold as many as those of the others.
    let each = completed().map(|record| record.tokens() as f64).sum::<f64>() / pieces.max(1) as f64;
    let within = |ns: &u64| window.from_ns < *ns && *ns <= window.to_ns;
    let came = |record: &&RequestRecord| -> f64 {
        if record.chunk_tokens.is_empty() {
            let pieces = record.chunk_ns.iter().filter(|ns| within(ns)).count() as f64;
            let own = record.tokens() as f64 / record.chunk_ns.len().max(1) as f64;
            return pieces * if is_given_up(record) { each } else { own };
        }
        let pieces = record.chunk_ns.iter().zip(&record.chunk_tokens);
        pieces.filter(|(ns, _)| within(ns)).map(|(_, tokens)| f64::from(*tokens)).sum()
    };
    let ran = requests.iter().copied().filter(|record| record.failure.is_none() || is_given_up(record));
    // A sum of nothing is -0.
    per_second(ran.map(|record| came(&record)).sum::<f64>() + 0.0, (window.to_ns - window.from_ns) as f64)
}

/// Time in flight of all requests within the window / its length.
fn in_flight(requests: &[&RequestRecord], window: Window) -> f64 {
    let within = |record: &&RequestRecord| {
        let end = record.ended_ns.min(window.to_ns);
        end.saturating_sub(record.scheduled_ns.max(window.from_ns)) as f64
    };
    requests.iter().map(within).sum::<f64>() / (window.to_ns - window.from_ns) as f64
}

/// Little's law over all completed requests, measured or not. It holds for these alone, too, while a request that hangs would reach over
/// the window's ends. In a closed loop the law says nothing more than how many users there are.
fn little(level: &LevelRecord, window: Window) -> Option<f64> {
    let Arrivals::Open { .. } = level.arrivals else { return None };
    let completed: Vec<&RequestRecord> = level.requests.iter().filter(|record| record.failure.is_none()).collect();
    let started = completed.iter().filter(|record| (window.from_ns..window.to_ns).contains(&record.scheduled_ns));
    let latencies_ns: Vec<f64> =
        started.map(|record| record.ended_ns.saturating_sub(record.scheduled_ns) as f64).collect();
    let (length_ns, in_flight) = ((window.to_ns - window.from_ns) as f64, in_flight(&completed, window));
    let long_enough = length_ns >= LITTLE_LATENCIES * mean(&latencies_ns)? && in_flight > 0.0;
    // So many times the mean is the sum.
    long_enough.then(|| latencies_ns.iter().sum::<f64>() / length_ns / in_flight)
}
