//! Limits on latency: which requests and levels keep to them. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use infergate_core::load::RequestRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::{LevelSummary, counted_requests, e2e_ns, tpot_ns, ttft_ns};
use super::values::Values;
use crate::receipt::LevelRecord;
use crate::stats::share_interval;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SloMetric {
    /// Time to first token.
    Ttft,
    /// Gaps between pieces.
    Itl,
    /// Time per output token.
    Tpot,
    /// End-to-end latency.
    E2e,
}

/// One limit: of a percentile over a level's requests, or of each request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What is limited.
    pub metric: SloMetric,
    /// 0.95 for p95; `null`: each request by itself.
    #[serde(default)]
    pub percentile: Option<f64>,
    /// The largest value that meets it, nanoseconds.
    pub limit_ns: u64,
}

/// Requests of a level that met every limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// So many did.
    pub good: u64,
    /// Of so many that count, failed ones included.
    pub all: u64,
    /// Good requests per second of the window.
    pub requests_per_s: f64,
    /// Its 95 % interval: that of the share by batch means, times the rate of the window. `None` where requests are too few for
    /// how much they depend on each other.
    pub within: Option<(f64, f64)>,
}

impl FromStr for Limit {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, time) = text.split_once('=').with_context(|| format!("{text}: write for example ttft_p95=500ms"))?;
        let (metric, percentile) = match name.split_once("_p") {
            Some((metric, percentile)) => (metric, Some(percentile)),
            None => (name, None),
        };
        let metric = match metric {
            "ttft" => SloMetric::Ttft,
            "itl" => SloMetric::Itl,
            "tpot" => SloMetric::Tpot,
            "e2e" => SloMetric::E2e,
            _ => bail!("{text}: limits are of ttft, itl, tpot or e2e"),
        };
        let percentile = match percentile {
            Some(text) => {
                Some(text.parse::<f64>().ok().context("a percentile is a number, for example ttft_p95")? / 100.0)
            }
            None => None,
        };
        ensure!(percentile.is_none_or(|p| p > 0.0 && p < 1.0), "{text}: a percentile is above 0 and below 100");
        let time =
            humantime::parse_duration(time).ok().with_context(|| format!("{text}: write a time as 500ms or 2s"))?;
        Ok(Self { metric, percentile, limit_ns: u64::try_from(time.as_nanos()).context("this time is too long")? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = match self.metric {
            SloMetric::Ttft => "ttft",
            SloMetric::Itl => "itl",
            SloMetric::Tpot => "tpot",
            SloMetric::E2e => "e2e",
        };
        write!(f, "{metric}")?;
        if let Some(percentile) = self.percentile {
            write!(f, "_p{}", percentile * 100.0)?;
        }
        write!(f, "={}", humantime::format_duration(Duration::from_nanos(self.limit_ns)))
    }
}

impl Limit {
    fn values(self, summary: &LevelSummary) -> &Values {
        match self.metric {
            SloMetric::Ttft => &summary.ttft_ns,
            SloMetric::Itl => &summary.itl_ns,
            SloMetric::Tpot => &summary.tpot_ns,
            SloMetric::E2e => &summary.e2e_ns,
        }
    }

    /// Whether one request keeps to it. One that has no such time (a single token has no gap) does.
    fn is_kept_by(self, record: &RequestRecord) -> bool {
        let largest = match self.metric {
            SloMetric::Ttft => ttft_ns(record),
            SloMetric::Tpot => tpot_ns(record),
            SloMetric::E2e => e2e_ns(record),
            SloMetric::Itl => super::summary::gaps_ns(record).into_iter().reduce(f64::max),
        };
        largest.is_none_or(|ns| ns <= self.limit_ns as f64)
    }
}

/// Whether a level meets every limit of a percentile, failed requests counted as infinitely slow: the upper ends of their 95 %
/// intervals are within the limits. `Some(false)`: a percentile itself is above its limit. `None`: the requests are too few to
/// show either.
pub fn meets(summary: &LevelSummary, limits: &[Limit]) -> Option<bool> {
    let queue = summary.queue();
    let each = limits.iter().map(|limit| {
        let (values, p, most) = (limit.values(summary), limit.percentile.unwrap_or(0.5), limit.limit_ns as f64);
        if values.with_failures(p)? > most {
            return Some(false);
        }
        values.within(p, queue).is_some_and(|(_, high)| high <= most).then_some(true)
    });
    let each: Vec<Option<bool>> = each.collect();
    match each.contains(&Some(false)) {
        true => Some(false),
        false => each.into_iter().collect::<Option<Vec<bool>>>().map(|_| true),
    }
}

/// The level's goodput: the share of the requests that count, times the rate of all. `None` where none counts.
pub fn goodput(level: &LevelRecord, summary: &LevelSummary, limits: &[Limit]) -> Option<Goodput> {
    let per_s = summary.requests_per_s?;
    let is_good =
        |record: &RequestRecord| record.failure.is_none() && limits.iter().all(|limit| limit.is_kept_by(record));
    let hits: Vec<bool> = counted_requests(level, None).into_iter().map(is_good).collect();
    let (good, all) = (hits.iter().filter(|hit| **hit).count() as u64, hits.len() as u64);
    let within = share_interval(&hits, summary.queue()).map(|(low, high)| (low * per_s, high * per_s));
    (all > 0).then(|| Goodput { good, all, requests_per_s: good as f64 / all as f64 * per_s, within })
}
