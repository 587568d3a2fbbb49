//! The looks of the paired channel decide what gate.md says, and are wrong no more often than it says.

mod level;
mod literal;
mod noisy;
mod placements;
mod stalls;

use infergate_core::stats::normal;
use infergate_judge::paired::{
    Bet, CaseState, MAX_BLOCKS, SUITE_LEVEL, Series, case_states, fewest_blocks, fewest_to_fail, outcomes,
    regresses_among,
};
use infergate_receipts::{Outcome, Shown};
use proptest::prelude::*;

use crate::gate_looks::literal::{any_suite, literal};

/// ln of the default threshold.
fn limit() -> f64 {
    1.02_f64.ln()
}

fn series(differences: &[f64]) -> Series {
    Series { limit: limit(), expected_std: Some(0.01), differences: differences.to_vec(), ..Series::default() }
}

/// `blocks` differences, spread evenly around `centre` by up to `half_width` in an order without a trend.
fn spread(centre: f64, half_width: f64, blocks: usize) -> Vec<f64> {
    (0..blocks).map(|i| centre + half_width * (((i * 7 % 24) as f64 + 0.5) / 12.0 - 1.0)).collect()
}

fn quiet(blocks: usize) -> Vec<f64> {
    spread(0.0, 0.005, blocks)
}

/// `first` in a suite of `tests` cases of which the others are unchanged and quiet: how it stands.
fn among_quiet(first: &[f64], tests: usize) -> CaseState {
    let mut suite = vec![series(first)];
    suite.resize(tests, series(&quiet(first.len())));
    case_states(&suite, 0).swap_remove(0)
}

fn settled(state: &CaseState) -> (Option<Outcome>, usize) {
    (state.outcome, state.blocks)
}

fn ends(state: &CaseState) -> (f64, f64) {
    state.log_interval.expect("an interval")
}

fn half_width(state: &CaseState) -> f64 {
    (ends(state).1 - ends(state).0) / 2.0
}

#[test]
fn a_big_slowdown_regresses_after_ten_blocks_and_not_before() {
    let slow = spread(0.1, 0.02, MAX_BLOCKS);
    assert_eq!(fewest_to_fail(5), 10);
    for blocks in 6..10 {
        assert_eq!(settled(&among_quiet(&slow[..blocks], 5)), (None, blocks));
    }
    for blocks in [10, 11, 40] {
        let state = among_quiet(&slow[..blocks], 5);
        assert_eq!(settled(&state), (Some(Outcome::Regressed), 10));
        assert!(state.shown == Some(Shown::Slower) && ends(&state).0 > 0.0);
        // Each block won the whole stake; the four others stay in the suite with the little they have.
        let p = state.p_adjusted.expect("a p value");
        assert!(p <= SUITE_LEVEL && p > 1.0 / 1.9_f64.powi(10), "{p}");
    }
    // All five at once: each stands for the others, and none needs as many blocks.
    let all = case_states(&vec![series(&slow); 5], 0);
    assert!(all.iter().all(|state| settled(state) == (Some(Outcome::Regressed), 8)), "{all:?}");
    let noisy = Series { expected_std: Some(0.15), ..series(&spread(0.3, 0.25, MAX_BLOCKS)) };
    let noisy = case_states(&[noisy], 0).swap_remove(0);
    assert_eq!((noisy.outcome, half_width(&noisy) > limit()), (Some(Outcome::Regressed), true), "{noisy:?}");
}

#[test]
fn an_improvement_is_the_mirror_image() {
    let slow = spread(0.1, 0.02, MAX_BLOCKS);
    let fast: Vec<f64> = slow.iter().map(|d| -d).collect();
    // Far below its limit after six blocks, and yet open: four more may show that it is faster.
    for blocks in 6..10 {
        assert_eq!(settled(&among_quiet(&fast[..blocks], 5)), (None, blocks));
    }
    let (slower, faster) = (among_quiet(&slow, 5), among_quiet(&fast, 5));
    assert_eq!(settled(&faster), (Some(Outcome::Improved), 10));
    assert_eq!((slower.shown, faster.shown), (Some(Shown::Slower), Some(Shown::Faster)));
    // The quiet cases of its suite are not their own mirror image, so the two are near each other and not the same.
    let p = |state: &CaseState| state.p_adjusted.expect("a p");
    assert!(p(&faster) <= 0.01 && (p(&faster) - p(&slower)).abs() < 1e-3, "{faster:?} {slower:?}");
    assert_eq!(faster.log_ratio, slower.log_ratio.map(|log_ratio| -log_ratio));
    assert_eq!(ends(&faster), (-ends(&slower).1, -ends(&slower).0));
    // Looks faster, and is not shown to be: it passes in the end.
    let noisy = Series { expected_std: Some(0.06), ..series(&spread(-0.021, 0.1, MAX_BLOCKS)) };
    assert_eq!(settled(&case_states(&[noisy], 0)[0]), (Some(Outcome::WithinLimit), MAX_BLOCKS));
}

