//! Blocks that vary by too much for the limit: what passes since a slowdown by `widest` is excluded.

use infergate_core::stats::normal;
use infergate_judge::paired::{MAX_BLOCKS, Series, case_states, outcomes};
use infergate_receipts::Outcome;

use crate::gate_looks::{limit, series};

/// A case of an engine, which passes at 2 % or else where 5 % are excluded; head takes `slower` times as long.
fn case(slower: f64, std: f64, random: &mut fastrand::Rng) -> Series {
    let differences: Vec<f64> = (0..MAX_BLOCKS).map(|_| slower.ln() + std * normal(random)).collect();
    Series { widest: 1.05_f64.ln(), expected_std: Some(std), ..series(&differences) }
}

/// How often such a case in a suite of five passes, and how often it regresses, as shares of `runs`.
fn passed_and_regressed(slower: f64, std: f64, runs: u64) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(31);
    let ends: Vec<Outcome> =
        (0..runs).map(|_| outcomes(&[case(slower, std, &mut random)], 4)[0].expect("its blocks ended")).collect();
    let share = |is: fn(&Outcome) -> bool| ends.iter().filter(|end| is(end)).count() as f64 / runs as f64;
    let (passed, regressed) = (share(|end| end.exit_code() == 0), share(|end| *end == Outcome::Regressed));
    println!("{slower} in blocks of {std}: passed {passed}, regressed {regressed}, the rest inconclusive");
    (passed, regressed)
}

#[test]
fn noise_alone_seldom_leaves_a_case_inconclusive() {
    let (passed, regressed) = passed_and_regressed(1.0, 0.04, 400);
    assert!(passed >= 0.95 && regressed <= 0.01, "{passed} {regressed}");
}

#[test]
fn a_slowdown_beyond_the_limit_seldom_passes_for_noise() {
    let (passed, _) = passed_and_regressed(1.04, 0.04, 400);
    assert!(passed <= 0.05, "{passed}");
    let (passed, regressed) = passed_and_regressed(1.04, 0.01, 1000);
    assert!(passed <= 0.001 && regressed >= 0.99, "{passed} {regressed}");
}

#[test]
fn time_that_ends_early_passes_what_excludes_the_wider_limit_and_leaves_the_rest_open() {
    let mut random = fastrand::Rng::with_seed(32);
    let (mut passed, mut open) = (0, 0);
    for blocks in (6..30).cycle().take(300) {
        let mut series = case(1.01, 0.03, &mut random);
        series.differences.truncate(blocks);
        let before = case_states(&[series.clone()], 4).swap_remove(0);
        let last = case_states(&[Series { is_last: true, ..series.clone() }], 4).swap_remove(0);
        if before.outcome.is_some() {
            assert_eq!(last, before, "what was decided stays so");
            continue;
        }
        let excludes = before.log_interval.is_some_and(|(_, high)| high < series.widest);
        let passes = excludes && before.log_ratio.is_some_and(|estimate| estimate < limit());
        // What is below its limit waited for an improvement.
        let decides =
            if before.log_interval.is_some_and(|(_, high)| high <= limit()) { limit() } else { series.widest };
        let expected = passes.then_some((Outcome::WithinLimit, decides));
        assert_eq!(last.outcome.map(|outcome| (outcome, last.limit)), expected, "{before:?}");
        *(if passes { &mut passed } else { &mut open }) += 1;
    }
    assert!(passed >= 20 && open >= 20, "{passed} passed and {open} stayed open");
}
