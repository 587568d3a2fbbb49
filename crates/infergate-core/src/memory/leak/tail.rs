//! Growth from run to run: does it slow down, and if it does, as a cache would that fills?

use crate::stats::{mann_kendall_p_rising, mean};

/// Chance that growth without any trend is called slowing.
const LEVEL: f64 = 0.01;
/// Growth that comes this much later on average than a cache's would, as a part of the window, is another thing.
const LEAST_DELAY: f64 = 0.01;
/// By so many standard errors in all runs that confirm.
const ERRORS: f64 = 2.6;
/// In a shorter window, of which there are more.
const ERRORS_OF_A_PART: f64 = 4.0;
/// Before it may not be called a plateau.
const ERRORS_OF_A_PLATEAU: f64 = 3.0;
/// A second half of a window with this much of the first half's growth goes on at its pace.
const SAME_PACE: f64 = 0.9;
/// A leak in fewer runs of a window cannot be told from the end of a cache.
const LEAST_RISES: usize = 5;

/// Whether growth falls with the runs, by the test of Mann and Kendall.
pub fn slows_down(growth: &[f64]) -> bool {
    let falling: Vec<f64> = growth.iter().map(|bytes| -bytes).collect();
    mann_kendall_p_rising(&falling).is_some_and(|p| p < LEVEL)
}

/// Whether growth in a window is a leak's: without a trend (or, in all runs that confirm, with hardly any), and later than that of
/// a cache with `time_constant`, runs.
pub fn keeps_its_pace(growth: &[f64], time_constant: f64, all: bool) -> bool {
    let halves = growth.split_at(growth.len() / 2);
    let (Some(early), Some(late)) = (mean(halves.0), mean(halves.1)) else { return false };
    let lasts = !slows_down(growth) || (all && late >= SAME_PACE * early);
    let errors = if all { ERRORS } else { ERRORS_OF_A_PART };
    let rises = growth.iter().filter(|bytes| **bytes > 0.0).count();
    lasts && rises >= LEAST_RISES && is_later(growth, time_constant, errors)
}

/// Whether growth in a window is later than that of a cache with `time_constant`, runs, so that something else grows with it.
pub fn goes_on(growth: &[f64], time_constant: f64) -> bool {
    is_later(growth, time_constant, ERRORS_OF_A_PLATEAU)
}

/// The mean place of what grew in the window, from 0 to 1, against that of a cache; its error is that of the scatter around a line.
fn is_later(growth: &[f64], time_constant: f64, errors: f64) -> bool {
    let runs = growth.len() as f64;
    let Some(average) = mean(growth).filter(|average| *average > 0.0) else { return false };
    let place = |at: usize| (at as f64 + 0.5) / runs - 0.5;
    let places = |weight: &dyn Fn(f64, f64) -> f64| -> f64 {
        growth.iter().enumerate().map(|(at, bytes)| weight(place(at), *bytes)).sum()
    };
    let squares = places(&|at, _| at * at);
    let moment = places(&|at, bytes| at * bytes);
    let slope = moment / squares;
    let scatter = (places(&|at, bytes| (bytes - average - slope * at).powi(2)) / runs).sqrt();
    // Growth of one size in each run has no scatter at all.
    let error = scatter / average * squares.sqrt() / runs;
    let delay = 0.5 + moment / (average * runs) - place_of_a_cache(time_constant / runs);
    delay >= LEAST_DELAY && delay >= errors * error
}

/// The mean of an exponential distribution with this mean, cut off at 1: a - 1 / (e^(1/a) - 1).
fn place_of_a_cache(time_constant: f64) -> f64 {
    time_constant - 1.0 / (1.0 / time_constant).exp_m1()
}
