//! What a report says of a load run, derived once: raw times are many, and every section and picture needs the same few numbers
//! of them.

use infergate_core::load::{Arrivals, RequestRecord};
use infergate_core::stats::Queue;
use infergate_load::summary::{LevelSummary, summarise_target};
use infergate_receipts::{LoadReceipt, Metric};

/// By scenario, closed loops before open ones, the lowest load first.
pub fn points(receipt: &LoadReceipt) -> Vec<Point> {
    let mut points: Vec<Point> = receipt.parts().map(|(level, target)| Point::of(receipt, level, target)).collect();
    points.sort_by(|a, b| {
        let place = |point: &Point| (point.series.scenario, point.users().is_none());
        place(a).cmp(&place(b)).then(a.load().total_cmp(&b.load()))
    });
    points
}

/// From this part of failed requests on the median one failed.
const MOSTLY_FAILED: f64 = 0.5;
/// The percentiles that a report shows.
const RANKS: [f64; 4] = [0.25, 0.5, 0.75, 0.99];

#[derive(Clone)]
pub struct Spread {
    by_rank: [Option<f64>; RANKS.len()],
    /// Where the median lies, 95 %, by batch means; `None` where requests are too few for how much they depend on each other.
    pub p50_within: Option<(f64, f64)>,
}

impl Spread {
    fn of(metric: Metric, summary: &LevelSummary, queue: Queue) -> Self {
        let values = summary.values(metric);
        // Those that completed had the server for themselves: their speeds would look like the best.
        let is_whole = !metric.is_rate() || summary.failed_share() < Some(MOSTLY_FAILED);
        let by_rank = RANKS.map(|rank| values.at(rank).filter(|_| is_whole));
        let within = values.within(0.5, queue).filter(|(_, high)| high.is_finite() && is_whole);
        Self { by_rank, p50_within: within }
    }

    /// Whether there are requests enough for any percentile.
    pub fn is_known(&self) -> bool {
        self.by_rank.iter().any(Option::is_some)
    }

    /// The percentile at `p`, one of those that are shown.
    pub fn at(&self, p: f64) -> Option<f64> {
        self.by_rank[RANKS.iter().position(|rank| *rank == p)?]
    }
}

/// Points that are joined by a line: a scenario, and the target where there are several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub scenario: usize,
    pub target: Option<u32>,
}

impl Series {
    /// Whether a request went to its target.
    pub fn has(self, record: &RequestRecord) -> bool {
        self.target.is_none_or(|target| record.target == target)
    }
}

/// One level, or what one of several targets did in it.
#[derive(Clone)]
pub struct Point {
    pub series: Series,
    /// Its place in the receipt.
    pub level: usize,
    pub arrivals: Arrivals,
    pub summary: LevelSummary,
    spreads: [Spread; Metric::OF_REQUESTS.len()],
}

impl Point {
    fn of(receipt: &LoadReceipt, index: usize, target: Option<u32>) -> Self {
        let level = &receipt.levels[index];
        let summary = summarise_target(level, target);
        let queue = summary.queue();
        Self {
            series: Series { scenario: level.scenario as usize, target },
            level: index,
            arrivals: level.arrivals,
            spreads: Metric::OF_REQUESTS.map(|metric| Spread::of(metric, &summary, queue)),
            summary,
        }
    }

    pub fn users(&self) -> Option<u32> {
        self.summary.users
    }

    /// Users, or requests a second.
    pub fn load(&self) -> f64 {
        match self.arrivals {
            Arrivals::Closed { users } => f64::from(users),
            Arrivals::Open { requests_per_s, .. } => requests_per_s,
        }
    }

    pub fn spread(&self, metric: Metric) -> &Spread {
        &self.spreads[metric as usize]
    }

    pub fn p50(&self, metric: Metric) -> Option<f64> {
        self.spread(metric).at(0.5)
    }
}
