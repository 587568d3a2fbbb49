//! The latency figures of a case, from its raw samples.

use super::model::{Cell, Missing, Unit};
use infergate_core::case::Phase;
use infergate_core::stats::{coefficient_of_variation, mean, median, percentile, sample_std, samples_needed};
use infergate_judge::{MIN_PROCESSES_FOR_CV, limit_fraction, process_medians, summary_ns};
use infergate_receipts::{CaseRecord, Metric, Receipt};

/// The figures that a case of this phase has.
pub fn of_phase(phase: Phase) -> &'static [Metric] {
    match phase {
        Phase::Prefill => &[Metric::Ttft],
        Phase::Decode => &[Metric::Itl, Metric::DecodeSpeed],
        Phase::Generate => &[Metric::Ttft, Metric::Itl, Metric::DecodeSpeed, Metric::E2e],
        Phase::Bench => &[Metric::Time],
    }
}

/// As a person reads it in a table of one engine.
pub fn name(metric: Metric) -> &'static str {
    if metric == Metric::DecodeSpeed { "tokens/s" } else { metric.short() }
}

/// Samples of all processes.
pub fn samples(case: &CaseRecord) -> usize {
    case.processes.iter().map(|process| process.samples_ns.len()).sum()
}

/// The number a case is compared by: the median over processes of each one's median.
pub fn summary(metric: Metric, case: &CaseRecord) -> Option<f64> {
    median(&medians(metric, case))
}

fn medians(metric: Metric, case: &CaseRecord) -> Vec<f64> {
    process_medians(&case.processes, |process| process.values(metric, case.id.phase()))
}

/// Coefficient of variation over the medians of processes.
pub fn variation(metric: Metric, case: &CaseRecord) -> Cell {
    let cv = infergate_judge::variation(&medians(metric, case));
    Cell::number(cv, Unit::Fraction, Missing::TooFew { what: "processes", needed: MIN_PROCESSES_FOR_CV })
}

/// The part of the hardware's limit that a case reaches.
pub fn share_of_hardware(case: &CaseRecord, receipt: &Receipt) -> Option<f64> {
    limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes))
}

/// The least time in which the hardware of `machine` could do a case.
pub fn least_ns(case: &CaseRecord, machine: &Receipt) -> Option<f64> {
    limit_fraction(case.work.as_ref(), machine.probes.as_ref(), Some(1.0))
}

/// What a table says of one figure of one case, from all samples of all processes.
pub struct CaseFigure<'a> {
    pub case: &'a CaseRecord,
    pub metric: Metric,
    /// Process by process; none where the figure is undefined.
    pub values: Vec<f64>,
}

impl<'a> CaseFigure<'a> {
    pub fn of(metric: Metric, case: &'a CaseRecord) -> Self {
        let values = case.processes.iter().flat_map(|process| process.values(metric, case.id.phase()));
        Self { case, metric, values: values.collect() }
    }

    /// Independent samples: the gaps of one answer are one.
    fn independent(&self) -> usize {
        let is_of_gaps = self.metric == Metric::Itl && self.case.id.phase() == Phase::Generate;
        if is_of_gaps { samples(self.case) } else { self.values.len() }
    }

    /// A number that takes `needed` independent samples.
    fn cell(&self, value: Option<f64>, unit: Unit, needed: usize) -> Cell {
        let too_few = Missing::TooFew { what: "samples", needed };
        Cell::number(value, unit, if self.values.is_empty() { Missing::Undefined } else { too_few })
    }

    fn own(&self, value: Option<f64>, needed: usize) -> Cell {
        self.cell(value, Unit::of(self.metric), needed)
    }

    pub fn mean(&self) -> Cell {
        self.own(mean(&self.values), 1)
    }

    /// The sample standard deviation.
    pub fn deviation(&self) -> Cell {
        self.own(sample_std(&self.values), 2)
    }

    /// Coefficient of variation of all values.
    pub fn variation(&self) -> Cell {
        self.cell(coefficient_of_variation(&self.values), Unit::Fraction, 2)
    }

    pub fn min(&self) -> Cell {
        self.own(self.values.iter().copied().reduce(f64::min), 1)
    }

    pub fn max(&self) -> Cell {
        self.own(self.values.iter().copied().reduce(f64::max), 1)
    }

    /// The number that the case is compared by, where there are samples enough for a median.
    pub fn median(&self) -> Cell {
        match self.percentile(0.5) {
            Cell::Number(..) => self.own(summary(self.metric, self.case), 1),
            missing => missing,
        }
    }

    /// A percentile, where there are enough independent samples to print it.
    pub fn percentile(&self, p: f64) -> Cell {
        let needed = samples_needed(p).unwrap_or(1);
        let value = percentile(&self.values, p).filter(|_| self.independent() >= needed);
        self.own(value, needed)
    }
}
