//! Suites of which each block times four placements of what changed: luck of a placement is not called slower, and work is.

use cargo_infergate::gate::paired::{MAX_BLOCKS, Series, outcomes};
use cargo_infergate::receipt::Outcome;
use infergate_core::stats::normal;

use crate::gate_looks::series;

const CASES: usize = 5;

/// A case that takes longer by so much at each placement, in blocks that vary by `std`.
fn case(slower: [f64; 4], std: f64, random: &mut fastrand::Rng) -> Series {
    // A block is the mean of four, of which each varies by twice as much.
    let mut at = |slower: f64| (0..MAX_BLOCKS).map(|block| (block, slower + 2.0 * std * normal(random))).collect();
    let placements: Vec<Vec<(usize, f64)>> = slower.into_iter().map(&mut at).collect();
    let of_block = |block: usize| placements.iter().map(|seen| seen[block].1).sum::<f64>() / 4.0;
    let differences: Vec<f64> = (0..MAX_BLOCKS).map(of_block).collect();
    Series { expected_std: Some(std), placements, ..series(&differences) }
}

/// How many of `suites` suites of five end so: each outcome of a case with how often it came, and in how many suites a case regressed.
fn ends(
    suites: u64,
    seed: u64,
    mut case: impl FnMut(usize, &mut fastrand::Rng) -> Series,
) -> (Vec<Option<Outcome>>, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut firsts, mut regressed) = (Vec::new(), 0);
    for _ in 0..suites {
        let suite: Vec<Series> = (0..CASES).map(|at| case(at, &mut random)).collect();
        let found = outcomes(&suite, 0);
        regressed += u64::from(found.contains(&Some(Outcome::Regressed)));
        firsts.push(found[0]);
    }
    (firsts, regressed)
}

fn count(found: &[Option<Outcome>], outcome: Outcome) -> usize {
    found.iter().filter(|found| **found == Some(outcome)).count()
}

#[test]
fn luck_of_a_placement_is_never_called_slower() {
    for (seed, percent) in (1..).zip([[9.0, 9.0, 9.0, -27.0], [9.2, -15.5, -18.9, 2.0], [4.0, 4.0, 3.0, -1.0]]) {
        let slower = percent.map(|percent| percent / 100.0);
        let (firsts, regressed) = ends(400, seed, |_, random| case(slower, 0.01, random));
        println!(
            "{percent:?} %: suites with a case called slower {regressed}, layout {}, within the limit {}, improved {}, open {} of 400",
            count(&firsts, Outcome::Layout),
            count(&firsts, Outcome::WithinLimit),
            count(&firsts, Outcome::Improved),
            count(&firsts, Outcome::Inconclusive) + count(&firsts, Outcome::Unstable),
        );
    }
}

#[test]
fn work_is_called_slower() {
    for (seed, percent) in (11..).zip([3.0, 4.0]) {
        let (firsts, _) = ends(400, seed, |at, random| {
            let luck = [(); 4].map(|()| 0.003 * normal(random));
            case(luck.map(|luck| luck + if at == 0 { percent / 100.0 } else { 0.0 }), 0.01, random)
        });
        println!(
            "+{percent} %: called {} layout {} inc {} of 400",
            count(&firsts, Outcome::Regressed),
            count(&firsts, Outcome::Layout),
            count(&firsts, Outcome::Inconclusive)
        );
    }
}

#[test]
fn unchanged_suites_are_called_slower_no_more_often_than_designed() {
    for (seed, std) in [(21, 0.01), (22, 0.02)] {
        let (firsts, regressed) = ends(400, seed, |_, random| case([0.0; 4], std, random));
        println!(
            "unchanged, blocks of {std}: {regressed} of 400 suites called, {} pass",
            count(&firsts, Outcome::WithinLimit)
        );
    }
}
