//! Limits on latency: which requests keep to them, and how many users a server has room for. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use infergate::load::RequestRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::{LevelSummary, Values, e2e_ns, in_window, tpot_ns, ttft_ns};
use crate::receipt::LevelRecord;
use crate::stats::clopper_pearson;

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
    /// Of so many that started in the steady window, failed ones included.
    pub all: u64,
    /// Good requests per second of the window, and the ends of its 95 % interval: that of the share, times the rate.
    pub requests_per_s: (f64, f64, f64),
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

/// Whether a level meets every limit of a percentile. `None` where it has too few requests to say; one whose requests fail
/// does not.
pub fn meets(summary: &LevelSummary, limits: &[Limit]) -> Option<bool> {
    if !summary.failures.is_empty() {
        return Some(false);
    }
    let mut all = true;
    for limit in limits {
        let value = limit.values(summary).at(limit.percentile.unwrap_or(0.5))?;
        all &= value <= limit.limit_ns as f64;
    }
    Some(all)
}

/// The level's goodput; `None` without a steady window or requests in it.
pub fn goodput(level: &LevelRecord, summary: &LevelSummary, limits: &[Limit]) -> Option<Goodput> {
    let window = summary.window?;
    let started: Vec<&RequestRecord> = in_window(&level.requests, window).collect();
    let is_good =
        |record: &&&RequestRecord| record.failure.is_none() && limits.iter().all(|limit| limit.is_kept_by(record));
    let (good, all) = (started.iter().filter(is_good).count() as u64, started.len() as u64);
    let (low, high) = clopper_pearson(good, all, 0.95)?;
    let per_s = all as f64 * 1e9 / (window.to_ns - window.from_ns) as f64;
    Some(Goodput { good, all, requests_per_s: (good as f64 / all as f64 * per_s, low * per_s, high * per_s) })
}

/// How many users to try next, given which met the limits: doubled until some do not, then the middle. `None` once the most
/// users that meet them are known to a twentieth, or `most` meet them.
pub fn next_users(tried: &[(u32, bool)], most: u32) -> Option<u32> {
    let met = tried.iter().filter(|(_, met)| *met).map(|(users, _)| *users).max().unwrap_or(0);
    let missed = tried.iter().filter(|(_, met)| !*met).map(|(users, _)| *users).min();
    let next = match missed {
        None => met.saturating_mul(2).clamp(1, most),
        Some(missed) if missed > met + 1 && f64::from(missed - met) > 0.05 * f64::from(met) => met + (missed - met) / 2,
        Some(_) => return None,
    };
    tried.iter().all(|(users, _)| *users != next).then_some(next)
}
