//! Servers that run already: how often one of each side, and several in turn, are reported as slower. Fixed seeds.

use infergate_core::stats::normal;
use infergate_judge::paired::{MAX_BLOCKS, Series, settled};
use infergate_judge::servers::{LEAST_SERVERS, check_server_pairs};
use infergate_receipts::{Against, Evidence, Metric, Outcome, TimeEvidence, VerdictRow};

use crate::gate::support::case;

/// TTFT and ITL of one scenario.
const CASES: usize = 2;

/// Servers whose times differ by luck, each case by its own.
#[derive(Clone, Copy)]
struct World {
    servers: usize,
    /// Standard deviation of a server's luck, natural log.
    luck_std: f64,
    /// ln(head / base).
    slower: f64,
}

impl World {
    /// Every block that a run could take, each of which varies by 1 %.
    fn suite(&self, seed: u64) -> Vec<Series> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut draw = |std: f64| std * normal(&mut random);
        let mut series = || {
            let luck: Vec<f64> = (0..self.servers).map(|_| draw(self.luck_std) - draw(self.luck_std)).collect();
            let blocks = (0..MAX_BLOCKS).map(|at| self.slower + luck[at % self.servers] + draw(0.01));
            Series {
                limit: 1.02_f64.ln(),
                expected_std: Some(0.01),
                differences: blocks.collect(),
                ..Series::default()
            }
        };
        (0..CASES).map(|_| series()).collect()
    }

    /// The shares of gates that call any case slower: by blocks alone, and by servers.
    fn called(&self, gates: u64) -> (f64, f64) {
        let (mut by_blocks, mut by_servers) = (0, 0);
        for suite in (0..gates).map(|seed| self.suite(seed)) {
            let rows = suite.iter().zip(settled(&suite)).filter_map(|(series, at)| Some((series, row_of(at?))));
            let weighed: Vec<(Outcome, Outcome)> = rows
                .map(|(series, row)| (row.outcome, check_server_pairs(Some(self.servers), series, CASES, row).outcome))
                .collect();
            by_blocks += u64::from(weighed.iter().any(|(was, _)| *was == Outcome::Regressed));
            by_servers += u64::from(weighed.iter().any(|(_, is)| *is == Outcome::Regressed));
        }
        (by_blocks as f64 / gates as f64, by_servers as f64 / gates as f64)
    }
}

/// What blocks settle.
fn row_of((outcome, blocks): (Outcome, usize)) -> VerdictRow {
    let time = TimeEvidence { blocks: Some(blocks), ..TimeEvidence::new(Metric::Itl, Against::Base) };
    VerdictRow::new(case("decode/p8"), outcome, Evidence::Time(time))
}

#[test]
fn luck_of_servers_is_not_called_a_regression() {
    for luck_std in [0.01, 0.025, 0.04] {
        for servers in [1, 2, 4, 8] {
            let world = World { servers, luck_std, slower: 0.0 };
            let (was, is) = world.called(1000);
            println!("unchanged, luck of {luck_std}, {servers} of each side: by blocks {was:.3}, by servers {is:.3}");
            assert!(is <= 0.02, "{is}");
        }
    }
}

#[test]
fn a_real_slowdown_is_called_from_so_many_servers_on() {
    for (luck_std, slower) in [(0.01, 0.05), (0.01, 0.10), (0.025, 0.10)] {
        for servers in [LEAST_SERVERS, 8] {
            let (_, rate) = World { servers, luck_std, slower }.called(500);
            println!("{slower} slower, luck of {luck_std}, {servers} of each side: called {rate:.3}");
            if servers >= 8 && luck_std < 0.02 {
                assert!(rate >= 0.95, "{rate}");
            }
        }
    }
}
