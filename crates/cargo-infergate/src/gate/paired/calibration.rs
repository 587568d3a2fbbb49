//! What a calibration says of the gate: how often it is wrong, how small a slowdown it finds, and how much builds that do the
//! same differ.

mod builds;
mod resample;

pub use builds::{Compared, layout_spread, sides};

use infergate::case::Case;

use super::looks::{LEVEL, Series, settled};
use super::verdict::{block_difference, series};
use crate::receipt::{
    BlockCase, Calibration, CalibrationGate, FalseAlarms, Found, LiveGates, Noise, Outcome, SUMMARY_SCHEMA, Share,
    Summary,
};
use crate::stats::{clopper_pearson, mean, median, sample_std, student_t_quantile};

/// The level of all looks together, over the whole suite: 0.01.
pub fn design_level() -> f64 {
    LEVEL
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
        schema: SUMMARY_SCHEMA,
        false_alarms: false_alarms(calibration),
        power: resample::power(calibration),
        found: found.map(|(slowdown, case)| find(calibration, slowdown, case)).collect(),
        noise: block_noise(calibration),
        layout: timed.iter().filter_map(|case| builds::layout(calibration, *case)).collect(),
    }
}

/// How often the gate was and would be wrong.
pub fn false_alarms(calibration: &Calibration) -> FalseAlarms {
    FalseAlarms {
        design_level: design_level(),
        same_file: live(calibration, false),
        separate_builds: live(calibration, true),
        resampled: resample::resampled(calibration),
    }
}

/// The noise of each timed case's blocks: within a gate, so that what separates two builds is left out.
pub fn block_noise(calibration: &Calibration) -> Vec<Noise> {
    timed(calibration).into_iter().map(|case| noise(calibration, case)).collect()
}

fn timed(calibration: &Calibration) -> Vec<Case> {
    calibration.cases.iter().filter(|case| case.timed).map(|case| case.id).collect()
}

/// Gates of one kind, in the order they were measured.
fn of_kind(calibration: &Calibration, separate: bool) -> impl Iterator<Item = &CalibrationGate> {
    calibration.gates.iter().filter(move |gate| gate.is_separate() == separate)
}

/// Time of the iterations of a case in a block, both sides, seconds.
fn seconds(block: &BlockCase) -> f64 {
    block.base_ns.iter().chain(&block.head_ns).map(|ns| *ns as f64).sum::<f64>() / 1e9
}

/// How a live gate ended: the outcome of each case.
fn ended(calibration: &Calibration, gate: &CalibrationGate) -> Vec<Option<Outcome>> {
    let suite: Vec<Series> = series(&calibration.cases, &gate.blocks).into_iter().map(|(_, s)| s).collect();
    settled(&suite).into_iter().map(|case| case.map(|(outcome, _)| outcome)).collect()
}

fn live(calibration: &Calibration, separate: bool) -> LiveGates {
    let gates: Vec<&CalibrationGate> = of_kind(calibration, separate).collect();
    let ends: Vec<Vec<Option<Outcome>>> = gates.iter().map(|gate| ended(calibration, gate)).collect();
    let count = |what: fn(&[Option<Outcome>]) -> bool| ends.iter().filter(|end| what(end)).count() as u64;
    let (all, regressed, passed) = (gates.len() as u64, count(any_regressed), count(all_pass));
    let interval = |hits: u64| {
        let (low, high) = clopper_pearson(hits, all, 0.95)?;
        Some(Share { share: hits as f64 / all as f64, low, high })
    };
    let of_gates = |number: &dyn Fn(&CalibrationGate) -> Option<f64>| {
        median(&gates.iter().filter_map(|gate| number(gate)).collect::<Vec<f64>>())
    };
    LiveGates {
        gates: all,
        regressed,
        passed,
        regressed_share: interval(regressed),
        passed_share: interval(passed),
        blocks: of_gates(&|gate| Some(gate.blocks.len() as f64)),
        timed_seconds: of_gates(&|gate| Some(gate.blocks.iter().flat_map(|block| &block.cases).map(seconds).sum())),
        wall_seconds: of_gates(&|gate| gate.took_ns.map(|ns| ns as f64 / 1e9)),
    }
}

fn any_regressed(gate: &[Option<Outcome>]) -> bool {
    gate.contains(&Some(Outcome::Regressed))
}

fn all_pass(gate: &[Option<Outcome>]) -> bool {
    gate.iter().all(|outcome| outcome.is_some_and(|outcome| outcome.exit_code() == 0))
}

fn find(calibration: &Calibration, slowdown: f64, case: Case) -> Found {
    let blocks = calibration.power.iter().flat_map(|block| &block.cases).filter(|block| block.id == case);
    let rows: Vec<f64> = blocks.filter_map(|block| median(&block.log_ratios(slowdown)?)).collect();
    let measured = || -> Option<Share> {
        let (middle, std) = (mean(&rows)?, sample_std(&rows)?);
        let wide = student_t_quantile(0.975, rows.len() as f64 - 1.0)? * std / (rows.len() as f64).sqrt();
        Some(Share { share: middle.exp_m1(), low: (middle - wide).exp_m1(), high: (middle + wide).exp_m1() })
    };
    Found { case, slowdown, rows: rows.len(), measured: measured() }
}

/// Squared deviations from the gate's own mean, pooled: a gate of n blocks has n - 1 of them.
fn noise(calibration: &Calibration, case: Case) -> Noise {
    let gates = builds::gates_of(calibration.gates.iter(), case);
    let blocks = gates.iter().map(Vec::len).sum();
    Noise { case, blocks, std: crate::stats::pooled_std(&gates) }
}
