//! The memory phase: what many runs of one process left behind, and the place of a leak; loading, one generation, and the counters.

use infergate_core::memory::leak::allocations;
use infergate_receipts::{
    MemoryEvidence, MemoryMeasure, MemoryReceipt, MemoryRecord, Outcome, Unit as Counts, Verdict, VerdictRow,
};

use super::verdict::counter_cell;
use crate::inputs::Inputs;
use crate::model::{Axis, Block, Cell, Chart, Layer, Look, Marks, Missing, Place, Rows, Section, Table, Unit};
use crate::words::counter;

/// Places that explain this part of a leak's growth are enough.
const MOST: f64 = 0.8;

/// What the phase saw: what many runs leave behind first.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let record = inputs.memory_record()?;
    let trends = trends(inputs.verdict.as_ref());
    let remarks: Vec<String> = record.invalid.iter().chain(&record.missing).cloned().collect();
    let tables = [series(record), loading(record)].into_iter();
    let tables = tables.chain(one_run(record)).chain(inputs.memory.as_ref().map(counters)).map(Table::on_terminal);
    let section = Section::new("memory", "Memory").on_terminal().with(places(record, &trends)).with(tables);
    Some(section.with([remarks]).with([chart(&trends, record)]))
}

type Trend<'a> = (&'a VerdictRow, &'a MemoryEvidence);

/// What the verdict says of each measure.
fn trends(verdict: Option<&Verdict>) -> Vec<Trend<'_>> {
    let rows = verdict.into_iter().flat_map(|verdict| &verdict.rows);
    rows.filter_map(|row| Some((row, row.memory()?))).collect()
}

fn bytes(value: Option<u64>) -> Cell {
    Cell::number(value, Unit::Bytes, Missing::SystemSilent)
}

fn growth(from: Option<u64>, to: Option<u64>) -> Cell {
    let growth = from.zip(to).map(|(from, to)| to as f64 - from as f64);
    Cell::number(growth, Unit::Bytes, Missing::SystemSilent)
}

fn loading(record: &MemoryRecord) -> Table {
    let load = &record.load;
    let of = [
        ("resident set", load.before.rss_bytes, load.peak_rss_bytes, load.after.rss_bytes),
        ("live heap", load.before.live_bytes, load.peak_live_bytes, load.after.live_bytes),
        ("mapped files", load.before.mapped_bytes, None, load.after.mapped_bytes),
    ];
    Rows::of("loading", "Loading the model", of)
        .words("what", |(what, ..)| *what)
        .numbers("before", |(_, before, ..)| bytes(*before))
        .titled_numbers("peak", "at most", |(_, _, peak, _)| Cell::of(*peak, Unit::Bytes))
        .numbers("after", |(.., after)| bytes(*after))
        .numbers("growth", |(_, before, _, after)| growth(*before, *after))
        .table()
}

fn one_run(record: &MemoryRecord) -> Option<Table> {
    let inference = record.inference?;
    let silent = |value: Option<u64>| Cell::number(value, Unit::Bytes, Missing::EngineSilent);
    let counted = |value: Option<i64>| Cell::of(value, Unit::Bytes);
    let facts = vec![
        ("case", record.case.to_string().into()),
        ("KV cache, expected", silent(inference.cache_expected_bytes)),
        ("reserved for a sequence", silent(inference.sequence_bytes)),
        ("peak of prefill above rest", bytes(inference.prefill_peak_bytes)),
        ("growth of the live heap", counted(inference.growth_bytes)),
        ("growth while decoding", counted(inference.decode_growth_bytes)),
    ];
    Some(Table::facts("run", "One generation", facts))
}

fn series(record: &MemoryRecord) -> Table {
    let of = [("live heap", &record.runs.live_bytes), ("resident set", &record.runs.rss_bytes)];
    Rows::of("series", "Many runs in one process", of)
        .words("what", |(what, _)| *what)
        .numbers("runs", |(_, runs)| runs.len())
        .titled_numbers("first", "after the first", |(_, runs)| bytes(runs.first().copied()))
        .titled_numbers("last", "after the last", |(_, runs)| bytes(runs.last().copied()))
        .numbers("growth", |(_, runs)| growth(runs.first().copied(), runs.last().copied()))
        .table()
        .noted(format!(
            "{} again and again in one process, after {} runs to warm up.",
            record.case, record.warm_up_runs
        ))
}

