//! Each case of a paired run on one line: the change of every block, the estimate with its interval, and the limit.

use crate::gate::paired::block_difference;
use crate::receipt::{Against, PairedCase, PairedReceipt, Statistic, TimeEvidence, Verdict};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::words;

/// Blocks of a case that are drawn; no gate takes so many.
const MOST_BLOCKS: usize = 200;

/// One chart of all timed cases.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let (Some(paired), Some(verdict)) = (&inputs.paired, &inputs.verdict) else { return Vec::new() };
    let timed: Vec<&PairedCase> = paired.cases.iter().filter(|case| case.timed).collect();
    let lines = timed.len();
    let mut layers = Vec::new();
    for (at, case) in timed.iter().enumerate() {
        // The first case stands on top.
        let y = (lines - 1 - at) as f64;
        let found = time(verdict, case);
        layers.extend(found.and_then(|time| interval(case, time, y)));
        layers.push(blocks(paired, case, y));
        layers.push(limit(case, y));
        layers.extend(found.and_then(|time| estimate(case, time, y)));
    }
    if layers.is_empty() {
        return Vec::new();
    }
    let names = timed.iter().rev().map(|case| case.id.to_string()).collect();
    vec![Chart {
        id: "changes".into(),
        title: "Change of head against base, block by block".into(),
        caption: "Each disc is one block: a fresh process of each side, measured in turn. The diamond is the estimate, the bar \
                  its interval, the upright line the limit from which on a slowdown fails. Right of zero head is slower."
            .into(),
        x: Axis::new("change of head against base", Unit::Change).zero(),
        y: Axis::named("", names),
        layers,
    }]
}

/// The test of a case in the verdict.
pub fn time<'a>(verdict: &'a Verdict, case: &PairedCase) -> Option<&'a TimeEvidence> {
    let rows = verdict.rows.iter().filter(|row| row.subject.case() == Some(case.id));
    let is_it =
        |time: &&TimeEvidence| time.counted && time.against == Against::Base && time.statistic == Statistic::Median;
    rows.filter_map(|row| row.time()).find(is_it)
}

fn blocks(paired: &PairedReceipt, case: &PairedCase, y: f64) -> Layer {
    let of_case = paired.blocks.iter().enumerate().flat_map(|(number, block)| {
        block.cases.iter().filter(|found| found.id == case.id).map(move |found| (number, found))
    });
    let points = of_case.take(MOST_BLOCKS).filter_map(|(number, found)| {
        let change = block_difference(found)?.exp_m1();
        let hover = format!("{}, block {}: {}", case.id, number + 1, Unit::Change.show(change));
        Some(Place { x: change, y, hover })
    });
    Layer::Points { name: "one block".into(), points: points.collect(), look: Look::nth(0) }
}

fn interval(case: &PairedCase, time: &TimeEvidence, y: f64) -> Option<Layer> {
    let ends = time.interval?;
    Some(Layer::Interval {
        name: "interval".into(),
        from: ends.low - 1.0,
        to: ends.high - 1.0,
        y,
        hover: format!("{}: {}", case.id, words::change(time)),
        look: Look::nth(1).dashed(false),
    })
}

fn estimate(case: &PairedCase, time: &TimeEvidence, y: f64) -> Option<Layer> {
    let hover = format!("{}: {}", case.id, words::change(time));
    let point = Place { x: time.ratio? - 1.0, y, hover };
    Some(Layer::Points { name: "estimate".into(), points: vec![point], look: Look::nth(2) })
}

fn limit(case: &PairedCase, y: f64) -> Layer {
    let x = case.threshold - 1.0;
    let hover = format!("{} fails from {}", case.id, Unit::Change.show(x));
    Layer::Limit { name: "limit".into(), x, y: Some(y), hover, look: Look::nth(5) }
}
