//! The roofline: how many operations a second each case reaches, against what it has to do for each byte it reads.
//!
//! Left of the bend memory is the limit, right of it arithmetic. The roof is what the probes measured on this machine.
//! After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.

use crate::gate::{limit_fraction, summary_ns};
use crate::receipt::{CaseRecord, Probes, Receipt};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use infergate_core::case::Phase;

/// Each kind of case, as the legend names it.
const PHASES: [(Phase, &str); 3] =
    [(Phase::Prefill, "prefill"), (Phase::Decode, "decode"), (Phase::Generate, "generate")];
/// How far the roof goes on beyond the outermost case, as a factor.
const BEYOND: f64 = 2.0;

/// One chart, where the receipt has the work of a case and the probes.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let Some(probes) = receipt.probes.as_ref().map(|probes| probes.best()) else { return Vec::new() };
    let known: Vec<(Phase, Place)> = receipt.cases.iter().filter_map(|case| place(receipt, case)).collect();
    let bend = probes.matrix_flops_per_s / probes.memory_read_bytes_per_s;
    if known.is_empty() || !(bend.is_finite() && bend > 0.0) {
        return Vec::new();
    }
    let intensities = || known.iter().map(|(_, place)| place.x).chain([bend]);
    let from = intensities().fold(f64::INFINITY, f64::min) / BEYOND;
    let to = intensities().fold(0.0, f64::max) * BEYOND;
    let roof = Layer::Line {
        name: "hardware limit".into(),
        points: [from, bend, to].map(|intensity| under_the_roof(&probes, intensity)).into(),
        look: Look::ink().dashed(false),
        marked: false,
    };
    let cases = PHASES.into_iter().enumerate().filter_map(|(nth, (phase, name))| {
        let points: Vec<Place> = known.iter().filter(|(of, _)| *of == phase).map(|(_, place)| place.clone()).collect();
        (!points.is_empty()).then(|| Layer::Points { name: name.into(), points, look: Look::nth(nth) })
    });
    vec![Chart {
        id: "roofline".into(),
        title: "Roofline: operations a second against operations a byte".into(),
        caption: "Work that no implementation can avoid, over the measured time. Below the sloped part of the roof the memory's \
                  bandwidth is the limit, below the level part arithmetic."
            .into(),
        x: Axis::new("operations a byte", Unit::Plain).logarithmic(),
        y: Axis::new("speed", Unit::FlopsPerS).logarithmic(),
        layers: [roof].into_iter().chain(cases).collect(),
    }]
}

/// A case in the chart. `None` without its work or time, or above the roof, where the probes saw less than the hardware gives.
fn place(receipt: &Receipt, case: &CaseRecord) -> Option<(Phase, Place)> {
    let (work, time_ns) = (case.work?, summary_ns(&case.processes)?);
    let share = limit_fraction(Some(&work), receipt.probes.as_ref(), Some(time_ns)).filter(|share| *share <= 1.0)?;
    let (x, y) = (work.intensity_flops_per_byte()?, work.all_flops? / time_ns * 1e9);
    let hover = format!(
        "{}: {} at {x:.1} operations a byte, {} of the hardware's limit",
        case.id,
        Unit::FlopsPerS.show(y),
        Unit::Fraction.show(share)
    );
    (y.is_finite() && y > 0.0).then_some((case.id.phase(), Place { x, y, hover }))
}

/// The most that this machine reaches at so many operations a byte.
fn under_the_roof(probes: &Probes, intensity: f64) -> Place {
    let y = (intensity * probes.memory_read_bytes_per_s).min(probes.matrix_flops_per_s);
    let hover = format!("at most {} at {intensity:.1} operations a byte", Unit::FlopsPerS.show(y));
    Place { x: intensity, y, hover }
}
