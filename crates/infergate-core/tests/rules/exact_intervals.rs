//! Estimates and intervals equal SciPy's, statsmodels' and published examples, and refuse what they cannot answer.

use infergate_core::stats::{clopper_pearson, hodges_lehmann, holm_adjusted};
use proptest::prelude::*;

/// Hollander, Wolfe and Chicken (2014), table 3.1: depression scale, second visit less first, of nine patients.
const DEPRESSION: [f64; 9] = [-0.952, 0.147, -1.022, -0.43, -0.62, -0.59, -0.49, 0.08, -0.01];

#[track_caller]
fn assert_close(got: Option<f64>, expected: f64, tolerance: f64) {
    let got = got.expect("a number");
    assert!((got - expected).abs() <= tolerance * expected.abs(), "{got} instead of {expected}");
}

fn negated(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| -value).collect()
}

fn shifted(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|value| value + by).collect()
}

/// Hollander, Wolfe and Chicken (2014), example 3.3.
#[test]
fn the_depression_example_of_hollander_and_wolfe() {
    assert_close(hodges_lehmann(&DEPRESSION), -0.46, 1e-12);
}

#[test]
fn hodges_lehmann_by_hand() {
    // Averages of pairs, each with itself: 1, 1.5, 2, 2.5, 3, 4.
    assert_eq!(hodges_lehmann(&[4.0, 1.0, 2.0]), Some(2.25));
    // One wild block of twelve moves it by half a rank, where it would move a mean by 83.
    let wild: Vec<f64> = (1..=11).map(f64::from).chain([1000.0]).collect();
    assert_eq!(hodges_lehmann(&wild), Some(6.5));
    assert_eq!(hodges_lehmann(&[3.5]), Some(3.5));
}

/// `statsmodels.stats.multitest.multipletests(p, method="holm")` of statsmodels 0.15.0.
#[test]
fn holm_equals_statsmodels() {
    let families: [(&[f64], &[f64]); 5] = [
        (&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]),
        (&[0.0004, 0.02, 0.02, 0.3, 0.00065], &[0.002, 0.06, 0.06, 0.3, 0.0026]),
        (&[0.5, 0.6, 0.9], &[1.0, 1.0, 1.0]),
        (&[1.0, 0.25, 1.0, 1.0, 1.0], &[1.0; 5]),
        (&[0.001], &[0.001]),
    ];
    for (p_values, expected) in families {
        let adjusted = holm_adjusted(p_values).expect("probabilities");
        assert_eq!(adjusted.len(), expected.len());
        adjusted.iter().zip(expected).for_each(|(got, expected)| assert_close(Some(*got), *expected, 1e-12));
    }
    assert_eq!(holm_adjusted(&[]), Some(Vec::new()));
    for bad in [-0.001, 1.001, f64::NAN, f64::INFINITY] {
        assert_eq!(holm_adjusted(&[0.5, bad]), None, "{bad}");
    }
}

/// `scipy.stats.binomtest(hits, trials).proportion_ci(confidence, method="exact")` of SciPy 1.17.1.
#[test]
fn clopper_pearson_equals_scipy() {
    for (hits, trials, confidence, low, high) in [
        (0, 1, 0.95, 0.0, 0.975),
        (1, 1, 0.95, 0.025000000000000022, 1.0),
        (0, 30, 0.95, 0.0, 0.11570330822202743),
        (1, 30, 0.95, 0.0008435709266493071, 0.17216945563341293),
        (3, 30, 0.95, 0.021117137029722604, 0.2652884504742082),
        (5, 10, 0.9, 0.22244110100812892, 0.777558898991871),
        (2, 200, 0.95, 0.0012133490137476003, 0.035654668397239866),
        (137, 3000, 0.99, 0.03641042541352512, 0.05639568953413285),
        (4999, 5000, 0.95, 0.998886180619666, 0.9999949364512338),
    ] {
        let (got_low, got_high) = clopper_pearson(hits, trials, confidence).expect("an interval");
        assert_close(Some(got_low), low, 1e-9);
        assert_close(Some(got_high), high, 1e-9);
    }
    assert_eq!(clopper_pearson(0, 0, 0.95), None);
    assert_eq!(clopper_pearson(2, 1, 0.95), None);
    assert_eq!(clopper_pearson(u64::MAX - 1, u64::MAX, 0.95), None);
    for confidence in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
        assert_eq!(clopper_pearson(1, 2, confidence), None, "{confidence}");
    }
}

/// `scipy.stats.beta.ppf` and `isf` of SciPy 1.17.1, for which `binomtest`'s search is too coarse.
#[test]
fn many_trials_are_as_exact_as_few() {
    for (hits, trials, confidence, low, high) in [
        (1, 1_000_000, 0.95, 2.53178076637942e-08, 5.571630655166939e-06),
        (500_000, 1_000_000, 0.95, 0.49901951919531184, 0.5009804808046882),
        (3, 50_000_000, 0.999, 2.9940770538625823e-09, 2.786804335440267e-07),
        (25_000_000, 50_000_000, 0.95, 0.49986139962092047, 0.5001386003790795),
    ] {
        let (got_low, got_high) = clopper_pearson(hits, trials, confidence).expect("an interval");
        assert_close(Some(got_low), low, 1e-9);
        assert_close(Some(got_high), high, 1e-9);
    }
}

#[test]
fn what_has_no_location_is_refused() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut values = [1.0; 12];
        values[5] = bad;
        assert_eq!(hodges_lehmann(&values), None, "{bad}");
    }
    assert_eq!(hodges_lehmann(&[]), None);
}

proptest! {
    #[test]
    fn swapping_the_sides_mirrors_the_estimate(values in prop::collection::vec(-100i32..100, 8..24)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assert_eq!(hodges_lehmann(&negated(&values)), hodges_lehmann(&values).map(|theta| -theta));
    }

    #[test]
    fn a_shift_carries_through_and_scale_and_order_do_not_matter(
        values in prop::collection::vec(-500i32..500, 8..20), shift in -300i32..300, factor in 0.001f64..1000.0,
    ) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let shift = f64::from(shift);
        let moved = shifted(&values, shift);
        let scaled: Vec<f64> = values.iter().rev().map(|value| value * factor).collect();
        let close = |got: Option<f64>, expected: f64| (got.unwrap() - expected).abs() <= 1e-9 * factor;
        let at = hodges_lehmann(&values).unwrap();
        prop_assert_eq!(hodges_lehmann(&moved), Some(at + shift));
        prop_assert!(close(hodges_lehmann(&scaled), at * factor));
    }

    #[test]
    fn holm_keeps_order_and_never_lowers_a_p_value(p_values in prop::collection::vec(0.0f64..=1.0, 1..20)) {
        let adjusted = holm_adjusted(&p_values).unwrap();
        let most = p_values.len() as f64;
        for (i, (p, adjusted_p)) in p_values.iter().zip(&adjusted).enumerate() {
            prop_assert!(adjusted_p >= p && *adjusted_p <= (most * p).min(1.0));
            for (q, adjusted_q) in p_values[i..].iter().zip(&adjusted[i..]) {
                prop_assert!((p < q && adjusted_p <= adjusted_q) || (p > q && adjusted_p >= adjusted_q) || p == q);
            }
        }
    }
}