/// Where memory that stays was allocated, innermost function first: of a leak the largest places, until they explain most of its
/// growth. The pass that finds them also sees what a later run would have released.
fn places(record: &MemoryRecord, trends: &[Trend<'_>]) -> Vec<Block> {
    // A leak only where the verdict says so; the heap's comes first.
    let leak = trends.iter().find(|(row, _)| row.outcome == Outcome::Leak);
    let growth = leak.and_then(|(_, memory)| memory.slope_bytes);
    let heading = if leak.is_some() { "Where it leaks" } else { "What stays allocated" };
    let (mut blocks, mut explained) = (Vec::new(), 0.0);
    for site in &record.sites {
        if growth.is_some_and(|growth| explained >= MOST * growth) {
            blocks.push("Smaller places are left out: these explain most of the growth.".into());
            break;
        }
        explained += site.bytes_per_run;
        let (bytes, count) = (Unit::BytesPerRun.show(site.bytes_per_run), allocations(site.blocks_per_run));
        blocks.extend([format!("{heading}: {bytes} in {count}, allocated in").into(), site.frames.clone().into()]);
    }
    blocks
}

fn counters(receipt: &MemoryReceipt) -> Table {
    let cases = receipt.counted.iter().map(|case| (case.id.to_string(), &case.counters));
    let all = cases
        .chain([("model".to_owned(), &receipt.held)])
        .flat_map(|(subject, counters)| counters.iter().map(move |(name, counter)| (subject.clone(), name, counter)));
    Rows::of("counters", "Exact counters", all)
        .words("case", |(subject, ..)| subject.clone())
        .words("counter", |(_, name, _)| counter::name(name))
        .numbers("count", |(_, name, counter)| counter_cell(**counter, Counts::of(name)))
        .table()
}

/// One chart of what grew or could not be decided, and of everything where nothing was judged. A flat line is a sentence.
fn chart(trends: &[Trend<'_>], record: &MemoryRecord) -> Chart {
    let mut layers = Vec::new();
    let all = [(MemoryMeasure::Heap, &record.runs.live_bytes), (MemoryMeasure::Resident, &record.runs.rss_bytes)];
    for (n, (measure, runs)) in all.into_iter().enumerate() {
        let trend = trends.iter().find(|(_, memory)| memory.measure == measure);
        let is_shown = trends.is_empty() || trend.is_some_and(|(row, _)| row.outcome.exit_code() != 0);
        if is_shown && runs.len() > 1 {
            layers.extend(trend.and_then(|(_, memory)| limit(memory, runs.len())));
            layers.push(line(&measure.words(), runs, n));
        }
    }
    Chart {
        id: "memory".into(),
        title: "Memory over many runs of one process".into(),
        caption: "What each run left behind. A leak keeps rising.".into(),
        x: Axis::new("run", Unit::Count),
        y: Axis::new("growth since the first run", Unit::Bytes).zero(),
        layers,
    }
}

fn line(name: &str, runs: &[u64], n: usize) -> Layer {
    let places = (1..).zip(runs).map(|(run, bytes)| {
        let hover = format!("{name} after run {run}: {}", Unit::Bytes.show(*bytes as f64));
        Place::new(f64::from(run), *bytes as f64 - runs[0] as f64, hover)
    });
    Layer::new(name, Look::nth(n), Marks::MarkedLine(places.collect()))
}

/// Growth that counts, over as many runs.
fn limit(memory: &MemoryEvidence, runs: usize) -> Option<Layer> {
    let each = memory.floor_bytes.or(memory.smallest_leak_bytes).filter(|bytes| bytes.is_finite())?;
    let name = format!("{}: counts from {}", memory.measure.words(), Unit::BytesPerRun.show(each));
    let ends = [1, runs].map(|run| Place::new(run as f64, each * (run as f64 - 1.0), ""));
    Some(Layer::new(name, Look::ink(), Marks::Line(ends.into())))
}
