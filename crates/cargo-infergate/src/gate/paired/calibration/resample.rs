//! Suites drawn from what live gates measured: false alarms, and the slowdowns that are found.

use infergate_core::case::Case;

use super::{
    Kind, all_pass, all_settled, any_regressed, block_difference, block_mean_difference, block_noise, is_drawn,
    judged_cases, limits_follow_noise, of_kind, seconds,
};
use crate::gate::paired::looks::{MAX_BLOCKS, Series, settled};
use crate::gate::paired::power::POWER_ASKED;
use crate::receipt::{BlockRecord, Calibration, CalibrationGate, MeanTest, Outcome, PairedCase, Power, Resampled};
use infergate_core::stats::{clopper_pearson, median, quantile};

/// Suites drawn in all, and within each outer resample of the gates.
const SUITES: usize = 2_000;
const OUTER: usize = 100;
const SUITES_WITHIN: usize = 100;

/// The same for a search of the smallest slowdown, which draws anew for each step of the search.
const POWER_SUITES: usize = 400;
const POWER_OUTER: usize = 20;
const POWER_SUITES_WITHIN: usize = 100;

/// No slowdown beyond this is looked for, nor told apart from one this much larger.
const LARGEST: f64 = 0.5;
const FINENESS: f64 = 0.001;

/// Fewer rows say nothing about a suite.
const LEAST_ROWS: usize = 12;

/// The same rows give the same numbers.
const SEED: u64 = 1;

/// One case in one live block.
#[derive(Debug, Clone, Copy)]
struct Cell {
    difference: f64,
    mean_difference: f64,
    seconds: f64,
}

/// Whole blocks of one gate, cases in suite order, so that cases stay correlated.
type Rows = Vec<Vec<Cell>>;

/// What is drawn from, and how it is judged.
struct Pool {
    /// Gates of one file; gates between builds, or between layouts of two sides where a gate draws them.
    kinds: [Vec<Rows>; 2],
    cases: Vec<Judged>,
}

/// One case of the suite: its limit, what a gate here expects of its blocks before the first one, and the test of its means.
#[derive(Debug, Clone, Copy)]
struct Judged {
    limit: f64,
    std: Option<f64>,
    mean: MeanTest,
}

impl Pool {
    /// `None` for too few blocks, and where limits follow noise: those of drawn blocks would not be those of a gate.
    fn new(calibration: &Calibration) -> Option<Self> {
        if limits_follow_noise(calibration) {
            return None;
        }
        let timed: Vec<PairedCase> = judged_cases(calibration).into_iter().filter(|case| case.timed).collect();
        let ids: Vec<Case> = timed.iter().map(|case| case.id).collect();
        let row = |block: &BlockRecord| -> Option<Vec<Cell>> {
            let of = |id: &Case| {
                let case = block.cases.iter().find(|case| case.id == *id)?;
                let (difference, mean_difference) = (block_difference(case)?, block_mean_difference(case)?);
                Some(Cell { difference, mean_difference, seconds: seconds(case) })
            };
            ids.iter().map(of).collect()
        };
        let rows = |gate: &CalibrationGate| gate.blocks.iter().filter_map(row).collect::<Rows>();
        let kind = |kind| of_kind(calibration, kind).map(rows).filter(|rows| !rows.is_empty()).collect();
        let kinds = match is_drawn(calibration) {
            true => [Vec::new(), kind(Kind::Drawn)],
            false => [kind(Kind::SameFile), kind(Kind::TwoBuilds)],
        };
        let judged = |(case, noise): (&PairedCase, crate::receipt::Noise)| {
            let mean = MeanTest { expected_std: noise.mean_std, ..case.mean? };
            Some(Judged { limit: case.threshold.ln(), std: noise.std, mean })
        };
        let cases = timed.iter().zip(block_noise(calibration)).map(judged).collect::<Option<_>>()?;
        let pool = Self { kinds, cases };
        (pool.rows() >= LEAST_ROWS && !ids.is_empty()).then_some(pool)
    }