/// Its slowdown is excluded at the limit already, so noise is not what it passes by.
#[test]
fn what_looks_improved_when_its_time_ends_is_within_its_limit() {
    let state = |series: Series| {
        let state = case_states(&[series], 4).swap_remove(0);
        (settled(&state), state.limit)
    };
    let fast = series(&spread(-0.1, 0.02, 7));
    for widest in [0.0, 1.05_f64.ln()] {
        assert_eq!(state(Series { widest, ..fast.clone() }).0, (None, 7), "more blocks may show it");
        let ended = Series { widest, is_last: true, ..fast.clone() };
        assert_eq!(state(ended), ((Some(Outcome::WithinLimit), 7), limit()));
    }
    let noisy = series(&spread(-0.4, 0.1, MAX_BLOCKS));
    let noisy = Series { widest: 1.05_f64.ln(), expected_std: Some(0.06), ..noisy };
    assert_eq!(state(noisy).0.0, Some(Outcome::Improved), "no noise hides so much");
}

#[test]
fn a_slowdown_below_the_limit_is_never_regressed() {
    // Certainly slower, and neither shown to be above the limit nor below it.
    let state = among_quiet(&spread(0.95 * limit(), 0.4 * limit(), MAX_BLOCKS), 5);
    assert!(state.shown == Some(Shown::Slower) && state.p_adjusted.is_some_and(|p| p <= SUITE_LEVEL));
    assert!(ends(&state).1 > limit() && ends(&state).0 > 0.0);
    assert_eq!(settled(&state), (Some(Outcome::Inconclusive), MAX_BLOCKS));
    let half = among_quiet(&spread(0.5 * limit(), 0.004, MAX_BLOCKS), 5);
    assert_eq!(half.outcome, Some(Outcome::WithinLimit));
    // At the limit to the last bit it is a regression.
    assert_eq!(settled(&among_quiet(&[limit(); MAX_BLOCKS], 5)), (Some(Outcome::Regressed), 10));
}

#[test]
fn the_end_is_unstable_or_inconclusive_by_the_width_of_the_interval() {
    use Outcome::{Inconclusive, Unstable};
    for (centre, noise, expected) in [(0.0, 0.4, Unstable), (0.019, 0.02, Inconclusive)] {
        let differences = spread(centre, noise, MAX_BLOCKS);
        let noisy = |blocks: usize| {
            let noisy = Series { expected_std: Some(noise / 1.7), ..series(&differences[..blocks]) };
            case_states(&[noisy, Series { expected_std: None, ..series(&quiet(blocks)) }], 0).swap_remove(0)
        };
        assert_eq!(settled(&noisy(MAX_BLOCKS - 1)), (None, MAX_BLOCKS - 1), "{noise}");
        let state = noisy(MAX_BLOCKS);
        assert_eq!(settled(&state), (Some(expected), MAX_BLOCKS), "{noise}");
        assert_eq!(half_width(&state) > limit(), expected == Unstable, "{state:?}");
    }
    let mut broken = quiet(MAX_BLOCKS);
    broken[3] = f64::NAN;
    let broken = among_quiet(&broken, 5);
    assert_eq!((settled(&broken), broken.log_interval), ((Some(Unstable), MAX_BLOCKS), None), "no number never passes");
}

#[test]
fn a_factor_is_fair_against_every_symmetric_block() {
    for std in [None, Some(0.0), Some(0.004), Some(0.05), Some(f64::NAN)] {
        let scale = Bet::new(limit(), std).scale(&[]);
        for below in [0.0, 0.001, 0.02] {
            for half in [0.0, 1e-4, 0.003, 0.01, 0.3] {
                // Two mirror images about a point at or below zero: together no more than they were put in.
                let sum = Bet::factor(scale, half - below) + Bet::factor(scale, -half - below);
                assert!(sum <= 2.0 + 1e-12, "{std:?}: {sum}");
            }
        }
        let factor = |above| Bet::factor(scale, above);
        assert!(factor(0.5) > 1.89 && factor(-0.5) < 0.11 && factor(0.0) == 1.0);
        assert_eq!((factor(f64::NAN), factor(f64::INFINITY)), (0.0, 0.0));
    }
}

