//! Rank tests equal SciPy's, the enumeration of all signs and published examples, and refuse what they cannot answer.

use infergate_core::stats::{
    MAX_SIGNED_RANKS, clopper_pearson, hodges_lehmann, holm_adjusted, signed_rank_lower_bound, signed_rank_p_above,
    signed_rank_upper_bound, walsh_averages,
};
use proptest::prelude::*;

/// Hollander, Wolfe and Chicken (2014), table 3.1: depression scale, second visit less first, of nine patients.
const DEPRESSION: [f64; 9] = [-0.952, 0.147, -1.022, -0.43, -0.62, -0.59, -0.49, 0.08, -0.01];

#[track_caller]
fn assert_close(got: Option<f64>, expected: f64, tolerance: f64) {
    let got = got.expect("a number");
    assert!((got - expected).abs() <= tolerance * expected.abs(), "{got} instead of {expected}");
}

/// The midranks of the magnitudes, doubled, by sorting; the code under test counts.
fn doubled_midranks(values: &[f64]) -> Vec<u64> {
    let mut sorted: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    sorted.sort_by(f64::total_cmp);
    let midrank = |value: &f64| {
        let first = sorted.iter().position(|other| *other == value.abs()).expect("it is there");
        let last = sorted.iter().rposition(|other| *other == value.abs()).expect("it is there");
        (first + 1 + last + 1) as u64
    };
    values.iter().map(midrank).collect()
}

/// P(sum of positive ranks >= that of `values`) by writing down all 2^n patterns of signs.
fn p_above_by_enumeration(values: &[f64]) -> f64 {
    let ranks = doubled_midranks(values);
    let observed: u64 = values.iter().zip(&ranks).filter(|(value, _)| **value > 0.0).map(|(_, rank)| rank).sum();
    let sum = |signs: u32| -> u64 { (0..ranks.len()).map(|at| ranks[at] * u64::from((signs >> at) & 1)).sum() };
    let patterns = 1_u32 << values.len();
    let reached = (0..patterns).filter(|signs| sum(*signs) >= observed).count();
    reached as f64 / f64::from(patterns)
}

fn negated(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| -value).collect()
}

/// The one-sided p value of "below zero".
fn p_below(values: &[f64]) -> Option<f64> {
    signed_rank_p_above(&negated(values))
}

fn shifted(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|value| value + by).collect()
}

/// Whole numbers: with ties, zeros, and sums that are exact. Long and short spans, so that some samples have no ties.
fn samples(lengths: std::ops::RangeInclusive<usize>) -> impl Iterator<Item = Vec<f64>> {
    let mut random = fastrand::Rng::with_seed(20_261_121);
    let sizes = lengths.flat_map(|n| [(n, 3), (n, 12), (n, 1000)].into_iter().cycle().take(12));
    sizes.map(move |(n, span)| (0..n).map(|_| f64::from(random.i32(-span..=span + span / 2))).collect())
}

/// `scipy.stats.wilcoxon(values, method="exact", alternative=...)`, "greater" and "less", of SciPy 1.17.1; none has ties.
#[test]
fn p_values_equal_scipy() {
    let thirds: Vec<f64> = (1..=50).map(|i| f64::from(if i % 3 == 0 { -i } else { i })).collect();
    let halves: Vec<f64> = (1..=25).map(|i| f64::from(if i % 2 == 0 { i } else { -i })).collect();
    let samples: [(&[f64], f64, f64); 7] = [
        (&[0.579, 1.055, 0.8253, 1.2476, 0.9347], 0.03125, 1.0),
        (&[-0.4702, -0.0087, -0.2252, 0.5325, 0.1894, 0.3212, -1.9826, -0.6926], 0.80859375, 0.23046875),
        (&DEPRESSION, 0.986328125, 0.01953125),
        (
            &[1.0237, 0.9381, -0.1542, 1.73, 0.364, 1.0406, 0.6643, 0.5869, 0.3405, -0.8908, -0.2213, -1.261],
            0.088134765625,
            0.92431640625,
        ),
        (
            &[
                -1.1752, -0.9566, -0.2801, -0.6941, -0.1023, -0.3956, -0.339, -0.0407, -1.7103, 1.4917, -1.1945,
                -2.3877, 1.2387, 0.4243, -0.8911, 0.035, -0.2374, -1.9985, -3.2251, 0.1693, 0.0462, -1.3258, 0.2452,
                -1.7181,
            ],
            0.9947460889816284,
            0.005758047103881836,
        ),
        (&halves, 0.573400229215622, 0.43699392676353455),
        (&thirds, 0.01308348408559823, 0.9872499584101826),
    ];
    for (values, above, below) in samples {
        assert_close(signed_rank_p_above(values), above, 1e-12);
        assert_close(p_below(values), below, 1e-12);
    }
}

