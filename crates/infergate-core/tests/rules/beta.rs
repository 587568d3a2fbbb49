//! The incomplete beta function against published values, and its inverse, which always ends.

use infergate_core::stats::{beta_cdf, beta_quantile};
use proptest::prelude::*;

/// `scipy.stats.beta.cdf(x, a, b)` of SciPy 1.17.1.
#[test]
fn beta_cdf_equals_scipy() {
    for (x, a, b, expected) in [
        (0.3, 2.0, 5.0, 0.5798250000000003),
        (0.37, 40.0, 60.0, 0.27327172080292333),
        (1e-9, 0.5, 3.0, 5.929270608862864e-5),
        (0.9999, 1000.0, 0.5, 0.6547531308979168),
        (0.5001, 5e5, 5e5, 0.5792596906690589),
        (0.49, 3e4, 3e4, 4.805287739286701e-7),
        (0.2, 0.001, 7.0, 0.9998927327519053),
        (0.999999, 2.5, 0.01, 0.11786375971845602),
        (1e-5, 17.0, 1e6, 0.027044430749836177),
    ] {
        let got = beta_cdf(x, a, b).expect("a probability");
        assert!((got / expected - 1.0).abs() < 1e-10, "beta_cdf({x}, {a}, {b}) = {got}, not {expected}");
    }
}

#[test]
fn what_is_no_beta_distribution_has_no_probability() {
    for (x, a, b) in [
        (-0.1, 1.0, 1.0),
        (1.1, 1.0, 1.0),
        (0.5, 0.0, 1.0),
        (0.5, 1.0, -1.0),
        (f64::NAN, 1.0, 1.0),
        (0.5, f64::NAN, 1.0),
        (0.5, 1.0, f64::INFINITY),
        (0.5, 1e18, 1.0),
    ] {
        assert_eq!(beta_cdf(x, a, b), None, "{x} {a} {b}");
    }
    for p in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(beta_quantile(p, 1.0, 1.0), None, "{p}");
    }
    assert_eq!(beta_quantile(0.5, 1e18, 1.0), None);
}

proptest! {
    /// Parameters from 1/2 to a million, and probabilities far into both tails.
    #[test]
    fn a_quantile_always_ends_and_is_the_inverse(
        a in -0.3f64..6.0, b in -0.3f64..6.0, digits in 0.0f64..12.0, upper: bool,
    ) {
        let (a, b) = (10f64.powf(a), 10f64.powf(b));
        let tail = 0.5 * 10f64.powf(-digits);
        let p = if upper { 1.0 - tail } else { tail };
        let x = beta_quantile(p, a, b).expect("a quantile");
        prop_assert!((0.0..=1.0).contains(&x));
        // Near 1 numbers are not dense enough for the farthest tails.
        let low = beta_cdf(x * (1.0 - 1e-11), a, b).unwrap();
        let high = beta_cdf((x * (1.0 + 1e-11)).min(1.0), a, b).unwrap();
        prop_assert!(low - 1e-9 <= p && p <= high + 1e-9, "{p} is not within {low} and {high} at {x}");
    }
}
