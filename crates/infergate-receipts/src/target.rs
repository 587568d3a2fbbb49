//! Absolute limits as values: `prefill/p128 ttft_ms < 2500`, `decode/* tokens_per_s > 20`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use infergate_core::serde_as_text;
use wildmatch::WildMatch;

use super::{Metric, Subject};

/// What a target limits, with its unit in its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetMetric {
    /// A time in milliseconds, or a speed in tokens a second.
    Of(Metric),
    /// Standard deviation / mean of all samples of the time that a case is about (TTFT, ITL, E2E), percent: prefill, decode and
    /// generate.
    CvPercent,
    /// Counted allocations of one decoded token: decode and generate.
    AllocationsPerToken,
    /// Counted live heap at its peak, above rest.
    PeakLiveBytes,
    /// Requests that failed, of those of a level of load that were not given up when the run ended.
    FailedPercent,
}

impl TargetMetric {
    /// Every metric a target can name.
    pub const ALL: [Self; 10] = [
        Self::Of(Metric::Ttft),
        Self::Of(Metric::Itl),
        Self::Of(Metric::Tpot),
        Self::Of(Metric::E2e),
        Self::Of(Metric::DecodeSpeed),
        Self::Of(Metric::OutputThroughput),
        Self::CvPercent,
        Self::AllocationsPerToken,
        Self::PeakLiveBytes,
        Self::FailedPercent,
    ];

    /// Its name in a target's text.
    pub fn name(&self) -> String {
        match self {
            Self::Of(metric) => metric.key_in("ms"),
            Self::CvPercent => "cv_percent".into(),
            Self::AllocationsPerToken => "allocations_per_token".into(),
            Self::PeakLiveBytes => "peak_live_bytes".into(),
            Self::FailedPercent => "failed_percent".into(),
        }
    }

    /// Whether it is a counter, which a process of its own counts.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::AllocationsPerToken | Self::PeakLiveBytes)
    }
}

impl FromStr for TargetMetric {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(metric) = Self::ALL.into_iter().find(|metric| metric.name() == text) {
            return Ok(metric);
        }
        let names: Vec<_> = Self::ALL.iter().map(|metric| metric.name()).collect();
        bail!("'{text}' is not a metric; there are {}", names.join(", "));
    }
}

serde_as_text!(TargetMetric, TargetMetric::name);

/// Longer signs first, so that `<=` is not read as `<`.
const SIGNS: [&str; 4] = ["<=", ">=", "<", ">"];

/// One absolute limit on one metric of the cases a glob names.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The glob that names the cases.
    pub cases: String,
    /// What it limits.
    pub metric: TargetMetric,
    sign: &'static str,
    /// In the metric's unit.
    pub limit: f64,
}

impl Target {
    /// Whether its glob names `subject`.
    pub fn names(&self, subject: &Subject) -> bool {
        WildMatch::new(&self.cases).matches(&subject.to_string())
    }

    /// Whether `value` meets the target.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.sign {
            "<" => value < self.limit,
            "<=" => value <= self.limit,
            ">" => value > self.limit,
            _ => value >= self.limit,
        }
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).with_context(|| {
            format!("target '{}' cannot be read; write it like 'prefill/p128 ttft_ms < 2500'", text.trim())
        })
    }
}

fn parse(text: &str) -> Result<Target> {
    let found = SIGNS.into_iter().find_map(|sign| Some((text.split_once(sign)?, sign)));
    let ((what, number), sign) = found.context("it has none of < <= > >=")?;
    let words: Vec<&str> = what.split_whitespace().collect();
    let [cases, metric] = words[..] else { bail!("before the comparison there must be cases and a metric") };
    let metric = metric.parse()?;
    let limit: f64 =
        number.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0).with_context(|| {
            format!("'{}' is not a number above zero; the unit is in the metric's name", number.trim())
        })?;
    Ok(Target { cases: cases.into(), metric, sign, limit })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.cases, self.metric.name(), self.sign, self.limit)
    }
}

serde_as_text!(Target, Target::to_string);
