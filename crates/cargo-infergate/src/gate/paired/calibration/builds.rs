//! How much builds that do the same differ: where the compiler and the linker put the code is luck too, and it holds for a
//! whole gate.

use std::collections::BTreeMap;

use infergate_core::case::Case;

use super::{Kind, block_difference, of_kind};
use crate::receipt::{BlockCase, Calibration, CalibrationGate, Layout};
use infergate_core::stats::{mean, normal, pooled_std, quantile};

/// Experiments simulated to find what is compatible with what was seen.
const SIMULATED: usize = 1_000;
/// Halvings of an interval.
const HALVINGS: usize = 20;
/// The same calibration gives the same numbers.
const SEED: u64 = 1;

/// One gate between two builds: which, and what it measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Any number that tells the builds apart.
    pub base: usize,
    /// The other one.
    pub head: usize,
    /// d of each block.
    pub differences: Vec<f64>,
}

/// The differences of `case` in each gate that measured it, as `of_block` has them.
pub fn gates_of<'a>(
    gates: impl Iterator<Item = &'a CalibrationGate>,
    case: Case,
    of_block: fn(&BlockCase) -> Option<f64>,
) -> Vec<Vec<f64>> {
    let of = |gate: &CalibrationGate| {
        let blocks = gate.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case);
        blocks.filter_map(of_block).collect::<Vec<f64>>()
    };
    gates.map(of).filter(|gate| !gate.is_empty()).collect()
}

/// Which of `builds` builds the `gate`-th gate compares, base first: a file with itself and two files in turn. Two files are
/// first such that no build is used twice, then each with its next neighbour, then with the one after that.
pub fn sides(gate: usize, builds: usize) -> (usize, usize) {
    let turn = gate / 2;
    if gate.is_multiple_of(2) || builds < 2 {
        return (turn % builds.max(1), turn % builds.max(1));
    }
    // By twos through an even number one comes back to where one began; then to the builds left out.
    let skipped = if builds.is_multiple_of(2) { turn / (builds / 2) % 2 } else { 0 };
    let one = (2 * turn + skipped) % builds;
    let other = (one + 1 + turn / builds % (builds - 1)) % builds;
    if turn.is_multiple_of(2) { (one, other) } else { (other, one) }
}

/// How much builds of `case` differ; `None` without two blocks of some gate between two builds.
pub fn layout(calibration: &Calibration, case: Case) -> Option<Layout> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut compared = Vec::new();
    for gate in of_kind(calibration, Kind::TwoBuilds) {
        let (base, head) = gate.base_sha256.as_deref().zip(gate.head_sha256.as_deref())?;
        let [base, head] = [base, head].map(|hash| {
            let next = known.len();
            *known.entry(hash).or_insert(next)
        });
        if let [differences] = &mut gates_of(std::iter::once(gate), case, block_difference)[..] {
            compared.push(Compared { base, head, differences: std::mem::take(differences) });
        }
    }
    let (tau, tau_at_most, block_std) = layout_spread(&compared)?;
    Some(Layout { case, builds: known.len(), gates: compared.len(), tau, tau_at_most, block_std })
}

/// tau, its upper bound (95 %, one-sided), and the standard deviation of a block.
///
/// A gate's mean is u_head - u_base + noise with u of each build drawn from N(0, tau^2 / 2) and noise of variance s^2 / n.
/// Which build is base is arbitrary, so means lie about zero, and by the method of moments
/// tau^2 = mean(mean_g^2) - s^2 mean(1 / n_g), s^2 pooled within gates. Gates that share a build are not independent; so the
/// upper bound is the tau at which only 1 in 20 simulated experiments, with the same builds in the same gates, show a spread
/// as small as the one seen.
///
/// `None` without two blocks in some gate.
pub fn layout_spread(gates: &[Compared]) -> Option<(f64, Option<f64>, f64)> {
    let block_std = pooled_std(&gates.iter().map(|gate| gate.differences.clone()).collect::<Vec<_>>())?;
    let means: Vec<f64> = gates.iter().map(|gate| mean(&gate.differences)).collect::<Option<_>>()?;
    let seen = mean(&means.iter().map(|mean| mean * mean).collect::<Vec<_>>())?;
    let noise: Vec<f64> = gates.iter().map(|gate| block_std.powi(2) / gate.differences.len() as f64).collect();
    let tau = (seen - mean(&noise)?).max(0.0).sqrt();

    let builds = gates.iter().map(|gate| gate.base.max(gate.head) + 1).max()?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut draw = |count: usize| (0..count).map(|_| normal(&mut random)).collect::<Vec<f64>>();
    let worlds: Vec<(Vec<f64>, Vec<f64>)> = (0..SIMULATED).map(|_| (draw(builds), draw(gates.len()))).collect();
    // The spread that 19 of 20 simulated experiments exceed.
    let low_spread = |tau: f64| {
        let spread = |(builds, errors): &(Vec<f64>, Vec<f64>)| {
            let squares = gates.iter().zip(&noise).zip(errors).map(|((gate, noise), error)| {
                (tau / 2.0_f64.sqrt() * (builds[gate.head] - builds[gate.base]) + noise.sqrt() * error).powi(2)
            });
            squares.sum::<f64>() / gates.len() as f64
        };
        quantile(&worlds.iter().map(spread).collect::<Vec<f64>>(), 0.05)
    };
    let (mut low, mut high) = (0.0_f64, 100.0 * (seen + mean(&noise)?).sqrt());
    if low_spread(high)? <= seen {
        return Some((tau, None, block_std));
    }
    for _ in 0..HALVINGS {
        let middle = low.midpoint(high);
        if low_spread(middle)? <= seen {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((tau, Some(high), block_std))
}
