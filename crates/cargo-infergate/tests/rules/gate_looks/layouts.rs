//! How often the luck of a build's layout alone makes a suite fail, by how many layouts its blocks draw from.

use cargo_infergate::gate::paired::{MAX_BLOCKS, MOST_LAYOUTS, Series, layouts_wanted, outcomes};
use cargo_infergate::paired::layouts::draw;
use cargo_infergate::receipt::Outcome;
use infergate_core::stats::normal;

/// Of `suites` suites of `cases` unchanged cases, the share in which a case is called regressed, with `layouts` builds a side that
/// differ by `tau` from each other and blocks that vary by 1 % besides; the builds are drawn as a gate draws them.
fn falsely_called(suites: u64, layouts: usize, tau: f64, cases: usize, limit: f64) -> f64 {
    let mut random = fastrand::Rng::with_seed(2026);
    let called = (0..suites).filter(|suite| {
        let suite: Vec<Series> = (0..cases)
            .map(|_| {
                // tau is of a difference: each build has half its variance.
                let mut side = || (0..layouts).map(|_| tau / 2.0_f64.sqrt() * normal(&mut random)).collect::<Vec<_>>();
                let (base, head) = (side(), side());
                let block = |at| {
                    head[draw(suite * 2 + 1, at, layouts)] - base[draw(suite * 2, at, layouts)]
                        + 0.01 * normal(&mut random)
                };
                Series {
                    wider: Vec::new(),
                    limit: limit.ln(),
                    expected_std: Some(0.01),
                    differences: (0..MAX_BLOCKS).map(block).collect(),
                    mean: None,
                }
            })
            .collect();
        outcomes(&suite, 0).contains(&Some(Outcome::Regressed))
    });
    called.count() as f64 / suites as f64
}

/// The table of docs/GATE.md, of 1000 suites each:
/// `INFERGATE_SUITES=1000 cargo test -p cargo-infergate --test rules table_of_layouts -- --nocapture`.
#[test]
fn table_of_layouts() {
    let suites = std::env::var("INFERGATE_SUITES").map_or(20, |count| count.parse().expect("a number of suites"));
    let columns = [
        (0.005, 5, 1.02),
        (0.01, 5, 1.02),
        (0.01, 20, 1.02),
        (0.02, 5, 1.02),
        (0.02, 5, 1.05),
        (0.03, 5, 1.02),
        (0.03, 5, 1.05),
    ];
    let mut sums = Vec::new();
    for layouts in [1, 2, 3, 4, 8, 12, 16, 40] {
        let shares = columns.map(|(tau, cases, limit)| falsely_called(suites, layouts, tau, cases, limit));
        println!("| {layouts} |{}", shares.map(|share| format!(" {:.1} |", share * 100.0)).concat());
        sums.push(shares.iter().sum::<f64>());
    }
    assert!(sums[0] > sums[3] && sums[3] > sums[6], "more layouts are called falsely less often: {sums:?}");
}

#[test]
fn one_build_a_side_fails_for_its_layout_and_as_many_as_are_wanted_do_not() {
    let limit = 1.02_f64;
    let one = falsely_called(300, 1, 0.02, 5, limit);
    assert!((0.55..0.75).contains(&one), "{one}");
    for (tau, cases) in [(0.005, 5), (0.01, 5), (0.01, 20), (0.02, 5)] {
        let wanted = layouts_wanted([(limit.ln(), tau)]);
        let share = falsely_called(300, wanted, tau, cases, limit);
        assert!(share <= 0.03, "tau {tau}, {cases} cases, {wanted} layouts: {share}");
    }
}

#[test]
fn as_many_as_the_worst_case_wants_and_no_more_than_a_gate_has_blocks_for() {
    let limit = 1.02_f64.ln();
    // GPT-2's suite: one build is right.
    assert_eq!(layouts_wanted([(limit, 0.001), (limit, 0.005)]), 1);
    assert_eq!(layouts_wanted([(limit, 0.01), (limit, 0.001)]), 4);
    assert_eq!(layouts_wanted([(limit, 0.02)]), 13);
    assert_eq!(layouts_wanted([(1.05_f64.ln(), 0.02)]), 3);
    assert_eq!(layouts_wanted([(limit, 1.0)]), MOST_LAYOUTS);
    for nothing in [(limit, 0.0), (limit, f64::NAN), (0.0, 0.0), (limit, f64::INFINITY)] {
        assert_eq!(layouts_wanted([nothing]), 1);
    }
    assert_eq!(layouts_wanted([]), 1);
}

#[test]
fn each_layout_is_drawn_once_before_any_is_drawn_again_and_by_seed_and_block_alone() {
    for count in [1, 2, 5, 16] {
        let drawn: Vec<usize> = (0..3 * count).map(|block| draw(7, block, count)).collect();
        for round in drawn.chunks(count) {
            let mut once = round.to_vec();
            once.sort_unstable();
            assert_eq!(once, (0..count).collect::<Vec<_>>());
        }
        // Asked in any order.
        assert!((0..3 * count).rev().all(|block| draw(7, block, count) == drawn[block]));
    }
    let rounds: Vec<Vec<usize>> =
        (0..8).map(|round| (0..16).map(|at| draw(7, 16 * round + at, 16)).collect()).collect();
    assert!(
        rounds.iter().enumerate().all(|(at, round)| !rounds[..at].contains(round)),
        "each round has an order of its own"
    );
    assert_ne!(rounds[0], (0..16).map(|at| draw(8, at, 16)).collect::<Vec<_>>());
    // Who meets whom is even in the long run.
    let mut met = [[0; 4]; 4];
    (0..4_000).for_each(|block| met[draw(1, block, 4)][draw(2, block, 4)] += 1);
    assert!(met.iter().flatten().all(|count| (200..300).contains(count)), "{met:?}");
}