    fn gates(&self) -> usize {
        self.kinds.iter().map(Vec::len).sum()
    }

    fn rows(&self) -> usize {
        self.kinds.iter().flatten().map(Vec::len).sum()
    }

    /// As many gates of each kind, drawn with replacement.
    fn redrawn(&self, random: &mut fastrand::Rng) -> Self {
        let mut again = |gates: &Vec<Rows>| gates.iter().map(|_| gates[random.usize(..gates.len())].clone()).collect();
        let kinds = [again(&self.kinds[0]), again(&self.kinds[1])];
        Self { kinds, cases: self.cases.clone() }
    }

    /// The blocks of one suite, of one kind in proportion to the gates. Of one file: whole gates, one after the other. Between
    /// builds: blocks of a single gate, since what separates two builds holds for a whole gate and others would water it
    /// down.
    fn draw(&self, random: &mut fastrand::Rng) -> Vec<&Vec<Cell>> {
        let at = random.usize(..self.gates());
        if let Some(separate) = at.checked_sub(self.kinds[0].len()) {
            let gate = &self.kinds[1][separate];
            return (0..MAX_BLOCKS).map(|_| &gate[random.usize(..gate.len())]).collect();
        }
        let mut drawn: Vec<&Vec<Cell>> = Vec::with_capacity(MAX_BLOCKS + MAX_BLOCKS);
        while drawn.len() < MAX_BLOCKS {
            drawn.extend(&self.kinds[0][random.usize(..self.kinds[0].len())]);
        }
        drawn.truncate(MAX_BLOCKS);
        drawn
    }

    /// The end of a drawn suite in which all samples of `slowed` are slower by `ln`.
    fn judge(&self, drawn: &[&Vec<Cell>], slowed: usize, ln: f64) -> Vec<Option<(Outcome, usize)>> {
        let of_case = |(at, case): (usize, &Judged)| {
            let shift = if at == slowed { ln } else { 0.0 };
            let series = |limit, expected_std, of: fn(&Cell) -> f64| Series {
                wider: Vec::new(),
                limit,
                expected_std,
                differences: drawn.iter().map(|row| of(&row[at]) + shift).collect(),
                mean: None,
            };
            let mean = series(case.mean.threshold.ln(), case.mean.expected_std, |cell| cell.mean_difference);
            Series { mean: Some(Box::new(mean)), ..series(case.limit, case.std, |cell| cell.difference) }
        };
        settled(&self.cases.iter().enumerate().map(of_case).collect::<Vec<_>>())
    }

    /// Suites that regressed and that passed, nothing slowed.
    fn alarms(&self, random: &mut fastrand::Rng, suites: usize) -> (u64, u64) {
        let (mut regressed, mut passed) = (0, 0);
        for _ in 0..suites {
            let ended = self.judge(&self.draw(random), 0, 0.0);
            let suite: Vec<Option<Outcome>> = ended.into_iter().map(|case| case.map(|(outcome, _)| outcome)).collect();
            regressed += u64::from(any_regressed(&suite));
            passed += u64::from(all_pass(&suite));
        }
        (regressed, passed)
    }

