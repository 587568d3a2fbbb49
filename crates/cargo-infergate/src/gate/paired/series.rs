//! The blocks of a case as its test sees them: of its medians and, where that is a test of its own, of its means.

use super::limits::{Seen, follows_noise, wider_limits, wider_mean_limits};
use super::looks::Series;
use crate::receipt::{PairedCase, log_ratios};
use infergate_core::stats::{log_ratio, mean, median};

/// Of a case with limits (ln) of its medians and of its means, where those are tested, and the times of both sides in each block.
pub fn series_of(case: &PairedCase, limit: f64, mean_limit: Option<f64>, times: &[(&[u64], &[u64])]) -> Series {
    let mean_ns = |times: &[u64]| mean(&times.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
    let of_medians = |(base, head): &(&[u64], &[u64])| median(&log_ratios(base, head)?);
    let of_means = |(base, head): &(&[u64], &[u64])| log_ratio(mean_ns(base)?, mean_ns(head)?);
    let (mut wider, mut wider_mean) = (Vec::new(), Vec::new());
    if follows_noise(case) {
        let seen = |of: fn(&[u64], &[u64]) -> Option<Seen>| {
            times.iter().filter_map(|(base, head)| of(base, head)).collect::<Vec<_>>()
        };
        wider = wider_limits(limit, &seen(Seen::of_medians));
        if let Some(mean_limit) = mean_limit.filter(|_| case.mean.is_some_and(|mean| mean.by_noise)) {
            wider_mean = wider_mean_limits(mean_limit, (limit, &wider), &seen(Seen::of_means));
        }
    }
    let mean = mean_limit.map(|limit| {
        let expected_std = case.mean.and_then(|mean| mean.expected_std);
        let differences = times.iter().filter_map(of_means).collect();
        Box::new(Series { limit, wider: wider_mean, expected_std, differences, mean: None })
    });
    let differences = times.iter().filter_map(of_medians).collect();
    Series { limit, wider, expected_std: case.expected_std, differences, mean }
}
