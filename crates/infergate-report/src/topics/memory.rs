//! The memory phase: what many runs of one process left behind, and the place of a leak; loading, one generation, and the counters.

use infergate_core::memory::leak::{allocations, asked, resident_trend};

use super::verdict::{counter_cell, counter_name};
use crate::inputs::Inputs;
use crate::model::{
    Axis, Block, Cell, Chart, Column, Finding, Layer, Look, Missing, Place, Section, Table, Tone, Unit,
};
use crate::units;
use crate::words;
use infergate_receipts::{
    Evidence, MemoryEvidence, MemoryReceipt, MemoryRecord, Outcome, Unit as Counts, Verdict, VerdictRow, Witness,
};

/// Blocks of a series drawn in a line of text.
const PLOT_WIDTH: usize = 50;
/// Such a line is at least this high: below it nothing is judged either.
const PLOT_SPAN_BYTES: u64 = 1 << 20;

/// What the phase saw: what many runs leave behind first.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let trends = trends(inputs.verdict.as_ref());
    let growth: Vec<Finding> = trends.iter().filter_map(|trend| growth(inputs, *trend)).collect();
    let section = Section::new("memory", "Memory").with([growth]).ranked(1);
    // A verdict alone says what grew, and no more.
    let Some(record) = inputs.memory_record() else { return Some(section) };
    let weights = inputs.subject().and_then(|subject| subject.engine.weight_bytes).filter(|bytes| *bytes > 0);
    let counted = inputs.memory.as_ref().map(counters);
    let said: Vec<String> = record.invalid.iter().chain(&record.missing).cloned().collect();
    let section = section.with([series(record, &trends)]).with([further(record, &trends)]);
    let section =
        section.with(places(record, inputs.verdict.as_ref())).with([loading(record, weights), one_run(record)]);
    Some(section.with(counted).with([said]).with(chart(&trends, record)))
}

fn growth(inputs: &Inputs, (row, memory): Trend<'_>) -> Option<Finding> {
    if row.outcome != Outcome::Leak {
        return None;
    }
    if let Some(count) = memory.count_per_run {
        let what = words::witness(memory.witness);
        let said = format!("{}: {what} rise by {} a run", row.subject, units::number(count));
        return Some(Finding::new(Tone::Bad, said));
    }
    let slope = memory.slope_bytes?;
    let what = if memory.witness == Witness::Heap { "the live heap" } else { "the resident set" };
    let place = inputs.memory_record().and_then(|record| record.sites.first()?.frames.first());
    let place = place.map_or_else(String::new, |place| format!(", allocated in {place}"));
    let said = format!("{}: {what} grows by {} a run{place}", row.subject, Unit::Bytes.show(slope));
    Some(Finding::new(Tone::Bad, said))
}

type Trend<'a> = (&'a VerdictRow, &'a MemoryEvidence);

/// What the verdict says of each witness.
fn trends(verdict: Option<&Verdict>) -> Vec<Trend<'_>> {
    let rows = verdict.into_iter().flat_map(|verdict| &verdict.rows);
    rows.filter_map(|row| if let Evidence::Memory(memory) = &row.evidence { Some((row, memory)) } else { None })
        .collect()
}

fn bytes(value: Option<u64>) -> Cell {
    Cell::number(value.map(|bytes| bytes as f64), Unit::Bytes, Missing::SystemSilent)
}

fn loading(record: &MemoryRecord, weights: Option<u64>) -> Table {
    let load = &record.load;
    let columns = vec![
        Column::words("what", "what"),
        Column::numbers("before", "before"),
        Column::numbers("peak", "at most"),
        Column::numbers("after", "after"),
        Column::numbers("growth", "growth"),
    ];
    let mut table = Table::new("loading", "Loading the model", columns);
    for (name, before, peak, after) in [
        ("resident set", load.before.rss_bytes, Some(load.peak_rss_bytes), load.after.rss_bytes),
        ("live heap", load.before.live_bytes, Some(load.peak_live_bytes), load.after.live_bytes),
        ("mapped files", load.before.mapped_bytes, None, load.after.mapped_bytes),
    ] {
        let growth = before.zip(after).map(|(before, after)| after as f64 - before as f64);
        table.row(vec![
            Cell::text(name),
            bytes(before),
            peak.map_or(Cell::Missing(Missing::NotMeasured), bytes),
            bytes(after),
            Cell::number(growth, Unit::Bytes, Missing::SystemSilent),
        ]);
    }
    table.noted(loaded(record, weights))
}

