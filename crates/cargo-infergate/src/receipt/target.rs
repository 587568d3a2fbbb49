//! Absolute limits as values: `prefill/p128 ttft_ms < 2500`, `decode/* tokens_per_s > 20`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use super::Subject;

/// What a target limits, with its unit in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetMetric {
    /// TTFT: prefill and generate.
    TtftMs,
    /// Every ITL: decode and generate.
    ItlMs,
    /// TPOT: decode (whose one step is one gap) and generate.
    TpotMs,
    /// E2E: prefill (whose one token is the last) and generate.
    E2eMs,
    /// Decode speed, 1 / TPOT: decode and generate.
    TokensPerS,
    /// Output throughput of a request, n / E2E: prefill and generate.
    OutputTokensPerS,
    /// Standard deviation / mean of all samples of the time that a case is about (TTFT, ITL, E2E), percent: prefill, decode and
    /// generate.
    CvPercent,
    /// Counted allocations of one decoded token: decode and generate.
    AllocationsPerToken,
    /// Counted live heap at its peak, above rest.
    PeakLiveBytes,
}

impl TargetMetric {
    /// Every metric a target can name.
    pub const ALL: [Self; 9] = [
        Self::TtftMs,
        Self::ItlMs,
        Self::TpotMs,
        Self::E2eMs,
        Self::TokensPerS,
        Self::OutputTokensPerS,
        Self::CvPercent,
        Self::AllocationsPerToken,
        Self::PeakLiveBytes,
    ];

    /// Its name in a target's text.
    pub fn name(self) -> &'static str {
        match self {
            Self::TtftMs => "ttft_ms",
            Self::ItlMs => "itl_ms",
            Self::TpotMs => "tpot_ms",
            Self::E2eMs => "e2e_ms",
            Self::TokensPerS => "tokens_per_s",
            Self::OutputTokensPerS => "output_tokens_per_s",
            Self::CvPercent => "cv_percent",
            Self::AllocationsPerToken => "allocations_per_token",
            Self::PeakLiveBytes => "peak_live_bytes",
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
        let nearest = Self::ALL
            .into_iter()
            .max_by(|a, b| strsim::jaro_winkler(a.name(), text).total_cmp(&strsim::jaro_winkler(b.name(), text)));
        let names: Vec<_> = Self::ALL.iter().map(|metric| metric.name()).collect();
        bail!(
            "'{text}' is not a metric; did you mean {}? There are {}",
            nearest.map_or("ttft_ms", Self::name),
            names.join(", ")
        );
    }
}

/// How the value must lie to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Longer signs first, so that `<=` is not read as `<`.
const COMPARISONS: [(&str, Comparison); 4] =
    [("<=", Comparison::AtMost), (">=", Comparison::AtLeast), ("<", Comparison::Below), (">", Comparison::Above)];

/// One absolute limit on one metric of the cases a glob names.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    cases: String,
    metric: TargetMetric,
    comparison: Comparison,
    limit: f64,
}

impl Target {
    /// The glob that names the cases.
    pub fn cases(&self) -> &str {
        &self.cases
    }

    /// Whether its glob names `subject`.
    pub fn names(&self, subject: &Subject) -> bool {
        WildMatch::new(&self.cases).matches(&subject.to_string())
    }

    /// What is limited.
    pub fn metric(&self) -> TargetMetric {
        self.metric
    }

    /// The limit, in the metric's unit.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether `value` meets the target.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Below => value < self.limit,
            Comparison::AtMost => value <= self.limit,
            Comparison::Above => value > self.limit,
            Comparison::AtLeast => value >= self.limit,
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
    let found = COMPARISONS.iter().find_map(|(sign, comparison)| Some((text.split_once(sign)?, *comparison)));
    let ((what, number), comparison) = found.context("it has none of < <= > >=")?;
    let words: Vec<&str> = what.split_whitespace().collect();
    let [cases, metric] = words[..] else { bail!("before the comparison there must be cases and a metric") };
    let metric = metric.parse()?;
    let limit: f64 =
        number.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0).with_context(|| {
            format!("'{}' is not a number above zero; the unit is in the metric's name", number.trim())
        })?;
    Ok(Target { cases: cases.into(), metric, comparison, limit })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign =
            COMPARISONS.iter().find(|(_, comparison)| *comparison == self.comparison).map_or("?", |(sign, _)| sign);
        write!(f, "{} {} {sign} {}", self.cases, self.metric.name(), self.limit)
    }
}

impl Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error: anyhow::Error| serde::de::Error::custom(format!("{error:#}")))
    }
}
