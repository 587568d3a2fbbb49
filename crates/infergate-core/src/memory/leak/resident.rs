//! The resident set's rule: a trend that is there, and that matters. What rises so is followed for as many runs again, of which a
//! leak shows in each part: a single step does not.

use super::MIN_RUNS;
use crate::receipt::limits::MAX_MEMORY_RUNS;
use crate::stats::{
    MAD_TO_STD, floats, lag_1_autocorrelation, mann_kendall_p_rising, median, median_absolute_deviation, theil_sen,
};

/// Chance that runs without any trend are called rising by the trend test alone.
const LEVEL: f64 = 0.01;
/// A rise over all runs below this is not worth a person's time, and allocators differ by more.
const LEAST_RISE_BYTES: f64 = (1 << 20) as f64;
/// A rise below this many MADs of the residuals is noise.
const NOISE_MADS: f64 = 3.0;
/// The normal quantile of 95 %: a leak of the stated size is seen 19 times of 20.
const POWER_QUANTILE: f64 = 1.645;

/// The trend of a resident set over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResidentTrend {
    /// Runs it was taken from.
    pub runs: usize,
    /// The Theil-Sen slope, bytes a run.
    pub slope: f64,
    /// One-sided p of the tie-corrected Mann-Kendall test.
    pub p_rising: f64,
    /// F: the rise over all runs that counts, bytes.
    pub floor_bytes: f64,
    /// Whether each half rises by itself: no single step does.
    pub both_halves_rise: bool,
    /// MAD of the residuals, bytes.
    pub mad_bytes: f64,
    /// Lag-1 autocorrelation of the residuals; 0 where nothing varies.
    pub autocorrelation: f64,
}

impl ResidentTrend {
    /// Whether the rule calls it rising: significant, by at least F over the runs.
    pub fn rises(&self) -> bool {
        self.p_rising < LEVEL && self.slope * self.runs as f64 >= self.floor_bytes
    }

    /// The smallest leak that as many runs as `runs` with this noise could have seen, bytes a run.
    ///
    /// F / n + 1.645 * 1.4826 MAD * sqrt(12 / n^3) * sqrt((1 + r) / (1 - r)): the floor, and on top of it the standard error of a
    /// slope over n correlated observations, so that the estimate lies above the floor 19 times of 20.
    pub fn smallest_leak_bytes(&self, runs: usize) -> f64 {
        let n = runs as f64;
        // A negative correlation would promise more than it keeps, and one of 1 has no error at all.
        let r = self.autocorrelation.clamp(0.0, 0.99);
        let error = MAD_TO_STD * self.mad_bytes * (12.0 / n.powi(3)).sqrt() * ((1.0 + r) / (1.0 - r)).sqrt();
        self.floor_bytes / n + POWER_QUANTILE * error
    }

    /// The runs after which a rise like this one could be seen; `None` where that would take far too many.
    pub fn runs_to_settle(&self) -> Option<usize> {
        let mut runs = self.runs;
        while runs < MAX_MEMORY_RUNS {
            runs += (runs / 4).max(1);
            if self.smallest_leak_bytes(runs) <= self.slope {
                return Some(runs);
            }
        }
        None
    }
}

/// The trend of `rss_bytes`, one value a run; `None` below [`MIN_RUNS`].
pub fn resident_trend(rss_bytes: &[u64]) -> Option<ResidentTrend> {
    let runs = rss_bytes.len();
    if runs < MIN_RUNS {
        return None;
    }
    let values = floats(rss_bytes);
    let slope = theil_sen(&values)?;
    // Where the line begins moves neither of what is taken of them.
    let residuals: Vec<f64> = values.iter().enumerate().map(|(run, bytes)| bytes - slope * run as f64).collect();
    let mad_bytes = median_absolute_deviation(&residuals)?;
    let (first, second) = values.split_at(runs / 2);
    Some(ResidentTrend {
        runs,
        slope,
        p_rising: mann_kendall_p_rising(&values)?,
        floor_bytes: LEAST_RISE_BYTES.max(NOISE_MADS * mad_bytes),
        both_halves_rise: theil_sen(first)? > 0.0 && theil_sen(second)? > 0.0,
        mad_bytes,
        autocorrelation: lag_1_autocorrelation(&residuals).unwrap_or(0.0),
    })
}

/// From the first tenth of the runs to the last, medians, bytes; `None` without runs.
pub fn growth_bytes(rss_bytes: &[u64]) -> Option<f64> {
    let values = floats(rss_bytes);
    let tenth = (values.len() / 10).max(1);
    Some(median(&values[values.len().checked_sub(tenth)?..])? - median(&values[..tenth])?)
}

/// Whether the medians of the four quarters rise: growth in steps that go on.
pub fn rises_in_each_quarter(rss_bytes: &[u64]) -> bool {
    let values = floats(rss_bytes);
    let quarters = values.chunks_exact((values.len() / 4).max(1)).take(4);
    let medians: Vec<f64> = quarters.filter_map(median).collect();
    medians.len() == 4 && medians.is_sorted_by(|one, next| one < next)
}