/// Where the resident set of a loaded model comes from.
fn loaded(record: &MemoryRecord, weights: Option<u64>) -> String {
    let (before, after) = (&record.load.before, &record.load.after);
    let grown = |from: Option<u64>, to: Option<u64>| Some(to? as f64 - from? as f64);
    let heap = grown(before.live_bytes, after.live_bytes);
    let mapped = grown(before.mapped_bytes, after.mapped_bytes);
    let mut said = weights.map_or_else(
        || "The engine does not say how large the weights are.".into(),
        |weights| format!("The weights are {}.", Unit::Bytes.show(weights as f64)),
    );
    if let (Some(resident), Some(heap), Some(mapped)) = (grown(before.rss_bytes, after.rss_bytes), heap, mapped) {
        let other = resident - heap - mapped;
        let why = if other < 0.0 { " (heap that nobody wrote to yet)" } else { "" };
        said += &format!(" Of the growth neither heap nor mapped files: {}{why}.", Unit::Bytes.show(other));
    }
    let transient = grown(after.live_bytes, record.load.peak_live_bytes);
    if let (Some(heap), Some(weights), Some(transient)) = (heap, weights, transient) {
        let copies = |heap: f64| Unit::Times.show(heap / weights as f64);
        let reserved = record.inference.and_then(|inference| inference.sequence_bytes).filter(|bytes| *bytes > 0);
        let without = reserved.map_or_else(String::new, |bytes| {
            let alone = copies(heap - bytes as f64);
            format!(" ({alone} without the {} reserved for a sequence)", Unit::Bytes.show(bytes as f64))
        });
        said += &format!(
            " The heap holds {} the weights{without}; {} more were needed while loading and given back.",
            copies(heap),
            Unit::Bytes.show(transient.max(0.0))
        );
    }
    said
}

fn one_run(record: &MemoryRecord) -> Table {
    let mut table = Table::facts("run", "One generation");
    let Some(inference) = record.inference else { return table };
    let silent = |value: Option<u64>| Cell::number(value.map(|bytes| bytes as f64), Unit::Bytes, Missing::EngineSilent);
    let counted = |value: Option<i64>| Cell::number(value.map(|bytes| bytes as f64), Unit::Bytes, Missing::NotCounted);
    table.fact("case", Cell::text(record.case.to_string()));
    table.fact("KV cache, expected", silent(inference.cache_expected_bytes));
    table.fact("reserved for a sequence", silent(inference.sequence_bytes));
    table.fact("peak of prefill above rest", bytes(inference.prefill_peak_bytes));
    table.fact("growth of the live heap", counted(inference.growth_bytes));
    table.fact("of it while decoding", counted(inference.decode_growth_bytes));
    table
}

