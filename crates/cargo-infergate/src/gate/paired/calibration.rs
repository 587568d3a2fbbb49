//! What a calibration says of the gate: three numbers on false alarms, never mixed, and what it finds.

use serde::Serialize;

use super::looks::{FAIL_LOOKS, MAX_BLOCKS, Series, outcomes};
use super::verdict::{block_difference, series};
use crate::receipt::{BlockRecord, Calibration, Outcome};
use crate::stats::{clopper_pearson, median, quantile, sample_std};
use infergate::case::Case;

/// Suites resampled in all, and within each outer resample of the blocks.
const SUITES: usize = 10_000;
const OUTER: usize = 200;
const SUITES_WITHIN: usize = 500;

/// Fewer rows say nothing about a suite of up to [`MAX_BLOCKS`].
const LEAST_ROWS: usize = 12;

/// The same rows give the same numbers.
const SEED: u64 = 1;

/// How often something happened, with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Share, 0 to 1.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Live gates of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiveGates {
    /// Whole gates.
    pub gates: u64,
    /// Those that called any case regressed.
    pub regressed: u64,
    /// Those that passed (exit 0).
    pub passed: u64,
    /// Clopper-Pearson interval of the share regressed; `None` without gates.
    pub regressed_share: Option<Share>,
    /// Clopper-Pearson interval of the share passed; `None` without gates.
    pub passed_share: Option<Share>,
    /// Median of the blocks a gate took.
    pub blocks: Option<f64>,
}

/// Suites drawn from the live blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Resampled {
    /// Live blocks that measured the whole suite.
    pub rows: usize,
    /// Suites drawn.
    pub suites: usize,
    /// Share that called any case regressed; its interval is the outer bootstrap's.
    pub regressed: Share,
    /// Share that passed.
    pub passed: Share,
}

/// What is found of a slowdown of one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Found {
    /// The case slowed.
    pub case: Case,
    /// By this fraction.
    pub slowdown: f64,
    /// Live blocks with it.
    pub rows: usize,
    /// Share of resampled gates that called it, every other case of the suite unchanged. `None` below 12 rows.
    pub called: Option<Share>,
    /// What was measured: the median of the blocks' ratios, less one. `None` without blocks.
    pub measured: Option<f64>,
}

/// Noise of one case's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// The case.
    pub case: Case,
    /// Blocks.
    pub blocks: usize,
    /// Sample standard deviation of a block's median ln ratio. `None` below two blocks.
    pub std: Option<f64>,
}

/// How often the gate is wrong: three numbers, never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FalseAlarms {
    /// The level by design, over the whole suite.
    pub design_level: f64,
    /// Gates of a file against itself.
    pub same_file: LiveGates,
    /// Gates between two builds of the same thing.
    pub separate_builds: LiveGates,
    /// `None` below 12 rows.
    pub resampled: Option<Resampled>,
}

/// Everything a calibration says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How often the gate is wrong.
    #[serde(flatten)]
    pub false_alarms: FalseAlarms,
    /// By slowdown, then case.
    pub found: Vec<Found>,
    /// By case.
    pub noise: Vec<Noise>,
}

/// The level of all fail looks together, over the whole suite: 0.01.
pub fn design_level() -> f64 {
    FAIL_LOOKS.iter().map(|look| look.level).sum()
}

/// Reads a whole calibration. Deterministic: resampling is seeded.
pub fn summarise(calibration: &Calibration) -> Summary {
    let mut slowdowns: Vec<f64> = Vec::new();
    for slowed in calibration.power.iter().flat_map(|block| &block.cases).flat_map(|case| &case.slowed) {
        if !slowdowns.contains(&slowed.slowdown) {
            slowdowns.push(slowed.slowdown);
        }
    }
    slowdowns.sort_by(f64::total_cmp);
    let timed = timed(calibration);
    let found = slowdowns.iter().flat_map(|&slowdown| timed.iter().map(move |&case| (slowdown, case)));
    Summary {
        false_alarms: false_alarms(calibration),
        found: found.map(|(slowdown, case)| find(calibration, slowdown, case, timed.len())).collect(),
        noise: block_noise(calibration),
    }
}

/// How often the gate was and would be wrong.
pub fn false_alarms(calibration: &Calibration) -> FalseAlarms {
    FalseAlarms {
        design_level: design_level(),
        same_file: live(calibration, false),
        separate_builds: live(calibration, true),
        resampled: resampled(calibration),
    }
}

/// The noise of each timed case's blocks.
pub fn block_noise(calibration: &Calibration) -> Vec<Noise> {
    timed(calibration).into_iter().map(|case| noise(calibration, case)).collect()
}

fn timed(calibration: &Calibration) -> Vec<Case> {
    calibration.cases.iter().filter(|case| case.timed).map(|case| case.id).collect()
}

fn live(calibration: &Calibration, separate_builds: bool) -> LiveGates {
    let of_kind = calibration.gates.iter().filter(|gate| gate.separate_builds == separate_builds);
    let gates: Vec<(Vec<Option<Outcome>>, usize)> = of_kind
        .map(|gate| {
            let suite: Vec<Series> = series(&calibration.cases, &gate.blocks).into_iter().map(|(_, s)| s).collect();
            (outcomes(&suite), gate.blocks.len())
        })
        .collect();
    let count = |what: &dyn Fn(&[Option<Outcome>]) -> bool| gates.iter().filter(|(gate, _)| what(gate)).count() as u64;
    let (all, regressed, passed) = (gates.len() as u64, count(&any_regressed), count(&all_pass));
    let interval = |hits: u64| {
        let (low, high) = clopper_pearson(hits, all, 0.95)?;
        Some(Share { share: hits as f64 / all as f64, low, high })
    };
    LiveGates {
        gates: all,
        regressed,
        passed,
        regressed_share: interval(regressed),
        passed_share: interval(passed),
        blocks: median(&gates.iter().map(|(_, blocks)| *blocks as f64).collect::<Vec<_>>()),
    }
}