#[test]
fn p_values_equal_the_enumeration_of_all_signs() {
    for values in samples(1..=12) {
        // Both are multiples of 2^-n, and equal to the last bit.
        assert_eq!(signed_rank_p_above(&values), Some(p_above_by_enumeration(&values)), "{values:?}");
        assert_eq!(p_below(&values), Some(p_above_by_enumeration(&negated(&values))), "{values:?}");
    }
}

#[test]
fn a_zero_counts_against_whatever_is_to_be_shown() {
    for values in samples(1..=12).filter(|values| values.contains(&0.0)) {
        let zeros_as = |tiny: f64| values.iter().map(|v| if *v == 0.0 { tiny } else { *v }).collect::<Vec<f64>>();
        assert_eq!(signed_rank_p_above(&values), signed_rank_p_above(&zeros_as(-1e-9)), "{values:?}");
        assert_eq!(p_below(&values), p_below(&zeros_as(1e-9)), "{values:?}");
    }
    for zero in [0.0, -0.0] {
        assert_eq!(signed_rank_p_above(&[zero; 12]), Some(1.0));
        assert_eq!(p_below(&[zero; 12]), Some(1.0));
    }
}

/// What "exact" promises, over all signs of the same magnitudes: no more than alpha of them are rejected at alpha.
#[test]
fn no_level_is_exceeded_whatever_the_ties_and_zeros() {
    for magnitudes in samples(10..=10) {
        let with_signs = |signs: u32| -> Vec<f64> {
            magnitudes.iter().enumerate().map(|(at, m)| if (signs >> at) & 1 == 1 { *m } else { -m }).collect()
        };
        let p_values: Vec<f64> =
            (0..1 << 10).map(|signs| signed_rank_p_above(&with_signs(signs)).expect("a p value")).collect();
        for alpha in [0.001, 0.003, 0.0125, 0.05, 0.2, 0.5] {
            let rejected = p_values.iter().filter(|p| **p <= alpha).count() as f64 / 1024.0;
            assert!(rejected <= alpha, "{magnitudes:?}: {rejected} at {alpha}");
        }
    }
}

#[test]
fn bounds_are_the_inverse_of_the_test() {
    for values in samples(4..=10) {
        let mut averages = walsh_averages(&values).expect("averages");
        averages.dedup();
        // Shifts on either side of every average; whole numbers and their halves and quarters are exact.
        let mut shifts: Vec<f64> = averages.windows(2).map(|gap| f64::midpoint(gap[0], gap[1])).collect();
        shifts.extend([averages[0] - 1.0, averages[averages.len() - 1] + 1.0]);
        for beta in [0.0125, 0.0625, 0.2] {
            let (low, high) = (signed_rank_lower_bound(&values, beta), signed_rank_upper_bound(&values, beta));
            assert_eq!(low.is_some(), 0.5_f64.powi(values.len() as i32) <= beta, "{values:?} at {beta}");
            assert_eq!(low.is_some(), high.is_some(), "{values:?} at {beta}");
            let (Some(low), Some(high)) = (low, high) else { continue };
            assert!(averages.contains(&low) && averages.contains(&high), "{values:?} at {beta}: {low}, {high}");
            for shift in &shifts {
                let moved = shifted(&values, -shift);
                let above = p_above_by_enumeration(&moved) <= beta;
                let below = p_above_by_enumeration(&negated(&moved)) <= beta;
                assert_eq!((above, below), (*shift < low, *shift > high), "{values:?} at {beta}, shifted by {shift}");
            }
        }
    }
}

#[test]
fn a_bound_takes_blocks_enough_for_its_level() {
    let values = [5.0, 1.0, 4.0, 2.0, 3.0, 7.0, 6.0];
    // 2^-6 > 0.0125 >= 2^-7: six values exclude nothing, of seven the extremes are the bounds.
    assert_eq!(signed_rank_lower_bound(&values[..6], 0.0125), None);
    assert_eq!(signed_rank_upper_bound(&values[..6], 0.0125), None);
    assert_eq!(signed_rank_lower_bound(&values, 0.0125), Some(1.0));
    assert_eq!(signed_rank_upper_bound(&values, 0.0125), Some(7.0));
    assert_eq!(signed_rank_upper_bound(&[0.25; 7], 0.0125), Some(0.25));
}

/// Hollander, Wolfe and Chicken (2014), examples 3.1, 3.3 and 3.4, and the same data in `?wilcox.test` of R: T+ = 5 with
/// P = 0.0195, estimate -0.46, interval of 96.1 % from -0.786 to -0.010.
#[test]
fn the_depression_example_of_hollander_and_wolfe() {
    assert_eq!(p_below(&DEPRESSION), Some(10.0 / 512.0));
    assert_close(hodges_lehmann(&DEPRESSION), -0.46, 1e-12);
    assert_close(signed_rank_lower_bound(&DEPRESSION, 0.0195313), -0.786, 1e-12);
    assert_close(signed_rank_upper_bound(&DEPRESSION, 0.0195313), -0.010, 1e-12);
}

