//! The starts of an open loop, against what is known of their distributions.

use infergate_core::load::{Arrivals, Spacing};

const GAPS: usize = 100_000;

fn open(requests_per_s: f64, spacing: Spacing) -> Arrivals {
    Arrivals::Open { requests_per_s, spacing }
}

fn starts_ns(arrivals: Arrivals, seed: u64, count: usize) -> Vec<u64> {
    arrivals.starts(seed).expect("an open loop").take(count).collect()
}

/// Mean and variance of the gaps, in mean gaps.
fn mean_and_variance(spacing: Spacing) -> (f64, f64) {
    let starts = starts_ns(open(1000.0, spacing), 7, GAPS + 1);
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / GAPS as f64;
    (mean, gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / GAPS as f64)
}

#[test]
fn constant_starts_do_not_drift() {
    assert_eq!(starts_ns(open(3.0, Spacing::Constant), 1, 4), [0, 333_333_333, 666_666_667, 1_000_000_000]);
    let late = open(3.0, Spacing::Constant).starts(1).and_then(|mut starts| starts.nth(3_000_000));
    assert_eq!(late, Some(1_000_000_000_000_000));
}

#[test]
fn poisson_and_gamma_gaps_have_their_mean_and_variance() {
    for (spacing, variance) in [
        (Spacing::Poisson, 1.0),
        (Spacing::Gamma { shape: 1.0 }, 1.0),
        (Spacing::Gamma { shape: 0.25 }, 4.0),
        (Spacing::Gamma { shape: 9.0 }, 1.0 / 9.0),
    ] {
        let (mean, seen) = mean_and_variance(spacing);
        // Five standard errors of the mean of 100,000 gaps, and a twentieth of the variance.
        let error = 5.0 * (variance / GAPS as f64).sqrt();
        assert!((mean - 1.0).abs() < error, "{spacing:?}: mean {mean}");
        assert!((seen / variance - 1.0).abs() < 0.05, "{spacing:?}: variance {seen} where {variance} is known");
    }
}

#[test]
fn a_seed_is_a_schedule_and_schedules_are_in_order() {
    let arrivals = open(50.0, Spacing::Gamma { shape: 0.3 });
    let first = starts_ns(arrivals, 5, 1000);
    assert_eq!(first, starts_ns(arrivals, 5, 1000));
    assert_ne!(first, starts_ns(arrivals, 6, 1000));
    assert_eq!(first[0], 0);
    assert!(first.is_sorted());
    // A schedule is a part of what was measured: these numbers must not change in a later version.
    assert_eq!(starts_ns(open(1.0, Spacing::Poisson), 1, 3), POISSON_OF_SEED_1);
    assert!(Arrivals::Closed { users: 3 }.starts(1).is_none());
}

/// -ln((z / 2^11 + 1/2) / 2^53) s, summed, for the first two numbers z of SplitMix64 from seed 1; computed in Python.
const POISSON_OF_SEED_1: [u64; 3] = [0, 568_169_510, 861_491_783];