fn series(record: &MemoryRecord, trends: &[Trend<'_>]) -> Table {
    let columns = vec![
        Column::words("what", "what"),
        Column::numbers("runs", "runs"),
        Column::numbers("first", "after the first"),
        Column::numbers("last", "after the last"),
        Column::numbers("growth", "growth"),
        Column::words("course", "run by run"),
    ];
    let is_flat = !trends.is_empty() && trends.iter().all(|(row, _)| row.outcome == Outcome::Pass);
    let mut table = Table::new("series", "Many runs in one process", columns).noted(format!(
        "{} again and again in one process, after {} runs to warm up.{}",
        record.case,
        record.warm_up_runs,
        if is_flat { " Neither grows by what counts." } else { "" }
    ));
    for (name, column) in [("live heap", &record.runs.live_bytes), ("resident set", &record.runs.rss_bytes)] {
        let (first, last) = (column.first().copied(), column.last().copied());
        let growth = first.zip(last).map(|(first, last)| last as f64 - first as f64);
        table.row(vec![
            Cell::text(name),
            Cell::count(column.len()),
            bytes(first),
            bytes(last),
            Cell::number(growth, Unit::Bytes, Missing::SystemSilent),
            Cell::text(words::sparkline(column, PLOT_WIDTH, PLOT_SPAN_BYTES)),
        ]);
    }
    table
}

/// How rare a leak is still seen, and how much the resident set varies.
fn further(record: &MemoryRecord, trends: &[Trend<'_>]) -> Vec<String> {
    let rarer = trends.iter().filter_map(|(_, memory)| words::rarer_leaks(memory));
    let mut said: Vec<String> = rarer.map(|rarer| format!("{}: {rarer}", words::witness(Witness::Heap))).collect();
    said.extend(resident_trend(asked(record, &record.runs.rss_bytes)).map(|fit| {
        let (name, noise) = (words::witness(Witness::Resident), Unit::Bytes.show(fit.mad_bytes));
        format!("{name}: noise {noise} (MAD around the line), autocorrelation {:.2}", fit.autocorrelation)
    }));
    said
}

/// Where memory that stays was allocated, innermost function first.
fn places(record: &MemoryRecord, verdict: Option<&Verdict>) -> Vec<Block> {
    let heading = words::sites(verdict);
    let places = record.sites.iter().flat_map(|site| {
        let (bytes, blocks) = (Unit::BytesPerRun.show(site.bytes_per_run), allocations(site.blocks_per_run));
        [Block::Said(format!("{heading}: {bytes} in {blocks}, allocated in")), Block::List(site.frames.clone())]
    });
    places.collect()
}

fn counters(receipt: &MemoryReceipt) -> Table {
    let columns =
        vec![Column::words("case", "case"), Column::words("counter", "counter"), Column::numbers("count", "count")];
    let mut table = Table::new("counters", "Exact counters", columns);
    let cases = receipt.counted.iter().map(|case| (case.id.to_string(), &case.counters));
    for (subject, counters) in cases.chain([("model".to_owned(), &receipt.held)]) {
        for (name, counter) in counters {
            let unit = if Counts::of(name) == Counts::Bytes { Unit::Bytes } else { Unit::Count };
            table.row(vec![Cell::text(subject.clone()), counter_name(name), counter_cell(*counter, unit)]);
        }
    }
    table
}

/// One chart of what grew or could not be decided, and of everything where nothing was judged. A flat line is a sentence.
fn chart(trends: &[Trend<'_>], record: &MemoryRecord) -> Option<Chart> {
    let shown = |witness: Witness| {
        let own = trends.iter().find(|(_, memory)| memory.witness == witness);
        trends.is_empty() || own.is_some_and(|(row, _)| row.outcome.exit_code() != 0)
    };
    let mut layers = Vec::new();
    for (n, witness) in [Witness::Heap, Witness::Resident].into_iter().enumerate().filter(|(_, of)| shown(*of)) {
        let column = column(record, witness);
        if column.len() > 1 {
            let own = trends.iter().find(|(_, memory)| memory.witness == witness);
            layers.extend(own.and_then(|(_, memory)| limit(memory, column.len())));
            layers.push(line(witness, column, n));
        }
    }
    if layers.is_empty() {
        return None;
    }
    Some(Chart {
        id: "memory".into(),
        title: "Memory over many runs of one process".into(),
        caption: "What each run left behind, since the first one. A leak is a line that keeps rising.".into(),
        x: Axis::new("run", Unit::Count),
        y: Axis::new("growth since the first run", Unit::Bytes).zero(),
        layers,
    })
}

fn column(record: &MemoryRecord, witness: Witness) -> &[u64] {
    match witness {
        Witness::Heap => &record.runs.live_bytes,
        Witness::Resident => &record.runs.rss_bytes,
        Witness::OpenFiles => &record.runs.open_files,
        Witness::Threads => &record.runs.threads,
    }
}

fn line(witness: Witness, column: &[u64], n: usize) -> Layer {
    let name = words::witness(witness);
    let first = column.first().copied().unwrap_or_default();
    let points = column.iter().enumerate().map(|(run, bytes)| Place {
        x: (run + 1) as f64,
        y: *bytes as f64 - first as f64,
        hover: format!("{name} after run {}: {}", run + 1, Unit::Bytes.show(*bytes as f64)),
    });
    Layer::Line { name: name.into(), points: points.collect(), look: Look::nth(n), marked: column.len() <= 120 }
}

/// Growth that counts, over as many runs.
fn limit(memory: &MemoryEvidence, runs: usize) -> Option<Layer> {
    let each = memory.floor_bytes.or(memory.smallest_leak_bytes).filter(|bytes| bytes.is_finite())?;
    let place = |run: usize| Place { x: run as f64, y: each * (run as f64 - 1.0), hover: String::new() };
    Some(Layer::Line {
        name: format!("{}: counts from {}", words::witness(memory.witness), Unit::BytesPerRun.show(each)),
        points: vec![place(1), place(runs)],
        look: Look::ink(),
        marked: false,
    })
}
