//! Suites of which each block times four placements of what changed: layout noise does not regress, and work does.

use infergate_core::stats::normal;
use infergate_judge::paired::{MAX_BLOCKS, Series, outcomes};
use infergate_receipts::Outcome;

use crate::gate_looks::series;

const SUITES: u64 = 400;
const CASES: usize = 5;

/// A case that takes longer by so much at each placement, in blocks that vary by `std`; their means vary by a little more.
fn case(slower: [f64; 4], std: f64, random: &mut fastrand::Rng) -> Series {
    // A block is the mean of four, of which each varies by twice as much.
    let mut at = |slower: f64| (0..MAX_BLOCKS).map(|block| (block, slower + 2.0 * std * normal(random))).collect();
    let placements: Vec<Vec<(usize, f64)>> = slower.into_iter().map(&mut at).collect();
    let of_block = |block: usize| placements.iter().map(|seen| seen[block].1).sum::<f64>() / 4.0;
    let differences: Vec<f64> = (0..MAX_BLOCKS).map(of_block).collect();
    let of_means: Vec<f64> = differences.iter().map(|d| d + std * normal(random)).collect();
    let mean = Series {
        limit: 1.05_f64.ln(),
        expected_std: Some(1.4 * std),
        placements: placements.clone(),
        ..series(&of_means)
    };
    Series { expected_std: Some(std), placements, mean: Some(Box::new(mean)), ..series(&differences) }
}

/// How each case of `SUITES` suites ends; `case` is given its place in its suite.
fn ends(seed: u64, mut case: impl FnMut(usize, &mut fastrand::Rng) -> Series) -> Vec<Vec<Option<Outcome>>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut suite = || outcomes(&(0..CASES).map(|at| case(at, &mut random)).collect::<Vec<_>>(), 0);
    (0..SUITES).map(|_| suite()).collect()
}

/// Suites with a case that ends so.
fn suites(ends: &[Vec<Option<Outcome>>], outcome: Outcome) -> usize {
    ends.iter().filter(|suite| suite.contains(&Some(outcome))).count()
}

#[test]
fn layout_noise_does_not_regress() {
    for (seed, percent, most) in [
        (1, [9.0, 9.0, 9.0, -27.0], 0),
        (2, [9.2, -15.5, -18.9, 2.0], 0),
        (3, [12.0, 12.0, 12.0, -4.0], 0),
        // One placement at which it is hardly faster, in blocks that vary by as much: as rare as the level of a suite.
        (4, [4.0, 4.0, 3.0, -1.0], 4),
    ] {
        let slower = percent.map(|percent| percent / 100.0);
        let ends = ends(seed, |at, random| case(if at == 0 { slower } else { [0.0; 4] }, 0.01, random));
        let [regressed, layout] = [Outcome::Regressed, Outcome::Layout].map(|outcome| suites(&ends, outcome));
        println!("{percent:?} %: {regressed} of {SUITES} suites regressed, {layout} layout");
        assert!(regressed <= most, "{percent:?}: {regressed}");
        // Its mean is 2.5 % and 8 %: it would regress, if work were slower.
        assert!(seed < 3 || layout >= 390, "{percent:?}: {layout}");
    }
}

/// As a sum that runs backwards: 32 % slower on average, and as fast as before at one placement.
#[test]
fn a_mean_beyond_layout_noise_regresses() {
    let ends = ends(5, |at, random| case(if at == 0 { [0.4, 0.4, 0.4, 0.0] } else { [0.0; 4] }, 0.01, random));
    assert_eq!(suites(&ends, Outcome::Regressed), SUITES as usize);
}

#[test]
fn work_regresses_at_whatever_placement() {
    for (seed, std) in [(11, 0.01), (12, 0.02)] {
        let ends = ends(seed, |at, random| {
            let work = if at == 0 { 0.03 } else { 0.0 };
            case([(); 4].map(|()| work + 0.003 * normal(random)), std, random)
        });
        let [regressed, layout] = [Outcome::Regressed, Outcome::Layout].map(|outcome| suites(&ends, outcome));
        println!("+3 %, blocks of {std}: {regressed} of {SUITES} suites regressed, {layout} layout");
        assert!(regressed >= if std > 0.01 { 372 } else { 380 }, "{std}: {regressed}");
    }
}

#[test]
fn unchanged_suites_regress_no_more_often_than_designed() {
    for (seed, std) in [(21, 0.01), (22, 0.02)] {
        let ends = ends(seed, |_, random| case([0.0; 4], std, random));
        let regressed = suites(&ends, Outcome::Regressed);
        let passed = ends.iter().filter(|suite| suite.iter().all(|end| end.is_some_and(|end| end.exit_code() == 0)));
        let passed = passed.count();
        println!("unchanged, blocks of {std}: {regressed} of {SUITES} suites regressed, {passed} passed");
        assert!(regressed <= 4 && passed >= 380, "{std}: {regressed} regressed and {passed} passed");
    }
}
