//! The smallest slowdown that a run can detect, given its noise: the rules themselves, simulated on drawn blocks.

use super::sequential::regresses_among;
use super::series::{MAX_BLOCKS, Series};
use infergate_core::stats::{median, normal, robust_std, sample_std};

/// A slowdown is detectable if this share of simulated runs regresses.
const POWER: f64 = 0.95;

/// The number of simulated runs. The share that regresses has a standard error of 1 % near `POWER`.
const RUNS: usize = 500;

/// The largest slowdown that is tried, as a ratio.
const LARGEST: f64 = 2.0;

/// The excess over the limit, in deviations of blocks, that shows in most runs.
const NEAR: f64 = 2.0;

/// The ratio of standard to robust deviation above which a few blocks are outliers.
const WILD: f64 = 3.0;

/// The same draws for every slowdown, so that a larger one never has the smaller share.
const SEED: u64 = 1;

/// The smallest slowdown, as a ratio, that regresses by its median in `POWER` of runs, in a suite of `cases` of which the others
/// are unchanged. At most `blocks` blocks vary by `block_std` (of ln ratios, normal). `None` if no slowdown up to a doubling
/// does: too few blocks, or too much noise.
pub fn smallest_slowdown(limit: f64, block_std: f64, blocks: usize, cases: usize) -> Option<f64> {
    smallest(limit, Blocks::Normal(block_std), blocks, cases)
}

/// The same, for a run whose blocks have these `differences`. If a few are outliers, blocks are drawn from the differences
/// themselves: one normal deviation for all would make the quiet ones as wild.
pub fn smallest_slowdown_of(limit: f64, differences: &[f64], blocks: usize, cases: usize) -> Option<f64> {
    let (std, middle) = (sample_std(differences)?, median(differences)?);
    let deviations: Vec<f64> = differences.iter().map(|difference| difference - middle).collect();
    let most = robust_std(differences)?;
    let drawn = if std > WILD * most { Blocks::Own(&deviations, most) } else { Blocks::Normal(std) };
    smallest(limit, drawn, blocks, cases)
}

fn smallest(limit: f64, noise: Blocks, blocks: usize, cases: usize) -> Option<f64> {
    let block_std = noise.std();
    if !(block_std.is_finite() && block_std >= 0.0) {
        return None;
    }
    // A verdict simulates each of its cases, perhaps hundreds, so counting ends at the first missed run too many.
    let runs = noise.runs(blocks);
    let most_missed = ((1.0 - POWER) * runs.len() as f64).floor() as usize;
    let regresses_often = |ln: f64| {
        let missed = runs.iter().filter(|run| !regresses(run, ln, limit, block_std, cases));
        missed.take(most_missed + 1).count() <= most_missed
    };
    let (mut low, mut high) = (0.0, LARGEST.ln());
    // Near the answer: most halvings lie on one side of it, or below the limit, where the estimate decides.
    let near = (limit + NEAR * block_std).min(high);
    let is_near_enough = regresses_often(near);
    let enough = |ln: f64| match is_near_enough {
        true => ln >= near || (ln >= limit * (1.0 - 1e-9) && regresses_often(ln)),
        false => ln > near && regresses_often(ln),
    };
    if !enough(high) {
        return None;
    }
    // To a twentieth of a percent: finer would be the simulation's own noise.
    while high - low > 0.0005 {
        let middle = f64::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high.exp())
}

/// Whether a case slower by `slower` (ln) regresses, given one run's block deviations.
fn regresses(run: &[f64], slower: f64, limit: f64, block_std: f64, cases: usize) -> bool {
    let differences = run.iter().map(|block| slower + block).collect();
    let quiet = || Series { limit, differences: vec![0.0; run.len()], ..Series::default() };
    // The means are tests of the suite, too, and are simulated as unchanged.
    let tested = |series| Series { mean: Some(Box::new(quiet())), ..series };
    let slowed = tested(Series { limit, expected_std: Some(block_std), differences, ..Series::default() });
    // Unchanged cases pass at the first look that can; their evidence by then stays in the suite.
    regresses_among(&slowed, &tested(quiet()), cases.saturating_sub(1))
}

/// What runs are drawn from.
#[derive(Clone, Copy)]
enum Blocks<'a> {
    /// Normal, with this deviation.
    Normal(f64),
    /// The run's own, less their median; and their robust deviation.
    Own(&'a [f64], f64),
}

impl Blocks<'_> {
    fn std(self) -> f64 {
        match self {
            Self::Normal(std) | Self::Own(_, std) => std,
        }
    }

    /// The deviations of the blocks of each run. Whole runs are drawn, so that fewer blocks are the beginning of the same runs.
    fn runs(self, blocks: usize) -> Vec<Vec<f64>> {
        let seed = SEED + u64::from(matches!(self, Self::Own(..)));
        let mut random = fastrand::Rng::with_seed(seed);
        let mut run = || {
            let mut drawn: Vec<f64> = (0..MAX_BLOCKS).map(|_| self.draw(&mut random)).collect();
            drawn.truncate(blocks);
            drawn
        };
        (0..RUNS).map(|_| run()).collect()
    }

    fn draw(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Self::Normal(std) => std * normal(random),
            Self::Own(deviations, _) => deviations[(random.f64() * deviations.len() as f64) as usize],
        }
    }
}
