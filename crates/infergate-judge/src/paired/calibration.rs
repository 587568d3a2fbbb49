//! What a calibration shows of the gate: its false-failure rate, and the smallest slowdown that it detects.

use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;

use super::limits::THRESHOLD;
use super::mean::block_mean_difference;
use super::power::smallest_slowdown;
use super::sequential::outcomes;
use super::series::{MAX_BLOCKS, Series, block_difference, series};
use infergate_core::stats::{clopper_pearson, median, pooled_std, sample_std};
use infergate_receipts::{
    BlockCase, Calibration, CalibrationGate, LiveGates, Noise, Note, Outcome, PairedCase, PairedReceipt,
    SUMMARY_SCHEMA, Share, Summary, blocks_of,
};

/// The deviation of blocks, as a multiple of the calibration's, above which conditions differ.
const TIMES_AS_NOISY: f64 = 2.0;

/// The smallest slowdown of each timed case that a gate here detects with the limit `threshold`, as a ratio. `None` if it detects
/// no slowdown up to a doubling.
pub fn smallest_detectable(calibration: &Calibration, threshold: f64) -> Vec<Option<f64>> {
    let noise = block_noise(calibration);
    let smallest = |case: &Noise| smallest_slowdown(threshold.ln(), case.std?, MAX_BLOCKS, noise.len());
    noise.iter().map(smallest).collect()
}

/// Reads a whole calibration. Deterministic: simulations are seeded.
pub fn summarise(calibration: &Calibration) -> Summary {
    Summary {
        schema: SUMMARY_SCHEMA,
        same_file: live(calibration, false),
        separate_builds: live(calibration, true),
        smallest_called: smallest_detectable(calibration, THRESHOLD),
        noise: block_noise(calibration),
    }
}

/// The noise of each timed case's blocks, within a gate.
pub fn block_noise(calibration: &Calibration) -> Vec<Noise> {
    let timed = calibration.cases.iter().filter(|case| case.timed);
    timed.map(|case| noise(calibration, case.id)).collect()
}

/// The gates between two equivalent builds, or else of one file or copies of it, in the order they were measured.
fn gates(calibration: &Calibration, are_separate: bool) -> impl Iterator<Item = &CalibrationGate> {
    calibration.gates.iter().filter(move |gate| gate.is_separate() == are_separate)
}

/// Time of the iterations of a case in a block, both sides, seconds.
fn seconds(block: &BlockCase) -> f64 {
    block.base_ns.iter().chain(&block.head_ns).map(|ns| *ns as f64).sum::<f64>() / 1e9
}

/// The outcome of each of `cases` in a live gate.
fn ended(cases: &[PairedCase], gate: &CalibrationGate) -> Vec<Option<Outcome>> {
    let suite: Vec<Series> = series(cases, &gate.blocks, false).into_iter().map(|(_, s)| s).collect();
    outcomes(&suite, 0)
}

fn live(calibration: &Calibration, are_separate: bool) -> LiveGates {
    let gates: Vec<&CalibrationGate> = gates(calibration, are_separate).collect();
    let ends: Vec<Vec<Option<Outcome>>> = gates.iter().map(|gate| ended(&calibration.cases, gate)).collect();
    let count = |what: fn(&[Option<Outcome>]) -> bool| ends.iter().filter(|end| what(end)).count() as u64;
    let (all, settled) = (gates.len() as u64, count(all_settled));
    let (regressed, passed) = (count(any_regressed), count(all_pass));
    let share = |hits: u64, of: u64| {
        let (low, high) = clopper_pearson(hits, of, 0.95)?;
        Some(Share { share: hits as f64 / of as f64, low, high })
    };
    let middle =
        |number: fn(&CalibrationGate) -> f64| median(&gates.iter().map(|gate| number(gate)).collect::<Vec<f64>>());
    LiveGates {
        gates: all,
        settled,
        regressed,
        passed,
        regressed_share: share(regressed, settled),
        passed_share: share(passed, all),
        blocks: middle(|gate| gate.blocks.len() as f64),
        timed_seconds: middle(|gate| gate.blocks.iter().flat_map(|block| &block.cases).map(seconds).sum()),
        wall_seconds: middle(|gate| gate.took_ns as f64 / 1e9),
    }
}

