//! Suites drawn from measured blocks, and this gate's own rule over them.

use cargo_infergate::gate::paired::{MAX_BLOCKS, Series, block_difference, block_mean_difference, settled};
use cargo_infergate::receipt::{BlockCase, MeanTest, Outcome, Share};

use crate::{OUTER, SEED, SUITES, SUITES_WITHIN, with_interval};

/// Suites replayed to learn how many blocks this gate takes.
const REPLAYED: usize = 400;

/// What this gate goes by: the ratio from which on it calls a slowdown, the noise it expects, and the same of the means.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub ratio: f64,
    pub std: Option<f64>,
    pub mean: MeanTest,
}

/// Rows of blocks that a paired rule's suites are drawn from.
pub struct Blocks {
    pub rows: Vec<Vec<BlockCase>>,
    /// d of each row, by case, and the ln ratio of its means.
    differences: Vec<Vec<(f64, f64)>>,
    /// By gate: its rows.
    gates: Vec<Vec<usize>>,
    /// By case: what this gate calls a slowdown.
    pub limits: Vec<Limit>,
    /// Cases of the suite; those beyond `limits` are unchanged and quiet.
    tests: usize,
    /// By replayed suite, then case: blocks this gate took.
    pub taken: Vec<Vec<usize>>,
}

impl Blocks {
    /// `None` for times that are no times.
    pub fn new(gates: &[Vec<Vec<BlockCase>>], limits: &[Limit], tests: usize) -> Option<Self> {
        let rows: Vec<Vec<BlockCase>> = gates.iter().flatten().cloned().collect();
        let differences =
            rows.iter().map(|row| row.iter().map(both).collect()).collect::<Option<Vec<Vec<(f64, f64)>>>>()?;
        let mut at = 0..rows.len();
        let gates: Vec<Vec<usize>> = gates.iter().map(|gate| at.by_ref().take(gate.len()).collect()).collect();
        let mut blocks = Self { rows, differences, gates, limits: limits.to_vec(), tests, taken: Vec::new() };
        let (all, mut random) = ((0..blocks.rows.len()).collect::<Vec<usize>>(), fastrand::Rng::with_seed(SEED));
        let mut took = || {
            let ended = blocks.replay(&all, &mut random);
            ended.iter().map(|case| case.map_or(MAX_BLOCKS, |(_, blocks)| blocks)).collect()
        };
        let taken = (0..REPLAYED).map(|_| took()).collect();
        blocks.taken = taken;
        Some(blocks)
    }

    /// One case alone, each time of head stretched.
    pub fn slowed(gates: &[Vec<Vec<BlockCase>>], case: usize, limits: &[Limit], slowdown: f64) -> Option<Self> {
        let stretched = |row: &Vec<BlockCase>| {
            let mut block = row[case].clone();
            block.head_ns.iter_mut().for_each(|ns| *ns = (*ns as f64 * (1.0 + slowdown)).round() as u64);
            vec![block]
        };
        let gates: Vec<Vec<Vec<BlockCase>>> = gates.iter().map(|gate| gate.iter().map(stretched).collect()).collect();
        Self::new(&gates, &limits[case..=case], limits.len())
    }

    /// How this gate ends a suite drawn from `rows`.
    fn replay(&self, rows: &[usize], random: &mut fastrand::Rng) -> Vec<Option<(Outcome, usize)>> {
        let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
        let series = |limit: f64, expected_std, differences| Series {
            wider: Vec::new(),
            limit: limit.ln(),
            expected_std,
            differences,
            mean: None,
        };
        let of_case = |(at, limit): (usize, &Limit)| {
            let of =
                |number: fn(&(f64, f64)) -> f64| drawn.iter().map(|&row| number(&self.differences[row][at])).collect();
            let means = series(limit.mean.threshold, limit.mean.expected_std, of(|both| both.1));
            Series { mean: Some(Box::new(means)), ..series(limit.ratio, limit.std, of(|both| both.0)) }
        };
        let mut suite: Vec<Series> = self.limits.iter().enumerate().map(of_case).collect();
        let zeros = || series(self.limits[0].ratio, None, vec![0.0; MAX_BLOCKS]);
        suite.resize(self.tests, Series { mean: Some(Box::new(zeros())), ..zeros() });
        settled(&suite).into_iter().take(self.limits.len()).collect()
    }

    /// What `share_of` finds in suites drawn from some rows; the interval redraws whole gates.
    pub fn share(&self, mut share_of: impl FnMut(&[usize], usize) -> f64) -> Option<Share> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let found = share_of(&all, SUITES);
        let mut random = fastrand::Rng::with_seed(SEED + 2);
        let mut redrawn = || -> Vec<usize> {
            self.gates.iter().flat_map(|_| self.gates[random.usize(..self.gates.len())].clone()).collect()
        };
        let outer: Vec<f64> = (0..OUTER).map(|_| share_of(&redrawn(), SUITES_WITHIN)).collect();
        with_interval(found, &outer, self.gates.len())
    }
}

fn both(block: &BlockCase) -> Option<(f64, f64)> {
    Some((block_difference(block)?, block_mean_difference(block)?))
}

/// The share of drawn suites in which this gate calls any of the blocks' cases.
pub fn this_gate_share(blocks: &Blocks) -> Option<Share> {
    let mut random = fastrand::Rng::with_seed(SEED + 3);
    blocks.share(|rows, suites| {
        let called = (0..suites).filter(|_| {
            blocks.replay(rows, &mut random).iter().flatten().any(|(outcome, _)| *outcome == Outcome::Regressed)
        });
        called.count() as f64 / suites as f64
    })
}
