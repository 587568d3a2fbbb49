//! Statistics equal NumPy's and SciPy's, and refuse what they cannot answer.

use infergate_core::stats::{
    coefficient_of_variation, lag_1_autocorrelation, log_ratio, mann_kendall_p_rising, mean, median, percentile,
    quantile, sample_std, samples_needed, student_t_cdf, student_t_quantile, student_t_upper_tail, theil_sen,
};
use proptest::prelude::*;
use serde_json::Value;

/// Made by tests/fixtures/make_stats.py, which names the versions of NumPy and SciPy in it.
fn reference() -> Value {
    serde_json::from_str(include_str!("../fixtures/stats.json")).expect("the fixture is JSON")
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|value| value.as_f64().expect("a number")).collect()
}

#[track_caller]
fn assert_close(got: Option<f64>, expected: Option<f64>, tolerance: f64, what: &str) {
    match (got, expected) {
        (Some(got), Some(expected)) => {
            let error = (got - expected).abs() / expected.abs().max(1e-300);
            assert!(error <= tolerance || got == expected, "{what}: {got} instead of {expected}");
        }
        (got, expected) => assert_eq!(got, expected, "{what}"),
    }
}

#[test]
fn descriptions_equal_numpy() {
    let reference = reference();
    for (name, sample) in reference["samples"].as_object().expect("samples") {
        let values = numbers(&sample["values"]);
        let close = |got, field: &str| assert_close(got, sample[field].as_f64(), 1e-12, &format!("{name} {field}"));
        close(mean(&values), "mean");
        close(median(&values), "median");
        close(sample_std(&values), "sample_std");
        close(coefficient_of_variation(&values), "cv");
        for point in sample["quantiles"].as_array().expect("quantiles") {
            let [p, expected] = numbers(point)[..] else { panic!("a pair") };
            assert_close(quantile(&values, p), Some(expected), 1e-12, &format!("{name} at {p}"));
        }
    }
}

#[test]
fn trends_equal_pymannkendall_and_scipy() {
    let reference = reference();
    for (name, series) in reference["trends"].as_object().expect("trends") {
        let values = numbers(&series["values"]);
        let close = |got, field: &str| assert_close(got, series[field].as_f64(), 1e-9, &format!("{name} {field}"));
        close(mann_kendall_p_rising(&values), "p_rising");
        close(theil_sen(&values), "slope");
        close(lag_1_autocorrelation(&values), "autocorrelation");
    }
}

#[test]
fn a_series_without_change_has_no_trend() {
    let flat = [7.0; 30];
    assert_eq!(mann_kendall_p_rising(&flat), Some(1.0));
    assert_eq!(theil_sen(&flat), Some(0.0));
    assert_eq!(lag_1_autocorrelation(&flat), None, "nothing varies");
    assert_eq!(mann_kendall_p_rising(&[1.0, 2.0]), None, "too short");
    assert_eq!(mann_kendall_p_rising(&[1.0, f64::NAN, 2.0]), None);
    assert_eq!(theil_sen(&[1.0]), None, "a point has no slope");
}

proptest! {
    #[test]
    fn a_trend_turned_round_falls_and_a_line_is_found(
        noise in prop::collection::vec(-5.0..5.0f64, 20..60), slope in -100i32..100
    ) {
        let reversed: Vec<f64> = noise.iter().rev().copied().collect();
        let (up, down) = (mann_kendall_p_rising(&noise).unwrap(), mann_kendall_p_rising(&reversed).unwrap());
        // With the continuity correction both sides leave a little: p and its mirror add up to one or more.
        prop_assert!(up + down >= 1.0 - 1e-9 && up + down < 1.2, "{up} {down}");
        let slope = f64::from(slope);
        let line: Vec<f64> = (0..noise.len()).map(|at| 3.0 + slope * at as f64).collect();
        let found = theil_sen(&line).unwrap();
        prop_assert!((found - slope).abs() < 1e-9);
        let tilted: Vec<f64> = noise.iter().zip(&line).map(|(noise, line)| noise + line).collect();
        let moved = theil_sen(&tilted).unwrap() - theil_sen(&noise).unwrap();
        prop_assert!((moved - slope).abs() < 1e-9, "adding a line adds its slope");
    }
}

#[test]
fn student_t_equals_scipy() {
    type Function = fn(f64, f64) -> Option<f64>;
    let reference = reference();
    let functions: [(&str, Function); 3] =
        [("t_quantile", student_t_quantile), ("t_cdf", student_t_cdf), ("t_upper_tail", student_t_upper_tail)];
    for (name, function) in functions {
        for row in reference[name].as_array().expect("rows") {
            let [x, freedom, expected] = numbers(row)[..] else { panic!("three numbers") };
            assert_close(function(x, freedom), Some(expected), 1e-9, &format!("{name}({x}, {freedom})"));
        }
    }
}

