//! The latency figures of a case, from its raw samples.

use super::model::{Cell, Missing, Unit};
use infergate_core::case::Phase;
use infergate_core::stats::{coefficient_of_variation, mean, median, percentile, sample_std};
use infergate_receipts::{CaseRecord, Metric};

/// Fewer processes have no coefficient of variation; as in the gate.
const MIN_PROCESSES_FOR_CV: usize = 3;

/// The figures that a case of this phase has.
pub fn of_phase(phase: Phase) -> &'static [Metric] {
    match phase {
        Phase::Prefill => &[Metric::Ttft],
        Phase::Decode => &[Metric::Itl, Metric::DecodeSpeed],
        Phase::Generate => &[Metric::Ttft, Metric::Itl, Metric::DecodeSpeed, Metric::E2e],
        Phase::Bench => &[Metric::Time],
    }
}

/// Those that tell most about a phase's growth with its prompt.
pub fn that_scale(phase: Phase) -> &'static [Metric] {
    match phase {
        Phase::Prefill => &[Metric::Ttft],
        Phase::Decode => &[Metric::DecodeSpeed],
        Phase::Generate => &[Metric::Ttft, Metric::DecodeSpeed, Metric::E2e],
        Phase::Bench => &[],
    }
}

/// As a person reads it in a table of one engine.
pub fn name(metric: Metric) -> &'static str {
    if metric == Metric::DecodeSpeed { "tokens/s" } else { metric.short() }
}

/// Every value of `case`, process by process; none where the figure is undefined.
pub fn values(metric: Metric, case: &CaseRecord) -> Vec<f64> {
    case.processes.iter().flat_map(|process| process.values(metric, case.id.phase())).collect()
}

/// The number a case is compared by: the median over processes of each one's median.
pub fn summary(metric: Metric, case: &CaseRecord) -> Option<f64> {
    median(&medians(metric, case))
}

fn medians(metric: Metric, case: &CaseRecord) -> Vec<f64> {
    case.processes.iter().filter_map(|process| median(&process.values(metric, case.id.phase()))).collect()
}

/// Coefficient of variation over the medians of processes.
pub fn variation(metric: Metric, case: &CaseRecord) -> Result<f64, Missing> {
    let medians = medians(metric, case);
    let few = Missing::TooFewProcesses { needed: MIN_PROCESSES_FOR_CV, processes: medians.len() };
    if medians.len() < MIN_PROCESSES_FOR_CV { Err(few) } else { coefficient_of_variation(&medians).ok_or(few) }
}

/// What a table says of one figure of one case.
#[derive(Debug, Clone)]
pub struct Spread {
    unit: Unit,
    metric: Metric,
    values: Vec<f64>,
    /// Independent samples: requests, where a figure is of gaps.
    requests: usize,
    gaps: bool,
}

impl Spread {
    /// Of all samples of all processes.
    pub fn of(metric: Metric, case: &CaseRecord) -> Self {
        let gaps = metric == Metric::Itl && case.id.phase() == Phase::Generate;
        let requests = case.processes.iter().map(|process| process.samples_ns.len()).sum();
        Self { unit: Unit::of(metric), metric, values: values(metric, case), requests, gaps }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    pub fn mean(&self) -> Cell {
        Cell::number(mean(&self.values), self.unit, self.too_few(1))
    }

    /// The sample standard deviation.
    pub fn deviation(&self) -> Cell {
        Cell::number(sample_std(&self.values), self.unit, self.too_few(2))
    }

    /// Coefficient of variation of all values.
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
            Cell::Number(..) => Cell::number(summary(self.metric, case), self.unit, Missing::Undefined),
            missing => missing,
        }
    }

    fn extreme(&self, better: fn(f64, f64) -> f64) -> Cell {
        Cell::number(self.values.iter().copied().reduce(better), self.unit, self.too_few(1))
    }

    /// A percentile, where there are enough independent samples to print it.
    pub fn percentile(&self, p: f64) -> Cell {
        let Some(found) = percentile(&self.values, p) else { return Cell::Missing(self.too_few(1)) };
        let independent = if self.gaps { self.requests } else { self.values.len() };
        let value = found.value.filter(|_| independent >= found.needed);
        Cell::number(value, self.unit, self.too_few(found.needed))
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
