//! The rule of gate.md, word by word, and suites to compare it with.

use infergate_core::stats::{hodges_lehmann, normal};
use infergate_judge::paired::{Bet, MAX_BLOCKS, PASS_LEVEL, Series};
use infergate_receipts::Outcome;

use crate::gate_looks::series;

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// gate.md, word by word: products from the first block on, every group of cases, bounds instead of flags.
pub fn literal(suite: &[Series]) -> Vec<Option<Outcome>> {
    let m = suite.len();
    let mut verdicts: Vec<Option<(Outcome, usize)>> = vec![None; m];
    let (mut slower, mut faster, mut within) = (vec![false; m], vec![false; m], vec![false; m]);
    let wealth = |series: &Series, n: usize, above: &dyn Fn(f64) -> f64| -> f64 {
        let std = series.expected_std.expect("a deviation");
        let of_block = |at: usize| {
            let mut before = series.differences[..at].to_vec();
            let std = if at < 3 {
                std
            } else {
                let centre = middle(&mut before);
                let seen = 1.4826 * middle(&mut before.iter().map(|d| (d - centre).abs()).collect::<Vec<f64>>());
                (std.powi(3) * seen.powi(at as i32)).powf(1.0 / (3 + at) as f64)
            };
            1.0 + 0.9 * (series.limit * above(series.differences[at]) / std.powi(2)).tanh()
        };
        (0..n).map(of_block).product()
    };
    for n in 1..=MAX_BLOCKS {
        let had = |i: usize| verdicts[i].map_or(n, |(_, blocks)| blocks);
        if (0..m).any(|i| verdicts[i].is_none() && suite[i].differences.len() < n) {
            break;
        }
        let up: Vec<f64> = (0..m).map(|i| wealth(&suite[i], had(i), &|d| d)).collect();
        let down: Vec<f64> = (0..m).map(|i| wealth(&suite[i], had(i), &|d| -d)).collect();
        let in_every_group = |wealth: &[f64], i: usize| {
            (1_u32..1 << m).filter(|group| group & (1 << i) != 0).all(|group| {
                let sum: f64 = (0..m).filter(|j| group & (1 << j) != 0).map(|j| wealth[j]).sum();
                sum / f64::from(group.count_ones()) >= 100.0
            })
        };
        let open: Vec<usize> = (0..m).filter(|&i| verdicts[i].is_none()).collect();
        for i in open {
            let seen = &suite[i].differences[..n];
            let (l, bet) = (suite[i].limit, Bet::new(suite[i].limit, suite[i].expected_std));
            let theta = hodges_lehmann(seen).expect("an estimate");
            slower[i] |= in_every_group(&up, i);
            faster[i] |= in_every_group(&down, i);
            let high = bet.upper_bound(seen, 1.0 / PASS_LEVEL);
            within[i] |= high.is_some_and(|high| high < l);
            let within = within[i];
            let ends = bet.lower_bound(seen, 1.0 / PASS_LEVEL).zip(high).map(|(low, high)| {
                let (low, high) =
                    (if slower[i] { low.max(0.0) } else { low }, if faster[i] { high.min(0.0) } else { high });
                (low.min(theta), if within { high.min(l) } else { high }.max(theta))
            });
            let wide = ends.is_none_or(|(low, high)| high - low > 2.0 * l);
            verdicts[i] = match () {
                () if slower[i] && !within && theta >= l => Some((Outcome::Regressed, n)),
                () if faster[i] && theta <= -l => Some((Outcome::Improved, n)),
                () if within && (theta > -l || n == MAX_BLOCKS) => Some((Outcome::WithinLimit, n)),
                () if n < MAX_BLOCKS => None,
                () if wide => Some((Outcome::Unstable, n)),
                () => Some((Outcome::Inconclusive, n)),
            };
        }
    }
    verdicts.into_iter().map(|verdict| verdict.map(|(outcome, _)| outcome)).collect()
}

/// Between one and seven cases, each slowed by -4 to 5 % with noise of 0.3 to 6 %, expected a little wrong.
pub fn any_suite(seed: u64) -> Vec<Series> {
    let mut random = fastrand::Rng::with_seed(seed);
    let case = |_| {
        let (centre, std) = (-0.04 + 0.09 * random.f64(), 0.003 + 0.06 * random.f64());
        let expected_std = Some(std * (0.7 + 0.6 * random.f64()));
        Series {
            expected_std,
            ..series(&(0..MAX_BLOCKS).map(|_| centre + std * normal(&mut random)).collect::<Vec<f64>>())
        }
    };
    (0..1 + seed as usize % 7).map(case).collect()
}
