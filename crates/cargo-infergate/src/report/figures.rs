//! The latency figures of a case, from its raw samples.

use super::model::{Cell, Missing, Unit};
use crate::receipt::{CaseRecord, ProcessSamples};
use crate::stats::{coefficient_of_variation, mean, median, percentile, sample_std};
use infergate_core::case::{Case, Phase};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Figure {
    Ttft,
    Itl,
    TokensPerS,
    E2e,
    Time,
}

/// Fewer processes have no coefficient of variation; as in the gate.
const MIN_PROCESSES_FOR_CV: usize = 3;

impl Figure {
    pub fn of(phase: Phase) -> &'static [Self] {
        match phase {
            Phase::Prefill => &[Self::Ttft],
            Phase::Decode => &[Self::Itl, Self::TokensPerS],
            Phase::Generate => &[Self::Ttft, Self::Itl, Self::TokensPerS, Self::E2e],
            Phase::Bench => &[Self::Time],
        }
    }

    /// The figure a case is gated by.
    pub fn gated(case: Case) -> Self {
        match case.phase() {
            Phase::Prefill => Self::Ttft,
            Phase::Decode => Self::Itl,
            Phase::Generate => Self::E2e,
            Phase::Bench => Self::Time,
        }
    }

    /// The one that tells most about a phase's growth with its prompt.
    pub fn that_scales(phase: Phase) -> &'static [Self] {
        match phase {
            Phase::Prefill => &[Self::Ttft],
            Phase::Decode => &[Self::TokensPerS],
            Phase::Generate => &[Self::Ttft, Self::TokensPerS, Self::E2e],
            Phase::Bench => &[],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Itl => "ITL",
            Self::TokensPerS => "tokens/s",
            Self::E2e => "E2E",
            Self::Time => "time",
        }
    }

    pub fn unit(self) -> Unit {
        if self == Self::TokensPerS { Unit::TokensPerS } else { Unit::Ns }
    }

    /// Every value of `process`; none where the figure is undefined.
    pub fn values_of(self, phase: Phase, process: &ProcessSamples) -> Vec<f64> {
        if self == Self::Time {
            return if phase == Phase::Bench { process.times_ns() } else { Vec::new() };
        }
        if phase == Phase::Decode {
            let steps = process.times_ns();
            return match self {
                Self::Itl => steps,
                Self::TokensPerS => steps.into_iter().filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns).collect(),
                Self::Ttft | Self::E2e | Self::Time => Vec::new(),
            };
        }
        let traces = process.traces();
        let of_trace = |trace: &infergate_core::trace::Trace| match self {
            Self::Ttft => trace.ttft_ns().map(|ns| ns as f64),
            Self::TokensPerS => trace.decode_tokens_per_s(),
            Self::E2e => trace.e2e_ns().map(|ns| ns as f64),
            Self::Itl | Self::Time => None,
        };
        if self == Self::Itl {
            return traces.iter().flat_map(|trace| trace.itl_ns()).map(|ns| ns as f64).collect();
        }
        traces.iter().filter_map(of_trace).collect()
    }

    pub fn values(self, case: &CaseRecord) -> Vec<f64> {
        case.processes.iter().flat_map(|process| self.values_of(case.id.phase(), process)).collect()
    }

    /// The number a case is compared by: the median over processes of each one's median.
    pub fn summary(self, case: &CaseRecord) -> Option<f64> {
        median(&self.medians(case))
    }

    fn medians(self, case: &CaseRecord) -> Vec<f64> {
        case.processes.iter().filter_map(|process| median(&self.values_of(case.id.phase(), process))).collect()
    }

    /// Coefficient of variation over the medians of processes.
    pub fn variation(self, case: &CaseRecord) -> Result<f64, Missing> {
        let medians = self.medians(case);
        let few = Missing::TooFewProcesses { needed: MIN_PROCESSES_FOR_CV, processes: medians.len() };
        if medians.len() < MIN_PROCESSES_FOR_CV { Err(few) } else { coefficient_of_variation(&medians).ok_or(few) }
    }
}

/// The rate of each sample, prompt and output tokens together, tokens a second: as llama-bench counts.
pub fn token_rates(case: &CaseRecord) -> Vec<f64> {
    let tokens = match case.id {
        Case::Prefill { prompt_tokens } => prompt_tokens,
        Case::Decode { .. } => 1,
        Case::Generate { prompt_tokens, output_tokens } => prompt_tokens + output_tokens,
        Case::Bench(_) => return Vec::new(),
    };
    let times = case.processes.iter().flat_map(|process| process.times_ns());
    times.filter(|ns| *ns > 0.0).map(|ns| tokens as f64 * 1e9 / ns).collect()
}

/// What a table says of one figure of one case.
#[derive(Debug, Clone)]
pub struct Spread {
    figure: Figure,
    values: Vec<f64>,
    /// Independent samples: requests, where a figure is of gaps.
    requests: usize,
    gaps: bool,
}

impl Spread {
    pub fn of(figure: Figure, case: &CaseRecord) -> Self {
        let gaps = figure == Figure::Itl && case.id.phase() == Phase::Generate;
        let requests = case.processes.iter().map(|process| process.samples_ns.len()).sum();
        Self { figure, values: figure.values(case), requests, gaps }
    }

    pub fn count(&self) -> usize {
        self.values.len()
    }

    pub fn mean(&self) -> Cell {
        Cell::number(mean(&self.values), self.figure.unit(), self.too_few(1))
    }

    pub fn deviation(&self) -> Cell {
        Cell::number(sample_std(&self.values), self.figure.unit(), self.too_few(2))
    }

    pub fn variation(&self) -> Cell {
        Cell::number(coefficient_of_variation(&self.values), Unit::Fraction, self.too_few(2))
    }

    pub fn min(&self) -> Cell {
        self.extreme(f64::min)
    }

    pub fn max(&self) -> Cell {
        self.extreme(f64::max)
    }

    /// The number that a case is compared by, where there are samples enough for a median.
    pub fn median(&self, case: &CaseRecord) -> Cell {
        match self.percentile(0.5) {
            Cell::Number(..) => Cell::number(self.figure.summary(case), self.figure.unit(), Missing::Undefined),
            missing => missing,
        }
    }

    fn extreme(&self, better: fn(f64, f64) -> f64) -> Cell {
        Cell::number(self.values.iter().copied().reduce(better), self.figure.unit(), self.too_few(1))
    }

    /// A percentile, where there are enough independent samples to print it.
    pub fn percentile(&self, p: f64) -> Cell {
        let Some(found) = percentile(&self.values, p) else { return Cell::Missing(self.too_few(1)) };
        let independent = if self.gaps { self.requests } else { self.values.len() };
        let value = found.value.filter(|_| independent >= found.needed);
        Cell::number(value, self.figure.unit(), self.too_few(found.needed))
    }

    fn too_few(&self, needed: usize) -> Missing {
        if self.values.is_empty() {
            return Missing::Undefined;
        }
        match self.gaps {
            true => Missing::TooFewRequests { needed, requests: self.requests },
            false => Missing::TooFewSamples { needed, samples: self.values.len() },
        }
    }
}
