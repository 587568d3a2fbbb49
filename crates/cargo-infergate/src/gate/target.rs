//! Absolute limits: `prefill/p128 ttft_ms < 2500`, `decode/* tokens_per_s > 20`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use super::time;
use crate::receipt::{CaseRecord, CaseVerdict, Channel, Outcome, ProcessSamples, Receipt};
use crate::stats::median;
use infergate::case::Phase;
use infergate::trace::Trace;

/// What a target limits, with its unit in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Counted allocations of one decoded token: decode and generate.
    AllocationsPerToken,
    /// Counted live heap at its peak, above rest.
    PeakLiveBytes,
}

impl TargetMetric {
    /// Every metric a target can name.
    pub const ALL: [Self; 8] = [
        Self::TtftMs,
        Self::ItlMs,
        Self::TpotMs,
        Self::E2eMs,
        Self::TokensPerS,
        Self::OutputTokensPerS,
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
            Self::AllocationsPerToken => "allocations_per_token",
            Self::PeakLiveBytes => "peak_live_bytes",
        }
    }

    /// The value of `record`: the median over processes of each process's median, or the largest count seen. `None` where the
    /// metric is undefined for the case or nothing was timed or counted.
    pub fn value(self, record: &CaseRecord) -> Option<f64> {
        if self.is_counted() {
            return record.counters.get(self.name()).map(|counter| counter.max as f64);
        }
        let phase = record.id.phase();
        median(&time::medians(&record.processes, |process| self.samples(phase, process)))
    }

    fn is_counted(self) -> bool {
        matches!(self, Self::AllocationsPerToken | Self::PeakLiveBytes)
    }

    fn samples(self, phase: Phase, process: &ProcessSamples) -> Vec<f64> {
        if phase == Phase::Decode {
            return process.times_ns().into_iter().filter_map(|step_ns| self.of_step(step_ns)).collect();
        }
        process.traces().iter().flat_map(|trace| self.of_trace(trace)).collect()
    }

    /// A decode sample is one gap: no first token and no request, so no TTFT and no E2E.
    fn of_step(self, step_ns: f64) -> Option<f64> {
        match self {
            Self::ItlMs | Self::TpotMs => Some(ms(step_ns)),
            Self::TokensPerS => (step_ns > 0.0).then(|| 1e9 / step_ns),
            _ => None,
        }
    }

    fn of_trace(self, trace: &Trace) -> Vec<f64> {
        let one = |value: Option<f64>| value.into_iter().collect();
        match self {
            Self::TtftMs => one(trace.ttft_ns().map(|ns| ms(ns as f64))),
            Self::ItlMs => trace.itl_ns().into_iter().map(|ns| ms(ns as f64)).collect(),
            Self::TpotMs => one(trace.tpot_ns().map(ms)),
            Self::E2eMs => one(trace.e2e_ns().map(|ns| ms(ns as f64))),
            Self::TokensPerS => one(trace.decode_tokens_per_s()),
            Self::OutputTokensPerS => one(trace.output_tokens_per_s()),
            Self::AllocationsPerToken | Self::PeakLiveBytes => Vec::new(),
        }
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

    /// A missing value misses the target: nothing shows that it holds.
    fn judge(&self, head: &Receipt, record: &CaseRecord) -> CaseVerdict {
        let value = self.metric.value(record);
        let (verdict, note) = match value {
            _ if head.partial => (Outcome::Partial, format!("target {self}: the run was cut short")),
            _ if super::invalid(head, record).is_some() => {
                (Outcome::Invalid, format!("target {self}: the run is invalid"))
            }
            None => {
                let mend =
                    if self.metric.is_counted() { "name other cases, or count them" } else { "name other cases" };
                let note = format!("target {self}: {} has no {}; {mend}", record.id, self.metric.name());
                (Outcome::TargetMissed, note)
            }
            Some(value) if self.is_met_by(value) => (Outcome::Pass, format!("target {self}")),
            Some(value) => (Outcome::TargetMissed, format!("target {self} is missed with {value:.1}")),
        };
        CaseVerdict {
            head: value,
            threshold: Some(self.limit),
            note: Some(note),
            ..CaseVerdict::new(record.id, self.metric.name(), Channel::Stored, verdict)
        }
    }
}

/// One row per target and case it names.
///
/// # Errors
/// A target that names no case of the run, unless the run was cut short or broken before it got there.
pub(super) fn judge(head: &Receipt, targets: &[Target]) -> Result<Vec<CaseVerdict>> {
    let mut rows = Vec::new();
    for target in targets {
        let glob = WildMatch::new(&target.cases);
        let named: Vec<_> = head.cases.iter().filter(|record| glob.matches(&record.id.to_string())).collect();
        ensure!(
            head.partial || !head.invalid.is_empty() || !named.is_empty(),
            "target '{target}' names no case of this run; it has {}",
            head.cases.iter().map(|record| record.id.to_string()).collect::<Vec<_>>().join(", ")
        );
        rows.extend(named.into_iter().map(|record| target.judge(head, record)));
    }
    Ok(rows)
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

fn ms(ns: f64) -> f64 {
    ns / 1e6
}
