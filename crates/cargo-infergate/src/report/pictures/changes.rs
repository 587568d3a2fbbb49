//! Each case of a paired run on one line: the change of every block, the estimate with its interval, and the limit.

use crate::gate::paired::block_difference;
use crate::receipt::{Against, Outcome, PairedCase, PairedReceipt, Statistic, TimeEvidence, Verdict, VerdictRow};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Tone, Unit};
use crate::report::words;

/// Blocks of a case that are drawn; no gate takes so many.
const MOST_BLOCKS: usize = 200;

/// One chart of all timed cases.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let (Some(paired), Some(verdict)) = (&inputs.paired, &inputs.verdict) else { return Vec::new() };
    let timed: Vec<&PairedCase> = paired.cases.iter().filter(|case| case.timed).collect();
    if paired.blocks.is_empty() || timed.is_empty() {
        return Vec::new();
    }
    let lines = timed.len();
    let mut layers = Vec::new();
    for (at, case) in timed.iter().enumerate() {
        // The first case stands on top.
        let y = (lines - 1 - at) as f64;
        let found = row(verdict, case);
        layers.push(limit(case, y));
        layers.push(blocks(paired, case, y));
        layers.extend(found.into_iter().flat_map(|(row, time)| estimate(case, row.outcome, time, y)));
    }
    let names = timed.iter().rev().map(|case| case.id.to_string()).collect();
    vec![Chart {
        id: "changes".into(),
        title: "Change of head against base, block by block".into(),
        caption: "Right of zero head is slower. A disc is one block: a fresh process of each side, measured in turn. The bar is the \
                  interval of the estimate, in the colour of what it says; from the upright line on a slowdown fails."
            .into(),
        x: Axis::new("change of head against base", Unit::Change).zero(),
        y: Axis::named("case", names),
        layers,
    }]
}

/// The test of a case in the verdict.
pub fn row<'a>(verdict: &'a Verdict, case: &PairedCase) -> Option<(&'a VerdictRow, &'a TimeEvidence)> {
    let mut rows = verdict.rows.iter().filter(|row| row.subject.case() == Some(case.id));
    let is_it =
        |time: &&TimeEvidence| time.counted && time.against == Against::Base && time.statistic == Statistic::Median;
    rows.find_map(|row| Some((row, row.time().filter(is_it)?)))
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
    Layer::Points { name: "one block".into(), points: points.collect(), look: Look::head() }
}

/// Its interval and the estimate in it, in the colour of what they say.
fn estimate(case: &PairedCase, outcome: Outcome, time: &TimeEvidence, y: f64) -> Vec<Layer> {
    let Some(ratio) = time.ratio else { return Vec::new() };
    let hover = format!("{}: {}", case.id, words::change(time));
    let look = Look::of(Tone::of(outcome));
    let interval = time.interval.map(|ends| Layer::Interval {
        name: String::new(),
        from: ends.low - 1.0,
        to: ends.high - 1.0,
        y,
        hover: hover.clone(),
        look,
    });
    let points = vec![Place { x: ratio - 1.0, y, hover }];
    interval.into_iter().chain([Layer::Points { name: outcome.words().into(), points, look }]).collect()
}

fn limit(case: &PairedCase, y: f64) -> Layer {
    let x = case.threshold - 1.0;
    let hover = format!("{} fails from {}", case.id, Unit::Change.show(x));
    Layer::Limit { name: "limit".into(), x, y: Some(y), hover, look: Look::ink() }
}
