//! The blocks of a case as its test sees them: of its medians and, where that is a test of its own, of its means.

use super::limits::{Seen, follows_noise, wider_limits, wider_mean_limits};
use super::looks::Series;
use crate::receipt::{PairedCase, Reduced, log_ratios};
use infergate_core::stats::median;

/// The times of both sides in a block, and what is left of those that were dropped.
pub type Times<'a> = (&'a [u64], &'a [u64], Option<Reduced>);

/// Of a case with limits (ln) of its medians and of its means, where those are tested, and its times in each block.
pub fn series_of(case: &PairedCase, limit: f64, mean_limit: Option<f64>, times: &[Times]) -> Series {
    let of_medians = |(base, head, _): &Times| median(&log_ratios(base, head)?);
    let of_means = |times: &Times| Some(Seen::of_means(times)?.difference());
    let (mut wider, mut wider_mean) = (Vec::new(), Vec::new());
    if follows_noise(case) {
        let seen = |of: fn(&Times) -> Option<Seen>| times.iter().filter_map(of).collect::<Vec<_>>();
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