#[test]
fn a_percentile_is_given_from_the_samples_it_needs_and_not_before() {
    for (p, needed) in [(0.5, 6), (0.25, 13), (0.9, 36), (0.95, 72), (0.99, 368), (0.01, 368), (0.75, 13)] {
        assert_eq!(samples_needed(p), Some(needed), "p = {p}");
        let enough: Vec<f64> = (0..needed).map(|i| i as f64).collect();
        assert_eq!(percentile(&enough, p), quantile(&enough, p), "p = {p}");
        assert_eq!(percentile(&enough[1..], p), None, "p = {p}");
    }
}

#[test]
fn too_few_values_have_no_statistic() {
    for function in [mean, median, sample_std, coefficient_of_variation] {
        assert_eq!(function(&[]), None);
    }
    assert_eq!(quantile(&[], 0.5), None);
    assert_eq!(percentile(&[], 0.5), None);
    assert_eq!(sample_std(&[3.0]), None);
    assert_eq!(coefficient_of_variation(&[3.0]), None);
    assert_eq!((mean(&[3.0]), median(&[3.0])), (Some(3.0), Some(3.0)));
}

#[test]
fn what_is_not_a_number_is_refused_everywhere() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let values = [1.0, bad, 2.0];
        for function in [mean, median, sample_std, coefficient_of_variation] {
            assert_eq!(function(&values), None, "{bad}");
        }
        assert_eq!(percentile(&values, 0.5), None, "{bad}");
        assert_eq!(quantile(&[1.0, 2.0], bad), None, "{bad}");
        assert_eq!(samples_needed(bad), None, "{bad}");
        assert_eq!(log_ratio(1.0, bad), None, "{bad}");
        assert_eq!(log_ratio(bad, 1.0), None, "{bad}");
        assert_eq!(student_t_quantile(bad, 7.0), None, "{bad}");
        assert_eq!(student_t_quantile(0.9, bad), None, "{bad}");
    }
    assert_eq!(student_t_cdf(f64::NAN, 7.0), None);
    assert_eq!(student_t_quantile(0.9, 0.0), None);
    for p in [-0.1, 0.0, 1.0, 1.1] {
        assert_eq!(samples_needed(p), None, "p = {p}");
        assert_eq!(percentile(&[1.0; 400], p), None, "p = {p}");
        assert_eq!(student_t_quantile(p, 7.0), None, "p = {p}");
    }
}

#[test]
fn ratios_to_nothing_are_undefined() {
    assert_eq!(coefficient_of_variation(&[-1.0, 1.0]), None);
    assert_eq!(log_ratio(0.0, 1.0), None);
    assert_eq!(log_ratio(1.0, -1.0), None);
}

proptest! {
    #[test]
    fn quantiles_stay_within_the_values_and_rise_with_p(
        values in prop::collection::vec(-1e300f64..1e300, 1..40), p in 0.0..=1.0, q in 0.0..=1.0,
    ) {
        let (low, high) = (quantile(&values, f64::min(p, q)).unwrap(), quantile(&values, f64::max(p, q)).unwrap());
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Interpolation rounds: allow the last bits of the widest span.
        let slack = 1e-14 * least.abs().max(most.abs());
        prop_assert!(low <= high + slack);
        prop_assert!(least - slack <= low && high <= most + slack);
        prop_assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(least), Some(most)));
    }

    #[test]
    fn order_does_not_matter_and_scale_carries_through(
        mut values in prop::collection::vec(0.1f64..1e6, 3..40), factor in 0.01f64..100.0,
    ) {
        let before = median(&values).unwrap();
        values.reverse();
        prop_assert_eq!(median(&values).unwrap(), before);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let relative = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
        prop_assert!(relative(median(&scaled).unwrap(), before * factor));
        prop_assert!(relative(sample_std(&scaled).unwrap(), sample_std(&values).unwrap() * factor));
        let (cv, scaled_cv) = (coefficient_of_variation(&values).unwrap(), coefficient_of_variation(&scaled).unwrap());
        prop_assert!(relative(scaled_cv, cv));
    }

    #[test]
    fn a_log_ratio_changes_only_its_sign_when_the_sides_are_swapped(a in 1e-300f64..1e300, b in 1e-300f64..1e300) {
        prop_assert_eq!(log_ratio(a, b).unwrap(), -log_ratio(b, a).unwrap());
        prop_assert_eq!(log_ratio(a, a), Some(0.0));
    }

    #[test]
    fn student_t_quantile_and_cdf_are_inverse(p in prop_oneof![0.0005f64..0.9995, 0.4999f64..0.5001], freedom in 1u32..60) {
        let t = student_t_quantile(p, f64::from(freedom)).unwrap();
        prop_assert!((student_t_cdf(t, f64::from(freedom)).unwrap() - p).abs() < 1e-11);
        let tail = student_t_upper_tail(t, f64::from(freedom)).unwrap();
        prop_assert!((tail - (1.0 - p)).abs() < 1e-11);
    }
}
