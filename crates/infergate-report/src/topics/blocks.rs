//! The blocks of a paired run: how many, how noisy each case was expected to be, the change of each case block by block, and the
//! times of base and head of one that does not pass: drift of the machine moves both, a change moves one.

use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Column, Layer, Look, Marks, Missing, Place, Section, Table, Tone, Unit};
use crate::words;
use infergate_core::receipt::file_word;
use infergate_core::stats::median;
use infergate_judge::paired::block_difference;
use infergate_receipts::{
    Against, BlockCase, Outcome, PairedCase, PairedReceipt, Statistic, TimeEvidence, Verdict, VerdictRow,
};

/// Of more subjects, those that failed come first, then those that moved, and the others are one line or folded.
pub const MOST_SUBJECTS: usize = 30;

/// The axis of changes, which says where faster is.
const CHANGE: &str = "change of time: left of 0 faster, right of 0 slower";
/// Blocks of a case that are drawn; no gate takes so many.
const MOST_BLOCKS: usize = 200;
/// How far the line of a limit reaches from the middle of its lane.
const HALF_LANE: f64 = 0.36;
/// Charts of more cases than this would be scrolled past.
const MOST: usize = 4;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let paired = inputs.paired.as_ref().filter(|paired| !paired.blocks.is_empty())?;
    let columns = vec![
        Column::words("case", "case"),
        Column::numbers("blocks", "blocks")
            .about("fresh processes of each side, or the next of the servers that ran already"),
        Column::numbers("pairs", "pairs a block"),
        Column::numbers("expected", "expected noise").about("standard deviation of a block's change, known beforehand"),
        Column::numbers("fails_from", "fails from").about("the limit"),
    ];
    let mut table = Table::new("blocks", "", columns);
    for case in &paired.cases {
        let blocks = paired.blocks.iter().filter(|block| block.cases.iter().any(|found| found.id == case.id)).count();
        table.row(row(case, blocks, threshold(inputs, case)));
    }
    Some(Section::new("blocks", "Blocks of base and head").with([table]).with(charts(inputs, paired)))
}

fn row(case: &PairedCase, blocks: usize, threshold: f64) -> Vec<Cell> {
    vec![
        Cell::text(case.id.to_string()),
        Cell::count(blocks),
        Cell::count(case.pairs),
        Cell::number(case.expected_std, Unit::Fraction, Missing::NotMeasured),
        Cell::number(Some(threshold - 1.0), Unit::Change, Missing::NotGiven),
    ]
}

/// A chart of each case of which there is something to look at, of the first ones where there are many.
fn charts(inputs: &Inputs, paired: &PairedReceipt) -> Vec<Chart> {
    let timed = paired.cases.iter().filter(|case| case.timed && is_news(inputs, case));
    timed.filter_map(|case| chart(inputs, paired, case)).take(MOST).collect()
}

/// Whether a case failed, is open or got faster: of one that passes a picture shows nothing.
fn is_news(inputs: &Inputs, case: &PairedCase) -> bool {
    let found = inputs.verdict.as_ref().and_then(|verdict| test_of(verdict, case));
    found.is_none_or(|(row, _)| row.outcome.exit_code() != 0 || row.outcome == Outcome::Improved)
}

fn chart(inputs: &Inputs, paired: &PairedReceipt, case: &PairedCase) -> Option<Chart> {
    let base = line(paired, case, "base", |block| &block.base_ns);
    let head = line(paired, case, "head", |block| &block.head_ns);
    if base.is_empty() {
        return None;
    }
    let time = inputs.verdict.as_ref().and_then(|verdict| test_of(verdict, case));
    let change = time.map_or_else(String::new, |(_, time)| format!(": {}", words::change(time).shown()));
    let series = |name: &str, places, look| Layer::new(name, look, Marks::MarkedLine(places));
    Some(Chart {
        id: format!("blocks-{}", file_word(&case.id.to_string())),
        title: format!("{}{change}", case.id),
        caption: "The middle time of each block. Where both move the machine did, where one moves the code did. Time does not begin \
                  at zero."
            .into(),
        x: Axis::new("block", Unit::Count),
        y: Axis::new("time", Unit::Ns),
        layers: vec![series("base", base, Look::base()), series("head", head, Look::head())],
    })
}

