//! What a calibration says of the gate: how often it is wrong, and how small a slowdown it finds.

mod quoted;

use std::collections::BTreeMap;

pub use quoted::{of_another_setup, own_errors};

use infergate_core::case::Case;

use super::evidence::LEVEL;
use super::limits::THRESHOLD;
use super::looks::settled;
use super::mean::block_mean_difference;
use super::power::smallest_slowdown;
use super::series::{MAX_BLOCKS, Series, block_difference, series};
use infergate_core::stats::{clopper_pearson, median, pooled_std};
use infergate_receipts::{
    BlockCase, Calibration, CalibrationGate, LiveGates, Noise, Outcome, PairedCase, SUMMARY_SCHEMA, Share, Summary,
};

/// What a calibration says of one case to a later gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Standard deviation of a block's median ln ratio.
    pub std: f64,
    /// The same of the means.
    pub mean_std: Option<f64>,
}

/// What is known of each case; without those of which two blocks of no gate are there.
pub fn known(calibration: &Calibration) -> BTreeMap<Case, Known> {
    let of_case = |noise: Noise| Some((noise.case, Known { std: noise.std?, mean_std: noise.mean_std }));
    block_noise(calibration).into_iter().filter_map(of_case).collect()
}

/// The smallest slowdown of each timed case that a gate here reports, as a ratio, by the limit `threshold`. `None` where no slowdown up to a doubling is reported.
pub fn smallest_called(calibration: &Calibration, threshold: f64) -> Vec<Option<f64>> {
    let known = known(calibration);
    let timed = timed(calibration);
    let smallest = |case: &Case| {
        let std = known.get(case)?.std;
        smallest_slowdown(threshold.ln(), std, MAX_BLOCKS, timed.len())
    };
    timed.iter().map(smallest).collect()
}

/// Reads a whole calibration. Deterministic: simulations are seeded.
pub fn summarise(calibration: &Calibration) -> Summary {
    Summary {
        schema: SUMMARY_SCHEMA,
        design_level: LEVEL,
        same_file: live(calibration, Kind::SameFile),
        separate_builds: live(calibration, Kind::TwoBuilds),
        smallest_called: smallest_called(calibration, THRESHOLD),
        noise: block_noise(calibration),
    }
}

/// The noise of each timed case's blocks, within a gate.
pub fn block_noise(calibration: &Calibration) -> Vec<Noise> {
    timed(calibration).into_iter().map(|case| noise(calibration, case)).collect()
}

fn timed(calibration: &Calibration) -> Vec<Case> {
    calibration.cases.iter().filter(|case| case.timed).map(|case| case.id).collect()
}

/// Which question a gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One file, or copies of it.
    SameFile,
    /// Two builds that do the same.
    TwoBuilds,
}

/// Gates of one kind, in the order they were measured.
fn of_kind(calibration: &Calibration, kind: Kind) -> impl Iterator<Item = &CalibrationGate> {
    let is = |gate: &CalibrationGate| if gate.is_separate() { Kind::TwoBuilds } else { Kind::SameFile };
    calibration.gates.iter().filter(move |gate| is(gate) == kind)
}

/// Time of the iterations of a case in a block, both sides, seconds.
fn seconds(block: &BlockCase) -> f64 {
    block.base_ns.iter().chain(&block.head_ns).map(|ns| *ns as f64).sum::<f64>() / 1e9
}

/// How a live gate of `cases` ended: the outcome of each case.
fn ended(cases: &[PairedCase], gate: &CalibrationGate) -> Vec<Option<Outcome>> {
    let suite: Vec<Series> = series(cases, &gate.blocks, false).into_iter().map(|(_, s)| s).collect();
    settled(&suite).into_iter().map(|case| case.map(|(outcome, _)| outcome)).collect()
}

fn live(calibration: &Calibration, kind: Kind) -> LiveGates {
    let gates: Vec<&CalibrationGate> = of_kind(calibration, kind).collect();
    let ends: Vec<Vec<Option<Outcome>>> = gates.iter().map(|gate| ended(&calibration.cases, gate)).collect();
    let count = |what: fn(&[Option<Outcome>]) -> bool| ends.iter().filter(|end| what(end)).count() as u64;
    let (all, settled, regressed, passed) =
        (gates.len() as u64, count(all_settled), count(any_regressed), count(all_pass));
    let interval = |hits: u64, of: u64| {
        let (low, high) = clopper_pearson(hits, of, 0.95)?;
        Some(Share { share: hits as f64 / of as f64, low, high })
    };
    let of_gates = |number: &dyn Fn(&CalibrationGate) -> Option<f64>| {
        median(&gates.iter().filter_map(|gate| number(gate)).collect::<Vec<f64>>())
    };
    LiveGates {
        gates: all,
        settled,
        regressed,
        passed,
        regressed_share: interval(regressed, settled),
        passed_share: interval(passed, all),
        blocks: of_gates(&|gate| Some(gate.blocks.len() as f64)),
        timed_seconds: of_gates(&|gate| Some(gate.blocks.iter().flat_map(|block| &block.cases).map(seconds).sum())),
        wall_seconds: of_gates(&|gate| Some(gate.took_ns as f64 / 1e9)),
    }
}

/// Whether a gate says something: a case of it regressed, or all are settled.
fn all_settled(gate: &[Option<Outcome>]) -> bool {
    any_regressed(gate) || gate.iter().all(Option::is_some)
}

fn any_regressed(gate: &[Option<Outcome>]) -> bool {
    gate.contains(&Some(Outcome::Regressed))
}

fn all_pass(gate: &[Option<Outcome>]) -> bool {
    gate.iter().all(|outcome| outcome.is_some_and(|outcome| outcome.exit_code() == 0))
}

/// Squared deviations from the gate's own mean, pooled: a gate of n blocks has n - 1 of them.
fn noise(calibration: &Calibration, case: Case) -> Noise {
    let of = |of_block: fn(&BlockCase) -> Option<f64>| -> Vec<Vec<f64>> {
        let blocks = |gate: &CalibrationGate| {
            let blocks = gate.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case);
            blocks.filter_map(of_block).collect::<Vec<f64>>()
        };
        calibration.gates.iter().map(blocks).filter(|gate| !gate.is_empty()).collect()
    };
    let gates = of(block_difference);
    let blocks = gates.iter().map(Vec::len).sum();
    Noise { case, blocks, std: pooled_std(&gates), mean_std: pooled_std(&of(block_mean_difference)) }
}