#[test]
fn what_blocks_vary_by_takes_the_place_of_what_was_expected() {
    let quiet = spread(0.0, 0.01, MAX_BLOCKS);
    // A pilot in a noisy second expects eight times what comes: 40 blocks by that alone show nothing.
    let far_off = Series { expected_std: Some(0.08), ..series(&quiet) };
    let (outcome, blocks) = settled(&case_states(&vec![far_off; 5], 0)[0]);
    assert!(outcome == Some(Outcome::WithinLimit) && blocks <= 16, "{outcome:?} after {blocks} blocks");
    let slow = Series { expected_std: Some(0.08), ..series(&spread(0.035, 0.01, MAX_BLOCKS)) };
    let (outcome, blocks) = settled(&case_states(&vec![slow; 5], 0)[0]);
    assert!(outcome == Some(Outcome::Regressed) && blocks <= 16, "{outcome:?} after {blocks} blocks");

    let bet = Bet::new(limit(), Some(0.02));
    let expected = limit() / 0.02_f64.powi(2);
    assert_eq!((bet.scale(&[]), bet.scale(&quiet[..2])), (expected, expected));
    // Blocks that vary as expected change nothing, and a wild one among many little.
    let mad = 0.02 / 1.4826;
    let as_expected = [-mad, 0.0, mad, -mad, 0.0, mad, 0.0, -2.0 * mad, 2.0 * mad];
    assert!((bet.scale(&as_expected) / expected - 1.0).abs() < 1e-9);
    assert_eq!(bet.scale(&[&as_expected[..8], &[9.0]].concat()), bet.scale(&as_expected));
}

#[test]
fn bounds_are_where_the_evidence_begins() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..20 {
        let differences: Vec<f64> = (0..20).map(|_| 0.01 + 0.01 * normal(&mut random)).collect();
        let bet = Bet::new(limit(), Some(0.01));
        let low = bet.lower_bound(&differences, 40.0).expect("a bound");
        let wealth = |shift: f64| -> f64 {
            let factor = |(at, d): (usize, &f64)| Bet::factor(bet.scale(&differences[..at]), d - shift);
            differences.iter().enumerate().map(factor).product()
        };
        assert!(wealth(low - 1e-6) >= 40.0 && wealth(low + 1e-6) < 40.0, "{}", wealth(low));
        let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
        assert_eq!(bet.upper_bound(&mirrored, 40.0), Some(-low));
    }
    let bet = Bet::new(limit(), Some(0.01));
    assert_eq!((bet.lower_bound(&[0.1; 5], 40.0), bet.lower_bound(&[], 40.0)), (None, None));
    assert!(bet.lower_bound(&[0.1; 6], 40.0).is_some());
    assert_eq!((fewest_blocks(40.0), fewest_blocks(500.0), fewest_blocks(1.0)), (6, 10, 0));
}

#[test]
fn the_looks_decide_what_gate_md_says() {
    let mut seen = std::collections::BTreeMap::new();
    for suite in (0..150).map(any_suite) {
        let got = outcomes(&suite, 0);
        assert_eq!(got, literal(&suite), "{suite:?}");
        assert_eq!(got, case_states(&suite, 0).into_iter().map(|state| state.outcome).collect::<Vec<_>>());
        got.into_iter().flatten().for_each(|outcome| *seen.entry(outcome.words()).or_insert(0) += 1);
    }
    assert!(seen.len() == 4 + 1 && seen.values().all(|count| *count >= 5), "not every verdict was met: {seen:?}");
}

proptest! {
    /// So the power of a suite of hundreds takes no longer than that of two.
    #[test]
    fn cases_that_are_alike_are_as_good_as_one_that_counts_as_often(
        differences in proptest::collection::vec(-0.01..0.05, 0..=MAX_BLOCKS),
        centre in -0.01..0.02,
        others in 0..40_usize,
    ) {
        let with_mean = |series: Series| Series { mean: Some(Box::new(series.clone())), ..series };
        let first = with_mean(series(&differences));
        let other = with_mean(series(&spread(centre, 0.005, differences.len())));
        let mut suite = vec![first.clone()];
        suite.resize(others + 1, other.clone());
        let regresses = outcomes(&suite, 0)[0] == Some(Outcome::Regressed);
        prop_assert_eq!(regresses_among(&first, &other, others), regresses);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn more_blocks_change_no_verdict(seed in any::<u64>(), wild in -1.0f64..1.0) {
        let suite = any_suite(seed);
        let full = case_states(&suite, 0);
        let with = |series: &Series, differences: Vec<f64>| Series { differences, ..series.clone() };
        for blocks in 0..MAX_BLOCKS {
            let cut: Vec<Series> = suite.iter().map(|s| with(s, s.differences[..blocks].to_vec())).collect();
            for (early, late) in outcomes(&cut, 0).into_iter().zip(&full) {
                prop_assert_eq!(early, late.outcome.filter(|_| late.blocks <= blocks));
            }
        }
        prop_assert!(full.iter().all(|state| state.outcome.is_some()));
        // Settled cases are not measured any more; whatever would have come does not matter.
        let ended: Vec<Series> =
            suite.iter().zip(&full).map(|(s, at)| with(s, s.differences[..at.blocks].to_vec())).collect();
        prop_assert_eq!(&case_states(&ended, 0), &full);
        let longer: Vec<Series> =
            ended.iter().map(|s| with(s, [&s.differences[..], &[wild; 40][..]].concat())).collect();
        prop_assert_eq!(&case_states(&longer, 0), &full);
    }
}