fn any_regressed(gate: &[Option<Outcome>]) -> bool {
    gate.contains(&Some(Outcome::Regressed))
}

fn all_pass(gate: &[Option<Outcome>]) -> bool {
    gate.iter().all(|outcome| outcome.is_some_and(|outcome| outcome.exit_code() == 0))
}

/// The live blocks of one kind of gate in which every case was measured, as d by case: whole rows, so that cases stay
/// correlated.
fn rows(calibration: &Calibration, separate_builds: bool) -> Vec<Vec<f64>> {
    let timed = timed(calibration);
    let row = |block: &BlockRecord| -> Option<Vec<f64>> {
        let of = |id: &Case| block.cases.iter().find(|case| case.id == *id).and_then(block_difference);
        timed.iter().map(of).collect()
    };
    let gates = calibration.gates.iter().filter(|gate| gate.separate_builds == separate_builds);
    gates.flat_map(|gate| &gate.blocks).filter_map(row).collect()
}

/// A suite is drawn from the rows of one kind, in proportion to their numbers: what separates two builds holds for a whole
/// gate, and rows of both kinds together would water it down.
fn resampled(calibration: &Calibration) -> Option<Resampled> {
    let kinds = [rows(calibration, false), rows(calibration, true)];
    let all = kinds[0].len() + kinds[1].len();
    if all < LEAST_ROWS {
        return None;
    }
    let limits: Vec<f64> = calibration.cases.iter().filter(|case| case.timed).map(|case| case.threshold.ln()).collect();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut shares = |kinds: &[Vec<&Vec<f64>>; 2], suites: usize| -> (f64, f64) {
        let (mut regressed, mut passed) = (0, 0);
        for _ in 0..suites {
            let rows = &kinds[usize::from(random.usize(..all) >= kinds[0].len())];
            let drawn: Vec<&Vec<f64>> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
            let of_case = |(at, &limit): (usize, &f64)| {
                let differences = drawn.iter().map(|row| row[at]).collect();
                Series { limit, differences }
            };
            let suite = outcomes(&limits.iter().enumerate().map(of_case).collect::<Vec<_>>());
            regressed += usize::from(any_regressed(&suite));
            passed += usize::from(all_pass(&suite));
        }
        (regressed as f64 / suites as f64, passed as f64 / suites as f64)
    };
    let (regressed, passed) = shares(&[kinds[0].iter().collect(), kinds[1].iter().collect()], SUITES);
    let mut outer_random = fastrand::Rng::with_seed(SEED + 1);
    let mut redrawn =
        |rows: &'_ [Vec<f64>]| -> Vec<usize> { rows.iter().map(|_| outer_random.usize(..rows.len())).collect() };
    let mut outer = Vec::with_capacity(OUTER);
    for _ in 0..OUTER {
        let places = [redrawn(&kinds[0]), redrawn(&kinds[1])];
        let pool = |kind: usize| places[kind].iter().map(|&at| &kinds[kind][at]).collect();
        outer.push(shares(&[pool(0), pool(1)], SUITES_WITHIN));
    }
    let regressed = interval(regressed, outer.iter().map(|(regressed, _)| *regressed))?;
    let passed = interval(passed, outer.iter().map(|(_, passed)| *passed))?;
    Some(Resampled { rows: all, suites: SUITES, regressed, passed })
}

fn interval(share: f64, outer: impl Iterator<Item = f64>) -> Option<Share> {
    let outer: Vec<f64> = outer.collect();
    Some(Share { share, low: quantile(&outer, 0.025)?, high: quantile(&outer, 0.975)? })
}

fn find(calibration: &Calibration, slowdown: f64, case: Case, tests: usize) -> Found {
    let limit = calibration.cases.iter().find(|known| known.id == case).map_or(f64::NAN, |known| known.threshold.ln());
    let blocks = calibration.power.iter().flat_map(|block| &block.cases).filter(|block| block.id == case);
    let rows: Vec<f64> = blocks.filter_map(|block| median(&block.log_ratios(slowdown)?)).collect();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut share = |rows: &[f64], suites: usize| {
        let called = (0..suites).filter(|_| {
            let differences = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
            let mut suite = vec![Series { limit, differences }];
            suite.resize(tests.max(1), Series { limit, differences: vec![0.0; MAX_BLOCKS] });
            outcomes(&suite)[0] == Some(Outcome::Regressed)
        });
        called.count() as f64 / suites as f64
    };
    let called = (rows.len() >= LEAST_ROWS).then(|| {
        let all = share(&rows, SUITES / 5);
        let mut outer_random = fastrand::Rng::with_seed(SEED + 1);
        let outer: Vec<f64> = (0..OUTER)
            .map(|_| {
                let pool: Vec<f64> = (0..rows.len()).map(|_| rows[outer_random.usize(..rows.len())]).collect();
                share(&pool, SUITES_WITHIN / 5)
            })
            .collect();
        interval(all, outer.into_iter())
    });
    Found { case, slowdown, rows: rows.len(), called: called.flatten(), measured: median(&rows).map(f64::exp_m1) }
}

fn noise(calibration: &Calibration, case: Case) -> Noise {
    let blocks = calibration.gates.iter().flat_map(|gate| &gate.blocks).flat_map(|block| &block.cases);
    let differences: Vec<f64> = blocks.filter(|block| block.id == case).filter_map(block_difference).collect();
    Noise { case, blocks: differences.len(), std: sample_std(&differences) }
}
