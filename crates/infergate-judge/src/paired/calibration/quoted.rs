//! What a calibration says of the errors of one gate: counted are only gates that answer the question asked.

use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;

use super::{Kind, all_settled, any_regressed, block_noise, ended, of_kind};
use crate::paired::series::series;
use infergate_core::stats::sample_std;
use infergate_receipts::{Calibration, Note, Outcome, PairedCase, PairedReceipt};

/// Blocks that vary by more than so many times those of the calibration are other conditions.
const TIMES_AS_NOISY: f64 = 2.0;

/// How often gates between two builds that do the same were wrong here, judged by the limits of `receipt`: the question that a change asks,
/// which gates of one file against itself do not answer.
pub fn own_errors(calibration: Option<&Calibration>, receipt: &PairedReceipt) -> Note {
    let unknown = |why: &str| Note::OwnErrorsUnknown { why: why.to_owned() };
    let Some(calibration) = calibration else {
        return unknown("this machine class has no calibration, which the command `calibrate` makes");
    };
    if let Some(why) = other_conditions(calibration, receipt) {
        return unknown(&why);
    }
    let ends = of_kind(calibration, Kind::TwoBuilds).map(|gate| ended(&receipt.cases, gate));
    let settled: Vec<Vec<Option<Outcome>>> = ends.filter(|end| all_settled(end)).collect();
    if settled.is_empty() {
        return unknown("no settled gate between two builds that do the same is in its calibration");
    }
    Note::OwnErrors {
        calibrated: calibration.created.get(..10).unwrap_or(&calibration.created).to_owned(),
        gates: settled.len() as u64,
        regressed: settled.iter().filter(|end| any_regressed(end)).count() as u64,
    }
}

/// Why a calibration says nothing of a run: it is of other threads, say; `None` where both are of the same.
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