/// Whether a gate is decided: a case of it regressed, or all are settled.
fn all_settled(gate: &[Option<Outcome>]) -> bool {
    any_regressed(gate) || gate.iter().all(Option::is_some)
}

fn any_regressed(gate: &[Option<Outcome>]) -> bool {
    gate.contains(&Some(Outcome::Regressed))
}

fn all_pass(gate: &[Option<Outcome>]) -> bool {
    gate.iter().all(|outcome| outcome.is_some_and(|outcome| outcome.exit_code() == 0))
}

/// Pools squared deviations from each gate's own mean: n blocks have n - 1 degrees of freedom.
fn noise(calibration: &Calibration, case: Case) -> Noise {
    let of = |of_block: fn(&BlockCase) -> Option<f64>| -> Vec<Vec<f64>> {
        let blocks = |gate: &CalibrationGate| blocks_of(&gate.blocks, case).filter_map(of_block).collect::<Vec<f64>>();
        calibration.gates.iter().map(blocks).filter(|gate| !gate.is_empty()).collect()
    };
    let gates = of(block_difference);
    let blocks = gates.iter().map(Vec::len).sum();
    Noise { case, blocks, std: pooled_std(&gates), mean_std: pooled_std(&of(block_mean_difference)) }
}

/// How often gates between two equivalent builds failed here, judged by the limits of `receipt`. Gates of one file against itself
/// are skipped, since a change is another build.
pub fn false_failure_rate(calibration: Option<&Calibration>, receipt: &PairedReceipt) -> Note {
    let unknown = |why: &str| Note::OwnErrorsUnknown { why: why.to_owned() };
    let Some(calibration) = calibration else {
        return unknown("this machine class has no calibration (`calibrate` makes one)");
    };
    if let Some(why) = other_conditions(calibration, receipt) {
        return unknown(&why);
    }
    let ends: Vec<_> = gates(calibration, true).map(|gate| ended(&receipt.cases, gate)).collect();
    let settled = ends.iter().filter(|end| all_settled(end)).count();
    if settled == 0 {
        return unknown("no settled gate between two builds that do the same is in its calibration");
    }
    Note::OwnErrors {
        calibrated: calibration.created.get(..10).unwrap_or(&calibration.created).to_owned(),
        gates: settled as u64,
        regressed: ends.iter().filter(|end| any_regressed(end)).count() as u64,
        inconclusive: (ends.len() - settled) as u64,
    }
}

/// Why a calibration does not apply to a run, for example another thread count; `None` if it does.
pub fn of_another_setup(calibration: &Calibration, receipt: &PairedReceipt) -> Option<String> {
    let threads = |count: usize| if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
    let of = |class: &str, count: usize, engine: &EngineInfo| {
        [format!("machine class {class}"), threads(count), format!("dtype {}", engine.dtype)]
    };
    let was = of(&calibration.machine.class, calibration.threads, &calibration.subject.engine);
    let is = of(&receipt.machine.class, receipt.threads, &receipt.head.engine);
    let (was, is) = was.into_iter().zip(is).find(|(was, is)| was != is)?;
    Some(format!("the calibration is of {was}, and this run of {is}"))
}

fn other_conditions(calibration: &Calibration, receipt: &PairedReceipt) -> Option<String> {
    let other_setup = of_another_setup(calibration, receipt);
    if other_setup.is_some() {
        return other_setup;
    }
    if calibration.tool != receipt.tool {
        return Some("the calibration is of another version of infergate".into());
    }
    if receipt.cases_elsewhere() > 0 {
        return Some("the suite was measured in parts, and a calibration is of a whole one".into());
    }
    let ids =
        |cases: &[PairedCase]| -> Vec<Case> { cases.iter().filter(|case| case.timed).map(|case| case.id).collect() };
    if ids(&calibration.cases) != ids(&receipt.cases) {
        return Some("the calibration has other cases".into());
    }
    let noisier = series(&receipt.cases, &receipt.blocks, false).into_iter().zip(block_noise(calibration)).find_map(
        |((case, series), noise)| {
            let (is, was) = (sample_std(&series.differences)?, noise.std?);
            (is > TIMES_AS_NOISY * was).then_some((case, is, was))
        },
    );
    let (case, is, was) = noisier?;
    Some(format!("blocks of {case} vary by {:.1} %, in the calibration by {:.1} %", is * 100.0, was * 100.0))
}
