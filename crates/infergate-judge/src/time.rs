//! From raw samples to the one number of a session.

use infergate_core::stats::{coefficient_of_variation, median};
use infergate_receipts::{ProbePair, ProcessSamples, Work};

/// The fewest processes whose coefficient of variation is given.
pub const MIN_PROCESSES_FOR_CV: usize = 3;

/// The session's summary of one case: the median of its process medians, nanoseconds. `None` without samples.
pub fn summary_ns(processes: &[ProcessSamples]) -> Option<f64> {
    median(&process_medians(processes, ProcessSamples::times_ns))
}

/// CV over process medians. `None` below [`MIN_PROCESSES_FOR_CV`].
pub fn variation(medians: &[f64]) -> Option<f64> {
    if medians.len() < MIN_PROCESSES_FOR_CV {
        return None;
    }
    coefficient_of_variation(medians)
}

/// The median of each process's `values`, of those that have any.
pub fn process_medians(processes: &[ProcessSamples], values: impl Fn(&ProcessSamples) -> Vec<f64>) -> Vec<f64> {
    processes.iter().filter_map(|process| median(&values(process))).collect()
}

/// The fraction of the hardware's limit a case reaches: the least time this hardware could do `work` in / `measured_ns`. That least time
/// is flops / matrix rate + bytes / read bandwidth, each rate the best that was probed around the cases.
///
/// Above 1 the probes saw less than the hardware gives; a table says so and shows no fraction. `None` if work, probes or time are
/// missing.
pub fn limit_fraction(work: Option<&Work>, probes: Option<&ProbePair>, measured_ns: Option<f64>) -> Option<f64> {
    let (work, best) = (work?, probes?.best());
    let ideal_ns = (work.flops / best.fma_flops_per_s + work.bytes / best.memory_read_bytes_per_s) * 1e9;
    Some(ideal_ns / measured_ns?).filter(|fraction| fraction.is_finite() && *fraction > 0.0)
}
