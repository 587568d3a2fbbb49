//! The numbers of one level of a load run, or of one target in it.

use std::collections::BTreeMap;

use infergate_core::load::{Arrivals, FailureClass, RequestRecord};
use infergate_core::stats::{Queue, mean, share_interval};
use infergate_load::summary::cost::{Cost, cost};
use infergate_load::summary::{Counted, LevelSummary, Window, by_start, measured};
use infergate_receipts::{LevelRecord, LoadReceipt, Metric};

use super::course::{Quarter, Uptime, quarters, uptime};
use super::feels::{INSTANT_NS, SLUGGISH_NS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    P25,
    P50,
    P75,
    P99,
}

impl Rank {
    /// All of them, in ascending order.
    pub const ALL: [Self; 4] = [Self::P25, Self::P50, Self::P75, Self::P99];

    pub fn share(self) -> f64 {
        match self {
            Self::P25 => 0.25,
            Self::P50 => 0.5,
            Self::P75 => 0.75,
            Self::P99 => 0.99,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    pub requests: usize,
    /// Requests beside them that failed: infinitely slow, for a percentile.
    pub failed: usize,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p99: Option<f64>,
    /// Where the median lies, 95 %, by batch means; `None` where requests are too few for how much they depend on each other.
    pub p50_within: Option<(f64, f64)>,
}

/// One level, or what one of several targets did in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub scenario: usize,
    pub level: usize,
    pub target: Option<usize>,
    pub arrivals: Arrivals,
    pub issued: u64,
    pub completed: u64,
    pub cancelled: u64,
    pub failures: BTreeMap<FailureClass, u64>,
    /// Where the part of requests that fail lies, 95 %, by batch means; `None` where requests are too few.
    pub failed_within: Option<(f64, f64)>,
    /// Attempts that ended in 429 or 5xx and were made again.
    pub retries: u64,
    /// When it answered nobody; `None` where its requests took no time, and for one of several targets: the others have the users, too.
    pub uptime: Option<Uptime>,
    pub window: Option<Window>,
    /// Requests that were to be measured; `None` where a time was asked for, and for one of several targets.
    pub asked: Option<u64>,
    /// Requests that started in the measured part of the level.
    pub started: usize,
    pub measured: usize,
    pub counted: Option<Counted>,
    /// The mean of all gaps of requests that completed, nanoseconds; `None` without gaps.
    pub mean_itl_ns: Option<f64>,
    /// The part of gaps that feel instant, acceptable and sluggish; `None` without gaps.
    pub smoothness: Option<[f64; 3]>,
    /// `None` for one of several targets.
    pub system_tokens_per_s: Option<f64>,
    /// Requests in flight in the mean.
    pub in_flight: Option<f64>,
    /// Against one user alone; `None` where none was measured, and for one of several targets.
    pub scaling: Option<f64>,
    pub output_tokens: Option<f64>,
    pub late_ns: Option<f64>,
    /// What its requests cost, where a price and the server's counts are known.
    pub cost: Option<Cost>,
    /// The measured requests in the order of their starts; empty where none was measured.
    pub quarters: Vec<Quarter>,
    spreads: [Spread; Metric::OF_REQUESTS.len()],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    pub scenario: usize,
    pub target: Option<usize>,
}

/// Closed loops before open ones, each by how much it asks for.
pub fn load_of(arrivals: &Arrivals) -> (u8, f64) {
    match *arrivals {
        Arrivals::Closed { users } => (0, f64::from(users)),
        Arrivals::Open { requests_per_s, .. } => (1, requests_per_s),
    }
}

pub fn scenario_of(level: &LevelRecord) -> usize {
    usize::try_from(level.scenario).unwrap_or(usize::MAX)
}

impl Point {
    pub fn of(
        receipt: &LoadReceipt,
        (index, level): (usize, &LevelRecord),
        target: Option<(usize, u32)>,
        summary: &LevelSummary,
    ) -> Self {
        let number = target.map(|(_, number)| number);
        let queue = summary.queue();
        let measured = measured(level, number);
        let place = target.map_or(0, |(place, _)| place);
        let price = receipt.targets.get(place).and_then(|target| target.price());
        let counts: Vec<f64> = measured.iter().map(|record| record.tokens() as f64).collect();
        Self {
            scenario: scenario_of(level),
            level: index,
            target: target.map(|(place, _)| place),
            arrivals: level.arrivals,
            issued: summary.issued,
            completed: summary.completed,
            cancelled: summary.cancelled,
            failures: summary.failures.clone(),
            failed_within: share_interval(&failed(level, number), queue),
            retries: summary.retries,
            uptime: if target.is_none() { uptime(level) } else { None },
            window: summary.window,
            asked: summary.asked,
            started: summary.started,
            measured: summary.measured,
            counted: summary.counted,
            mean_itl_ns: mean(&summary.itl_ns.values),
            smoothness: smoothness(&summary.itl_ns.values),
            system_tokens_per_s: summary.system_tokens_per_s,
            in_flight: summary.in_flight,
            scaling: None,
            output_tokens: mean(&counts),
            late_ns: summary.late_ns.at(0.5),
            cost: price.and_then(|price| cost(&measured, price)),
            quarters: quarters(level, number),
            spreads: Metric::OF_REQUESTS.map(|metric| Spread::of(metric, summary, queue)),
        }
    }

    pub fn series(&self) -> Series {
        Series { scenario: self.scenario, target: self.target }
    }

    pub fn users(&self) -> Option<u32> {
        if let Arrivals::Closed { users } = self.arrivals { Some(users) } else { None }
    }

    /// Users, or requests a second.
    pub fn load(&self) -> f64 {
        load_of(&self.arrivals).1
    }

    pub fn spread(&self, metric: Metric) -> &Spread {
        &self.spreads[metric as usize]
    }

    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

impl Spread {
    fn of(metric: Metric, summary: &LevelSummary, queue: Queue) -> Self {
        let values = summary.values(metric);
        let [p25, p50, p75, p99] = values.all_at(Rank::ALL.map(Rank::share));
        let within = values.within(Rank::P50.share(), queue).filter(|(_, high)| high.is_finite());
        Self { requests: values.requests, failed: values.failed, p25, p50, p75, p99, p50_within: within }
    }

    pub fn at(&self, rank: Rank) -> Option<f64> {
        match rank {
            Rank::P25 => self.p25,
            Rank::P50 => self.p50,
            Rank::P75 => self.p75,
            Rank::P99 => self.p99,
        }
    }
}

/// Which requests failed, in the order of their starts; not those that were given up when the run ended.
fn failed(level: &LevelRecord, target: Option<u32>) -> Vec<bool> {
    let class = |record: &RequestRecord| record.failure.as_ref().map(|failure| failure.class);
    let classes = by_start(level, target).into_iter().map(class);
    classes.filter(|class| *class != Some(FailureClass::Cancelled)).map(|class| class.is_some()).collect()
}

fn smoothness(gaps_ns: &[f64]) -> Option<[f64; 3]> {
    let share =
        |is_in: &dyn Fn(f64) -> bool| gaps_ns.iter().filter(|ns| is_in(**ns)).count() as f64 / gaps_ns.len() as f64;
    let (instant, sluggish) = (share(&|ns| ns < INSTANT_NS), share(&|ns| ns > SLUGGISH_NS));
    (!gaps_ns.is_empty()).then_some([instant, share(&|ns| (INSTANT_NS..=SLUGGISH_NS).contains(&ns)), sluggish])
}