fn line(paired: &PairedReceipt, case: &PairedCase, side: &str, times: fn(&BlockCase) -> &Vec<u64>) -> Vec<Place> {
    let iterations = case.iterations_per_sample.max(1) as f64;
    let found = paired.blocks.iter().enumerate().take(MOST_BLOCKS).filter_map(|(number, block)| {
        let block = block.cases.iter().find(|found| found.id == case.id)?;
        let times: Vec<f64> = times(block).iter().map(|ns| *ns as f64 / iterations).collect();
        let y = median(&times)?;
        let hover = format!("{side}, block {}: {}", number + 1, Unit::Ns.show(y));
        Some(Place::new((number + 1) as f64, y, hover))
    });
    found.collect()
}

/// Each case of a paired run on one line: the change of every block, the estimate with its interval, and the limit. Of many cases, the
/// interval of each by the size of its change.
pub fn changes(inputs: &Inputs) -> Option<Chart> {
    let (paired, verdict) = inputs.paired.as_ref().zip(inputs.verdict.as_ref())?;
    let timed = paired.cases.iter().filter(|case| case.timed);
    let mut timed: Vec<_> = timed.map(|case| (case, test_of(verdict, case))).collect();
    if paired.blocks.is_empty() || timed.is_empty() {
        return None;
    }
    let are_many = timed.len() > MOST_SUBJECTS;
    // The first case stands on top, or the slowest.
    if are_many {
        timed.retain(|(_, test)| test.is_some());
        let ratio = |test: &Option<(_, &TimeEvidence)>| test.and_then(|(_, time)| time.ratio).unwrap_or(1.0);
        timed.sort_by(|(_, one), (_, other)| ratio(one).total_cmp(&ratio(other)));
    } else {
        timed.reverse();
    }
    let mut layers = Vec::new();
    for (at, (case, test)) in timed.iter().enumerate() {
        let y = at as f64;
        if !are_many {
            layers.push(fails_from(threshold(inputs, case), y));
            layers.push(of_blocks(paired, case, y));
        }
        layers.extend(test.iter().flat_map(|(row, time)| estimate(case, row.outcome, time, y)));
    }
    let count =
        |outcome: Outcome| timed.iter().flat_map(|(_, test)| test).filter(|(row, _)| row.outcome == outcome).count();
    let names = timed.iter().map(|(case, _)| case.id.to_string()).collect();
    let caption = if are_many {
        "A bar is the 95 % interval of one case's change, coloured by its verdict; the slowest is on top."
    } else {
        "A disc is one block: a fresh process of each side, taking turns. A bar is the 95 % interval of a case's change, coloured by its \
         verdict. A case fails if its slowdown is beyond the upright line, its limit."
    };
    Some(Chart {
        id: "changes".into(),
        title: format!(
            "Change against base: of {} cases {} slower, {} faster",
            timed.len(),
            count(Outcome::Regressed),
            count(Outcome::Improved)
        ),
        caption: caption.into(),
        x: Axis::new(CHANGE, Unit::Change).zero(),
        y: if are_many { Axis::new("cases, by their change", Unit::Count) } else { Axis::named("case", names) },
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
    let interval = time.interval.map(|ends| Marks::Line(vec![place(ends.low), place(ends.high)]));
    let estimate = Layer::new(outcome.words(), look, Marks::Points(vec![place(ratio)]));
    interval.map(|interval| Layer::new("", look, interval)).into_iter().chain([estimate]).collect()
}

/// What the verdict judged it by; before there is one, what was planned.
fn threshold(inputs: &Inputs, case: &PairedCase) -> f64 {
    let judged =
        inputs.verdict.as_ref().and_then(|verdict| test_of(verdict, case)).and_then(|(_, time)| time.threshold);
    judged.unwrap_or(case.threshold)
}

fn fails_from(threshold: f64, y: f64) -> Layer {
    let ends = [y - HALF_LANE, y + HALF_LANE].map(|y| Place::new(threshold - 1.0, y, ""));
    Layer::new("limit", Look::ink(), Marks::Line(ends.into()))
}
