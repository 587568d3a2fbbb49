//! A picture of a paired run: the change of each case, block by block, and the interval that follows from them.

use crate::inputs::Inputs;
use crate::model::{Axis, Chart, Layer, Look, Marks, Place, Tone, Unit};
use crate::words;
use infergate_judge::paired::block_difference;
use infergate_receipts::{Against, Outcome, PairedCase, PairedReceipt, Statistic, TimeEvidence, Verdict, VerdictRow};

/// With more subjects, those where nothing moved are folded, and those that changed least are not drawn.
pub const MOST_SUBJECTS: usize = 30;

/// Blocks of a case that are drawn; no gate takes so many.
const MOST_BLOCKS: usize = 200;
/// How far the line of a limit reaches from the middle of its lane.
const HALF_LANE: f64 = 0.36;

/// Each case of a paired run on one line: the change of every block, the estimate with its interval, and the limit. Of many cases those
/// that changed most.
pub fn changes(inputs: &Inputs) -> Option<Chart> {
    let (paired, verdict) = inputs.paired.as_ref().zip(inputs.verdict.as_ref())?;
    let mut timed: Vec<_> = paired.timed().map(|case| (case, test_of(verdict, case))).collect();
    if paired.blocks.is_empty() || timed.is_empty() {
        return None;
    }
    let all = timed.len();
    let count =
        |outcome: Outcome| timed.iter().flat_map(|(_, test)| test).filter(|(row, _)| row.outcome == outcome).count();
    let (slower, faster) = (count(Outcome::Regressed), count(Outcome::Improved));
    if all > MOST_SUBJECTS {
        let size = |test: &Option<(&VerdictRow, _)>| test.map_or(0.0, |(row, _)| words::headline::size(row));
        timed.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
        timed.truncate(MOST_SUBJECTS);
    }
    // The first case stands on top.
    timed.reverse();
    let mut layers = Vec::new();
    for (at, (case, test)) in timed.iter().enumerate() {
        let y = at as f64;
        let judged = test.and_then(|(_, time)| time.threshold);
        layers.extend([fails_from(judged.unwrap_or(case.threshold), y), of_blocks(paired, case, y)]);
        layers.extend(test.iter().flat_map(|(row, time)| estimate(case, row.outcome, time, y)));
    }
    Some(Chart {
        id: "changes".into(),
        title: format!("Change against base: of {all} cases {slower} slower, {faster} faster"),
        caption: "A disc is one block, a bar the 95 % interval of a case's change, the upright line its limit.".into(),
        x: Axis::new("change of time: left of 0 faster, right of 0 slower", Unit::Change).zero(),
        y: Axis::named("case", timed.iter().map(|(case, _)| case.id.to_string()).collect()),
        layers,
    })
}

/// The test of a case in the verdict.
fn test_of<'a>(verdict: &'a Verdict, case: &PairedCase) -> Option<(&'a VerdictRow, &'a TimeEvidence)> {
    let mut rows = verdict.rows.iter().filter(|row| row.subject.case() == Some(case.id));
    let is_it =
        |time: &&TimeEvidence| time.counted && time.against == Against::Base && time.statistic == Statistic::Median;
    rows.find_map(|row| Some((row, row.time().filter(is_it)?)))
}

fn of_blocks(paired: &PairedReceipt, case: &PairedCase, y: f64) -> Layer {
    let of_case = paired.blocks.iter().enumerate().flat_map(|(number, block)| {
        block.cases.iter().filter(|found| found.id == case.id).map(move |found| (number, found))
    });
    let points = of_case.take(MOST_BLOCKS).filter_map(|(number, found)| {
        let change = block_difference(found)?.exp_m1();
        let hover = format!("{}, block {}: {}", case.id, number + 1, Unit::Change.show(change));
        Some(Place::new(change, y, hover))
    });
    Layer::new("one block", Look::head(), Marks::Points(points.collect()))
}

/// Its interval and the estimate in it, in the colour of what they say.
fn estimate(case: &PairedCase, outcome: Outcome, time: &TimeEvidence, y: f64) -> Vec<Layer> {
    let Some(ratio) = time.ratio else { return Vec::new() };
    let hover = format!("{}: {}", case.id, words::change(time).shown());
    let look = Look::of(Tone::of(outcome));
    let place = |ratio: f64| Place::new(ratio - 1.0, y, hover.clone());
    let interval = time.interval.map(|ends| Layer::new("", look, Marks::Line(vec![place(ends.low), place(ends.high)])));
    let estimate = Layer::new(outcome.words(), look, Marks::Points(vec![place(ratio)]));
    interval.into_iter().chain([estimate]).collect()
}

fn fails_from(threshold: f64, y: f64) -> Layer {
    let ends = [y - HALF_LANE, y + HALF_LANE].map(|y| Place::new(threshold - 1.0, y, ""));
    Layer::new("limit", Look::ink(), Marks::Line(ends.into()))
}
