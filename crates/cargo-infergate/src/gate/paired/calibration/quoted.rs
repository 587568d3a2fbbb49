//! What a calibration says of the errors of one gate: counted are only gates that answer the question asked.

use infergate::case::Case;

use super::{Kind, all_settled, any_regressed, block_noise, ended, of_kind};
use crate::gate::paired::verdict::series;
use crate::receipt::{Calibration, Outcome, PairedCase, PairedReceipt};
use crate::stats::sample_std;

/// Blocks that vary by more than so many times those of the calibration are other conditions.
const TIMES_AS_NOISY: f64 = 2.0;

/// How often gates like this one were wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnErrors {
    /// Of so many settled gates between two builds that do the same, so many called a case regressed.
    Measured {
        /// Gates.
        gates: u64,
        /// Those that were wrong.
        regressed: u64,
    },
    /// None was measured under the conditions of this one: why, in a clause.
    NotMeasured(String),
}

/// Of the question that a change asks, "do these two builds differ?", and not of one file against itself, which has no luck of
/// layout in it; where this gate drew several layouts a side, of gates that did. The gates are judged by the limits of `receipt`.
pub fn own_errors(calibration: &Calibration, receipt: &PairedReceipt) -> OwnErrors {
    if let Some(why) = other_conditions(calibration, receipt) {
        return OwnErrors::NotMeasured(why);
    }
    let kind = if receipt.layouts.is_some() { Kind::Drawn } else { Kind::TwoBuilds };
    let ends = of_kind(calibration, kind).map(|gate| ended(&receipt.cases, gate));
    let settled: Vec<Vec<Option<Outcome>>> = ends.filter(|end| all_settled(end)).collect();
    if settled.is_empty() {
        return OwnErrors::NotMeasured(
            "no settled gate between two builds that do the same is in its calibration".into(),
        );
    }
    let regressed = settled.iter().filter(|end| any_regressed(end)).count() as u64;
    OwnErrors::Measured { gates: settled.len() as u64, regressed }
}

fn other_conditions(calibration: &Calibration, receipt: &PairedReceipt) -> Option<String> {
    if calibration.tool != receipt.tool {
        return Some("the calibration is of another version of infergate".into());
    }
    let ids =
        |cases: &[PairedCase]| -> Vec<Case> { cases.iter().filter(|case| case.timed).map(|case| case.id).collect() };
    if ids(&calibration.cases) != ids(&receipt.cases) {
        return Some("the calibration has other cases".into());
    }
    let noisier = series(&receipt.cases, &receipt.blocks).into_iter().zip(block_noise(calibration)).find_map(
        |((case, series), noise)| {
            let (is, was) = (sample_std(&series.differences)?, noise.std?);
            (is > TIMES_AS_NOISY * was).then_some((case, is, was))
        },
    );
    let (case, is, was) = noisier?;
    Some(format!("blocks of {case} vary by {:.1} %, in the calibration by {:.1} %", is * 100.0, was * 100.0))
}