    /// The smallest slowdown of `case`, as ln, that enough of `suites` suites call. The same draws for every size, so that a
    /// larger one never has the smaller share but for the looks' own sake.
    fn smallest(&self, case: usize, suites: usize) -> Option<f64> {
        let enough = |ln: f64| {
            let mut random = fastrand::Rng::with_seed(SEED);
            let mut called = 0;
            for _ in 0..suites {
                let ended = self.judge(&self.draw(&mut random), case, ln);
                called += usize::from(matches!(ended[case], Some((Outcome::Regressed, _))));
            }
            called as f64 >= POWER_ASKED * suites as f64
        };
        let (mut low, mut high) = (0.0, LARGEST.ln_1p());
        if !enough(high) {
            return None;
        }
        while high - low > FINENESS {
            let middle = low.midpoint(high);
            if enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// Median of the timed work of suites in which `case` is slower by `ln`, seconds.
    fn timed_seconds(&self, case: usize, ln: f64, suites: usize) -> Option<f64> {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut took = || {
            let drawn = self.draw(&mut random);
            let ended = self.judge(&drawn, case, ln);
            let blocks = ended.iter().map(|case| case.map_or(MAX_BLOCKS, |(_, blocks)| blocks));
            let of_case = |(at, blocks): (usize, usize)| drawn[..blocks].iter().map(|row| row[at].seconds).sum::<f64>();
            blocks.enumerate().map(of_case).sum::<f64>()
        };
        median(&(0..suites).map(|_| took()).collect::<Vec<f64>>())
    }
}

pub fn resampled(calibration: &Calibration) -> Option<Resampled> {
    let pool = Pool::new(calibration)?;
    let (regressed, passed) = pool.alarms(&mut fastrand::Rng::with_seed(SEED), SUITES);
    let mut random = fastrand::Rng::with_seed(SEED + 1);
    let outer: Vec<(f64, f64)> = (0..OUTER)
        .map(|_| {
            let (regressed, passed) = pool.redrawn(&mut random).alarms(&mut random, SUITES_WITHIN);
            (regressed as f64 / SUITES_WITHIN as f64, passed as f64 / SUITES_WITHIN as f64)
        })
        .collect();
    let cases = judged_cases(calibration);
    let live = calibration.gates.iter().map(|gate| super::ended(&cases, gate)).collect::<Vec<_>>();
    let count = |what: fn(&[Option<Outcome>]) -> bool| live.iter().filter(|gate| what(gate)).count() as u64;
    // One end of an interval of 90 % is a bound of 95 %. Nothing settled bounds nothing.
    let most = clopper_pearson(count(any_regressed), count(all_settled), 0.90).map_or(1.0, |(_, high)| high);
    let least = clopper_pearson(count(all_pass), live.len() as u64, 0.90)?.0;
    let outer_most = quantile(&outer.iter().map(|(regressed, _)| *regressed).collect::<Vec<_>>(), 0.95)?;
    let outer_least = quantile(&outer.iter().map(|(_, passed)| *passed).collect::<Vec<_>>(), 0.05)?;
    Some(Resampled {
        rows: pool.rows(),
        gates: pool.gates(),
        suites: SUITES,
        regressed,
        passed,
        regressed_at_most: most.max(outer_most),
        passed_at_least: least.min(outer_least),
    })
}

pub fn power(calibration: &Calibration) -> Vec<Power> {
    let Some(pool) = Pool::new(calibration) else { return Vec::new() };
    let of_case = |(at, case): (usize, Case)| {
        let smallest = pool.smallest(at, POWER_SUITES);
        let mut random = fastrand::Rng::with_seed(SEED + 1);
        // One that finds nothing is the largest there is.
        let within = |pool: Pool| pool.smallest(at, POWER_SUITES_WITHIN).unwrap_or(f64::MAX);
        let outer: Vec<f64> = (0..POWER_OUTER).map(|_| within(pool.redrawn(&mut random))).collect();
        let end = |p: f64| quantile(&outer, p).filter(|ln| *ln <= LARGEST.ln_1p()).map(f64::exp_m1);
        Power {
            case,
            smallest: smallest.map(f64::exp_m1),
            low: smallest.and_then(|_| end(0.025)),
            high: smallest.and_then(|_| end(0.975)),
            timed_seconds: smallest.and_then(|ln| pool.timed_seconds(at, ln, POWER_SUITES)),
            timed_seconds_at_5_percent: pool.timed_seconds(at, 0.05_f64.ln_1p(), POWER_SUITES),
        }
    };
    super::timed(calibration).into_iter().enumerate().map(of_case).collect()
}