#[test]
fn hodges_lehmann_by_hand() {
    // Averages of pairs, each with itself: 1, 1.5, 2, 2.5, 3, 4.
    assert_eq!(walsh_averages(&[4.0, 1.0, 2.0]), Some(vec![1.0, 1.5, 2.0, 2.5, 3.0, 4.0]));
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
        (30, 30, 0.95, 0.8842966917779725, 1.0),
        (1, 30, 0.95, 0.0008435709266493071, 0.17216945563341293),
        (3, 30, 0.95, 0.021117137029722604, 0.2652884504742082),
        (29, 30, 0.95, 0.827830544366587, 0.9991564290733507),
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
fn what_cannot_be_ranked_is_refused() {
    type Bound = fn(&[f64], f64) -> Option<f64>;
    let bounds: [Bound; 2] = [signed_rank_lower_bound, signed_rank_upper_bound];
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut values = [1.0; 12];
        values[5] = bad;
        for function in [signed_rank_p_above, hodges_lehmann] {
            assert_eq!(function(&values), None, "{bad}");
        }
        assert_eq!(walsh_averages(&values), None, "{bad}");
        bounds.iter().for_each(|bound| assert_eq!(bound(&values, 0.0125), None, "{bad}"));
    }
    for function in [signed_rank_p_above, hodges_lehmann] {
        assert_eq!(function(&[]), None);
    }
    bounds.iter().for_each(|bound| assert_eq!(bound(&[], 0.0125), None));
    // The shortest and the longest sample there is an exact answer for.
    assert_eq!((signed_rank_p_above(&[2.0]), signed_rank_p_above(&[-2.0])), (Some(0.5), Some(1.0)));
    assert_eq!(signed_rank_p_above(&[1.0; MAX_SIGNED_RANKS]), Some(0.5_f64.powi(MAX_SIGNED_RANKS as i32)));
    assert_eq!(signed_rank_p_above(&[1.0; MAX_SIGNED_RANKS + 1]), None);
}

proptest! {
    #[test]
    fn swapping_the_sides_mirrors_everything(values in prop::collection::vec(-100i32..100, 8..24)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let mirrored = negated(&values);
        prop_assert_eq!(hodges_lehmann(&mirrored), hodges_lehmann(&values).map(|theta| -theta));
        let (low, high) = (signed_rank_lower_bound(&values, 0.0125), signed_rank_upper_bound(&values, 0.0125));
        prop_assert_eq!(signed_rank_lower_bound(&mirrored, 0.0125), high.map(|high| -high));
        prop_assert_eq!(signed_rank_upper_bound(&mirrored, 0.0125), low.map(|low| -low));
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
        type Location = fn(&[f64]) -> Option<f64>;
        let low: Location = |values| signed_rank_lower_bound(values, 0.0125);
        let high: Location = |values| signed_rank_upper_bound(values, 0.0125);
        for location in [hodges_lehmann, low, high] {
            let at = location(&values).unwrap();
            prop_assert_eq!(location(&moved), Some(at + shift));
            prop_assert!(close(location(&scaled), at * factor));
        }
        prop_assert_eq!(signed_rank_p_above(&scaled), signed_rank_p_above(&values));
    }

    #[test]
    fn p_values_are_probabilities_and_fall_as_the_values_rise(
        values in prop::collection::vec(-1.0f64..1.0, 1..30), rise in 0.0f64..1.0, at in any::<prop::sample::Index>(),
    ) {
        let (above, below) = (signed_rank_p_above(&values).unwrap(), p_below(&values).unwrap());
        prop_assert!(above > 0.0 && above <= 1.0 && below > 0.0 && below <= 1.0);
        // Both tails contain what was observed.
        prop_assert!(above + below > 1.0);
        let mut one_higher = values.clone();
        one_higher[at.index(values.len())] += rise;
        for higher in [shifted(&values, rise), one_higher] {
            prop_assert!(signed_rank_p_above(&higher).unwrap() <= above);
            prop_assert!(p_below(&higher).unwrap() >= below);
        }
    }

    #[test]
    fn bounds_enclose_the_estimate_and_widen_with_confidence(values in prop::collection::vec(-1.0f64..1.0, 10..30)) {
        let theta = hodges_lehmann(&values).unwrap();
        let bounds = |beta| (signed_rank_lower_bound(&values, beta).unwrap(), signed_rank_upper_bound(&values, beta).unwrap());
        let (wide, narrow) = (bounds(0.001), bounds(0.0125));
        prop_assert!(wide.0 <= narrow.0 && narrow.0 <= theta && theta <= narrow.1 && narrow.1 <= wide.1);
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
