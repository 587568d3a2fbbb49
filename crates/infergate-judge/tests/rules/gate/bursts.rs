//! Requests that fail in bursts: how often the same server regresses, by simulation with fixed seeds.
//!
//! `cargo test -p infergate-judge --test rules gate::bursts -- --nocapture` prints it (docs/evidence/load-client.md).

use infergate_core::stats::{batches, clopper_pearson, is_more_frequent, normal};
use infergate_judge::ALPHA;

/// Runs of each world.
const RUNS: usize = 2_000;
/// Requests of a run.
const REQUESTS: usize = 400;

/// A server that fails.
#[derive(Debug, Clone, Copy)]
struct World {
    /// The share of requests that fail, in the mean.
    share: f64,
    /// Requests that fail one after the other, in the mean; 1: each by itself.
    burst: f64,
    /// How much days differ: standard deviation of the share's logarithm.
    days_std: f64,
    /// Days with a session.
    days: usize,
}

/// The level of one of the two counts of one load.
fn level() -> f64 {
    ALPHA / 2.0
}

/// Which requests of a run fail: a chain of two states, from its stationary state on.
fn run(share: f64, burst: f64, random: &mut fastrand::Rng) -> Vec<bool> {
    let calm = burst * (1.0 - share) / share;
    let mut hits = Vec::with_capacity(REQUESTS);
    let mut fails = random.f64() < share;
    while hits.len() < REQUESTS {
        let mean = if fails { burst } else { calm.max(1.0) };
        // Geometric, from 1 on.
        let length = if mean > 1.0 { 1.0 + ((1.0 - random.f64()).ln() / (1.0 - 1.0 / mean).ln()).floor() } else { 1.0 };
        let length = (length as usize).min(REQUESTS - hits.len());
        hits.extend(std::iter::repeat_n(fails, length));
        fails = !fails;
    }
    hits
}

impl World {
    fn day(self, random: &mut fastrand::Rng) -> Vec<bool> {
        let factor = (self.days_std * normal(random) - self.days_std.powi(2) / 2.0).exp();
        run((self.share * factor).min(0.5), self.burst, random)
    }

    /// Of as many runs of `head` as had sessions with failures before, how many regress: by the rule, and by one that takes requests
    /// as independent.
    fn regressed(self, head: Self) -> [f64; 2] {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut regressed, mut asked) = ([0, 0], 0);
        while asked < RUNS {
            let sessions: Vec<(u64, u64)> = (0..self.days).map(|_| total(&self.day(&mut random))).collect();
            let hits = head.day(&mut random);
            let most = sessions.iter().map(|(failed, _)| *failed).max().unwrap_or(0);
            // A first failure regresses by another rule.
            asked += usize::from(most > 0);
            if most == 0 || total(&hits).0 <= most {
                continue;
            }
            regressed[0] += usize::from(is_more_frequent(&batches(&hits), &sessions, level()));
            regressed[1] += usize::from(as_if_independent(total(&hits), &sessions));
        }
        regressed.map(|regressed| regressed as f64 / asked as f64)
    }
}

fn total(hits: &[bool]) -> (u64, u64) {
    (hits.iter().filter(|hit| **hit).count() as u64, hits.len() as u64)
}

/// What the gate did before.
fn as_if_independent(head: (u64, u64), sessions: &[(u64, u64)]) -> bool {
    let all = sessions.iter().fold((0, 0), |sum, session| (sum.0 + session.0, sum.1 + session.1));
    let ends = |(hits, trials)| clopper_pearson(hits, trials, 1.0 - 2.0 * level()).expect("an interval");
    ends(head).0 > ends(all).1
}

/// The share of runs that a chance of `level` is above in one of a thousand simulations.
fn most(level: f64, runs: usize) -> f64 {
    let runs = runs as f64;
    level + 3.1 * (level * (1.0 - level) / runs).sqrt() + 1.0 / runs
}

#[test]
fn the_same_server_fails_as_seldom_as_stated_however_long_its_bursts_are() {
    let mut worst = [0.0_f64; 2];
    for burst in [1.0, 5.0, 20.0, 100.0, 200.0] {
        for days_std in [0.0, 0.5] {
            for days in [3, 8, 30] {
                let world = World { share: 0.04, burst, days_std, days };
                let regressed = world.regressed(world);
                println!("{world:?}: regressed {:.4}, as if independent {:.4}", regressed[0], regressed[1]);
                assert!(regressed[0] <= most(level(), RUNS), "{world:?}: {regressed:?}");
                worst = [worst[0].max(regressed[0]), worst[1].max(regressed[1])];
            }
        }
    }
    println!("at most: regressed {:.4}, as if independent {:.4}", worst[0], worst[1]);
    assert!(worst[1] > 0.02, "the simulation would not show a rule that is wrong: {worst:?}");
}

#[test]
fn a_server_that_fails_far_more_often_all_the_time_regresses() {
    for (burst, more, least) in [(1.0, 6.0, 0.95), (5.0, 20.0, 0.90)] {
        let world = World { share: 0.02, burst, days_std: 0.0, days: 8 };
        let [regressed, _] = world.regressed(World { share: more * world.share, ..world });
        println!("{world:?}, {more} times as often: regressed {regressed:.4}");
        assert!(regressed >= least, "{world:?}: {regressed}");
    }
}

/// One burst is one event.
#[test]
fn what_fails_in_one_stretch_alone_is_not_shown_to_be_more() {
    let sessions = [(1, 400); 20];
    for (from, to, expected) in [(0, 40, false), (100, 200, false), (0, 400, true)] {
        let hits: Vec<bool> = (0..400).map(|request| (from..to).contains(&request)).collect();
        assert_eq!(is_more_frequent(&batches(&hits), &sessions, level()), expected, "{from} to {to}");
    }
    let each_tenth: Vec<bool> = (0..400).map(|request| request % 10 == 0).collect();
    assert!(is_more_frequent(&batches(&each_tenth), &sessions, level()));
    // Nothing is known of how runs differ, or stretches of one.
    assert!(!is_more_frequent(&batches(&each_tenth), &sessions[..1], level()));
    assert!(batches(&each_tenth[..19]).is_empty() && !is_more_frequent(&[], &sessions, level()));
    assert!(!is_more_frequent(&[(0, 0); 10], &[(0, 0); 10], level()));
}

/// Two servers side by side, asked anew after each block.
#[test]
fn looks_after_each_block_keep_to_the_level() {
    const GATES: usize = 500;
    for burst in [1.0, 20.0, 100.0] {
        let mut random = fastrand::Rng::with_seed(12);
        let mut regressed = 0;
        for _ in 0..GATES {
            let mut sides = [Vec::new(), Vec::new()];
            let block = |sides: &mut [Vec<(u64, u64)>; 2], random: &mut fastrand::Rng| {
                sides.iter_mut().for_each(|side| side.push(total(&run(0.04, burst, random))));
                let failed = |side: &[(u64, u64)]| side.iter().map(|(failed, _)| *failed).sum::<u64>();
                // Nothing is to be asked where head has no more, and another rule judges the first failure.
                failed(&sides[0]) > 0
                    && failed(&sides[1]) > failed(&sides[0])
                    && is_more_frequent(&sides[1], &sides[0], level())
            };
            regressed += usize::from((0..14).any(|_| block(&mut sides, &mut random)));
        }
        println!("bursts of {burst}, up to 14 blocks: regressed {regressed} of {GATES}");
        assert!(regressed as f64 / GATES as f64 <= most(level(), GATES), "{burst}: {regressed}");
    }
}
