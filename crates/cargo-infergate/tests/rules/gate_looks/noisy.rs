//! Blocks that vary by too much for the limit: what passes since a slowdown by `widest` is excluded.

use cargo_infergate::gate::paired::{MAX_BLOCKS, Series, outcomes};
use cargo_infergate::receipt::Outcome;
use infergate_core::stats::normal;

use crate::gate_looks::series;

/// What an engine's case of which a slowdown by 5 % is excluded is judged by.
fn case(slower: f64, std: f64, random: &mut fastrand::Rng) -> Series {
    let differences: Vec<f64> = (0..MAX_BLOCKS).map(|_| slower + std * normal(random)).collect();
    Series { widest: 1.05_f64.ln(), expected_std: Some(std), ..series(&differences) }
}

#[test]
fn table() {
    for limit in [1.02_f64.ln(), 1.03_f64.ln()] {
        for std in [0.01, 0.02, 0.03, 0.04, 0.06] {
            for slower in [0.0, 0.01, 0.02, 0.03, 0.04, 0.05] {
                let mut random = fastrand::Rng::with_seed(1);
                let runs = 300;
                let found: Vec<Option<Outcome>> = (0..runs)
                    .map(|_| outcomes(&[Series { limit, ..case((1.0_f64 + slower).ln(), std, &mut random) }], 4)[0])
                    .collect();
                let n = |outcome| {
                    found.iter().filter(|found| **found == Some(outcome)).count() as f64 * 100.0 / runs as f64
                };
                println!(
                    "limit {:.0} std {std} slower {slower}: regressed {:.1} pass {:.1} inconclusive {:.1} unstable {:.1}",
                    limit.exp_m1() * 100.,
                    n(Outcome::Regressed),
                    n(Outcome::WithinLimit) + n(Outcome::Improved),
                    n(Outcome::Inconclusive),
                    n(Outcome::Unstable)
                );
            }
        }
    }
}
