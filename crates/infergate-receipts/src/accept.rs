//! A change that head declares as intended: `[[accept]]` in infergate.toml.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use infergate_core::receipt::limits::MAX_NUMBER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evidence, Subject};

/// As many tables are read; a reviewer reads each.
pub const MAX_ACCEPTS: usize = 50;

/// Bytes of a reason, which stands in the first lines of a comment, and of a metric's name.
const MAX_REASON_BYTES: usize = 400;
const MAX_METRIC_BYTES: usize = 200;

/// The largest accepted change: a hundredfold, as of the key `threshold`.
const MAX_PERCENT: f64 = 9_900.0;

/// What an output is called among metrics.
pub const OUTPUT: &str = "output";

/// One intended change: a slowdown, a rise of a counter, or another output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accept {
    /// The row's subject: `decode/p128`, `bench:fib/20`, `model`.
    #[schemars(with = "String")]
    pub case: Subject,
    /// The metric of a time (`itl_ns`, its median and its mean), a counter's name, or `output`.
    pub metric: String,
    /// The largest change that is accepted; `null` for an output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub up_to: Option<UpTo>,
    /// Why it is meant.
    pub reason: String,
}

/// How far: `5%` of base, or for a counter a number of whatever it counts. In files it is a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UpTo {
    /// Percent of base.
    Percent(f64),
    /// Bytes or allocations.
    Number(u64),
}

impl fmt::Display for UpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for UpTo {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || format!("up_to takes a percentage such as \"5%\", or for a counter a number, not '{text}'");
        let up_to = match text.trim().strip_suffix('%') {
            Some(percent) => Self::Percent(percent.trim_end().parse().ok().with_context(wrong)?),
            None => Self::Number(text.trim().parse().ok().with_context(wrong)?),
        };
        let is_in_range = match up_to {
            Self::Percent(percent) => percent > 0.0 && percent <= MAX_PERCENT,
            Self::Number(number) => (1..=MAX_NUMBER).contains(&number),
        };
        ensure!(is_in_range, "up_to is above 0 and at most {MAX_PERCENT}% or {MAX_NUMBER}, not '{text}'");
        Ok(up_to)
    }
}

impl Serialize for UpTo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UpTo {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Accept {
    /// Whether this evidence changed by no more than is accepted. An output has no size; what is no time and no counter has none.
    pub fn covers(&self, evidence: &Evidence) -> bool {
        match (self.up_to, evidence) {
            (None, Evidence::Output(_)) => true,
            (Some(UpTo::Percent(percent)), Evidence::Time(time)) => {
                time.ratio.is_some_and(|ratio| ratio <= 1.0 + percent / 100.0)
            }
            (Some(UpTo::Percent(percent)), Evidence::Counter(counter)) => {
                let base = counter.base.map_or(0.0, |base| base.max as f64);
                counter.rise().is_some_and(|rise| rise as f64 <= base * percent / 100.0)
            }
            (Some(UpTo::Number(number)), Evidence::Counter(counter)) => {
                counter.rise().is_some_and(|rise| rise <= number)
            }
            _ => false,
        }
    }

    /// Whether it is about this row's subject and metric, whatever the size of the change.
    pub fn names(&self, subject: &Subject, evidence: &Evidence) -> bool {
        let is_metric = match evidence {
            Evidence::Output(_) => self.metric == OUTPUT,
            Evidence::Time(time) => time.counted && self.metric == time.metric.key_in("ns"),
            // Blocks decide what is counted under load, and no size does.
            Evidence::Counter(_) if matches!(subject, Subject::Load(_)) => false,
            Evidence::Counter(counter) => self.metric == counter.name,
            Evidence::Target(_) | Evidence::Memory(_) => false,
        };
        self.case == *subject && is_metric
    }

    /// Refuses one that says too little, or what no row could be.
    pub fn validate(&self) -> Result<()> {
        let (metric, case) = (&self.metric, self.case.id());
        ensure!(
            !metric.is_empty() && metric.len() <= MAX_METRIC_BYTES && !metric.chars().any(char::is_control),
            "{case}: metric is a name such as itl_ns, allocations_per_token or output"
        );
        let reason = self.reason.trim();
        ensure!(!reason.is_empty(), "{case}, {metric}: the reason is empty; say why this is meant");
        ensure!(
            reason.len() <= MAX_REASON_BYTES,
            "{case}, {metric}: the reason has {} bytes, at most {MAX_REASON_BYTES} are read",
            reason.len()
        );
        ensure!(!metric.ends_with("_ms"), "{case}, {metric}: a time ends in _ns here, for example itl_ns");
        let is_time = metric.ends_with("_ns");
        match self.up_to {
            _ if metric == OUTPUT => {
                ensure!(self.up_to.is_none(), "{case}, output: it has no up_to, since an output has no size")
            }
            None => anyhow::bail!("{case}, {metric}: up_to is missing; say how far, for example \"5%\""),
            Some(UpTo::Number(_)) if is_time => {
                anyhow::bail!("{case}, {metric}: up_to of a time is a percentage, for example \"5%\"")
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Refuses tables that a run cannot have asked for: too many, or two of one thing.
pub fn validate_accepts(accepts: &[Accept]) -> Result<()> {
    ensure!(accepts.len() <= MAX_ACCEPTS, "{} are too many, at most {MAX_ACCEPTS} are read", accepts.len());
    for (at, accept) in accepts.iter().enumerate() {
        accept.validate()?;
        let is_same = |other: &Accept| (&other.case, &other.metric) == (&accept.case, &accept.metric);
        ensure!(
            !accepts[..at].iter().any(is_same),
            "{}, {}: is there twice; leave one",
            accept.case.id(),
            accept.metric
        );
    }
    Ok(())
}

/// By whose settings `gate --against` judged, and what head declares as intended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Head's infergate.toml said limits, targets and cases, and not base's.
    pub by_head: bool,
    /// Head's `[[accept]]` tables.
    pub accept: Vec<Accept>,
    /// Base's own, which have no effect in head any more.
    pub accepted_before: Vec<Accept>,
}

impl Terms {
    /// Head's tables that base does not have, and that are not `also_before` it.
    pub fn in_effect<'a>(&'a self, also_before: &'a [Accept]) -> impl Iterator<Item = &'a Accept> {
        self.accept.iter().filter(|accept| !self.accepted_before.contains(accept) && !also_before.contains(accept))
    }
}

/// Why a table `[[accept]]` has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoEffect {
    /// Base has it already: it was for an earlier change.
    Stale,
    /// Nothing of this case and metric was compared.
    NothingSuch,
    /// The change passes without it.
    NotNeeded,
}
