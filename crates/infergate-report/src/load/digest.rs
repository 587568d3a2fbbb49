//! What a report says of a load run, derived once: raw times are many, and every section and picture needs the same few numbers
//! of them.

use std::collections::BTreeMap;

use infergate_core::load::Arrivals;

use super::pairs::{Agreement, MOST_PAIRS, Winners, agreements};
use super::point::{Point, load_of, scenario_of};
use infergate_load::summary::crossing::compare;
use infergate_load::summary::slo::{Goodput, goodput, meets};
use infergate_load::summary::{LevelSummary, scaling_efficiency, summarise, summarise_target};
use infergate_receipts::{LevelRecord, Limit, LoadReceipt};

#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub points: (usize, usize),
    pub winners: Winners,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Limited {
    pub scenario: usize,
    pub arrivals: Arrivals,
    /// Requests that met the limits of each request; `None` where there are no such limits, or no steady window.
    pub goodput: Option<Goodput>,
    /// Whether it meets those of percentiles; `None` where there are none, or too few requests.
    pub meets: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Digest {
    pub points: Vec<Point>,
    pub pairs: Vec<Pair>,
    pub pairs_left_out: usize,
    pub limited: Vec<Limited>,
    /// Each two targets that were sent the same prompts.
    pub agreements: Vec<Agreement>,
}

impl Digest {
    pub fn of(receipt: &LoadReceipt) -> Self {
        let mut digest = Self { agreements: agreements(receipt), ..Self::default() };
        let mut order: Vec<(usize, &LevelRecord)> = receipt.levels.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| {
            let (a, b) = ((a.scenario, load_of(&a.arrivals)), (b.scenario, load_of(&b.arrivals)));
            a.0.cmp(&b.0).then(a.1.0.cmp(&b.1.0)).then(a.1.1.total_cmp(&b.1.1))
        });
        for (index, level) in order {
            digest.level(receipt, index, level);
        }
        digest.scale();
        digest
    }

    fn level(&mut self, receipt: &LoadReceipt, index: usize, level: &LevelRecord) {
        let first = self.points.len();
        let mut summaries = Vec::new();
        if receipt.targets.len() < 2 {
            let summary = summarise(level);
            self.limit(receipt, level, &summary);
            self.points.push(Point::of(receipt, (index, level), None, &summary));
        } else {
            for (number, target) in (0..).zip(0..receipt.targets.len()) {
                let summary = summarise_target(level, number);
                self.points.push(Point::of(receipt, (index, level), Some((target, number)), &summary));
                summaries.push(summary);
            }
            if !receipt.limits.is_empty() {
                self.limit(receipt, level, &summarise(level));
            }
        }
        for (one, summary) in summaries.iter().enumerate() {
            for (other, second) in summaries.iter().enumerate().skip(one + 1) {
                if self.pairs.len() >= MOST_PAIRS {
                    self.pairs_left_out += 1;
                } else if let Some(faster) = compare(summary, second, receipt.seed) {
                    let points = (first + one, first + other);
                    let winners = Winners::of(&self.points[points.0], &self.points[points.1], faster);
                    self.pairs.push(Pair { points, winners });
                }
            }
        }
    }

    fn limit(&mut self, receipt: &LoadReceipt, level: &LevelRecord, summary: &LevelSummary) {
        if receipt.limits.is_empty() {
            return;
        }
        let (of_levels, of_requests): (Vec<Limit>, Vec<Limit>) =
            receipt.limits.iter().copied().partition(|limit| limit.percentile.is_some());
        self.limited.push(Limited {
            scenario: scenario_of(level),
            arrivals: level.arrivals,
            goodput: if of_requests.is_empty() { None } else { goodput(level, summary, &of_requests) },
            meets: if of_levels.is_empty() { None } else { meets(summary, &of_levels) },
        });
    }

    /// Efficiency against one user alone, where one target was asked.
    fn scale(&mut self) {
        let alone: BTreeMap<usize, f64> = self
            .points
            .iter()
            .filter(|point| point.target.is_none() && point.users() == Some(1))
            .filter_map(|point| Some((point.scenario, point.system_tokens_per_s?)))
            .collect();
        for point in self.points.iter_mut().filter(|point| point.target.is_none()) {
            let of =
                |users, system_tokens_per_s| LevelSummary { users, system_tokens_per_s, ..LevelSummary::default() };
            let single = of(Some(1), alone.get(&point.scenario).copied());
            point.scaling = scaling_efficiency(&of(point.users(), point.system_tokens_per_s), &single);
        }
    }
}
