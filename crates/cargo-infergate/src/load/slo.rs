//! Limits on latency: which requests and levels keep to them. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use infergate_core::load::RequestRecord;
use infergate_core::metric::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::{LevelSummary, counted_requests};
use crate::receipt::LevelRecord;
use crate::stats::share_interval;

/// One limit: of a percentile over a level's requests, or of each request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What is limited.
    #[serde(with = "limited")]
    #[schemars(schema_with = "limited::schema")]
    pub metric: Metric,
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
        let metric =
            limited::of_key(metric).with_context(|| format!("{text}: limits are of ttft, itl, tpot or e2e"))?;
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
        f.write_str(self.metric.key())?;
        if let Some(percentile) = self.percentile {
            write!(f, "_p{}", percentile * 100.0)?;
        }
        write!(f, "={}", humantime::format_duration(Duration::from_nanos(self.limit_ns)))
    }
}

impl Limit {
    /// Whether one request keeps to it. One that has no such time (a single token has no gap) does.
    fn is_kept_by(self, record: &RequestRecord) -> bool {
        self.metric.of(record).into_iter().all(|ns| ns <= self.limit_ns as f64)
    }
}

/// Whether a level meets every limit of a percentile, failed requests counted as infinitely slow: the upper ends of their 95 %
/// intervals are within the limits. `Some(false)`: a percentile itself is above its limit. `None`: the requests are too few to
/// show either.
pub fn meets(summary: &LevelSummary, limits: &[Limit]) -> Option<bool> {
    let queue = summary.queue();
    let each = limits.iter().map(|limit| {
        let (values, p, most) = (summary.values(limit.metric), limit.percentile.unwrap_or(0.5), limit.limit_ns as f64);
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

/// What can be limited, as files spell it.
mod limited {
    use infergate_core::metric::Metric;
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn of_key(key: &str) -> Option<Metric> {
        Metric::LIMITED.into_iter().find(|metric| metric.key() == key)
    }

    pub fn serialize<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(metric.key())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
        let key = String::deserialize(deserializer)?;
        of_key(&key).ok_or_else(|| D::Error::custom(format!("'{key}' cannot be limited")))
    }

    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Metric::LIMITED.map(Metric::key) })
    }
}
