//! The memory phase: loading, one generation, many of them, and the place of a leak.

use crate::receipt::{CountedCase, Evidence, MemoryEvidence, MemoryRecord, Unit as Counts, VerdictRow};
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Unit};
use crate::report::sections::verdict::{counter_cell, counter_name};
use crate::report::words::{self, pages};

/// What the phase saw: what many runs leave behind first.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let record = inputs.memory_record()?;
    let weights = inputs.subject().and_then(|subject| subject.engine.weight_bytes);
    let mut section = Section::new("memory", "Memory").with(series(record, inputs));
    if !record.sites.is_empty() {
        section = section.with(places(record, words::sites(inputs.verdict.as_ref())));
    }
    section = section.with(loading(record, weights));
    if record.inference.is_some() {
        section = section.with(one_run(record));
    }
    let counted = inputs.memory.as_ref().map(|receipt| counters(&receipt.counted));
    if let Some(counted) = counted.filter(|table| !table.rows.is_empty()) {
        section = section.with(counted);
    }
    let said: Vec<String> = record.invalid.iter().chain(&record.missing).cloned().collect();
    Some(if said.is_empty() { section } else { section.with(Block::List(said)) })
}

/// What the verdict says of each witness.
pub fn trends(inputs: &Inputs) -> Vec<(&VerdictRow, &MemoryEvidence)> {
    let rows = inputs.verdict.iter().flat_map(|verdict| &verdict.rows);
    rows.filter_map(|row| if let Evidence::Memory(memory) = &row.evidence { Some((row, memory)) } else { None })
        .collect()
}

fn bytes(value: Option<u64>) -> Cell {
    Cell::number(value.map(|bytes| bytes as f64), Unit::Bytes, Missing::SystemSilent)
}

fn loading(record: &MemoryRecord, weights: Option<u64>) -> Table {
    let load = &record.load;
    let mut table = Table::new(
        "loading",
        "Loading the model",
        vec![
            Column::words("what", "what"),
            Column::numbers("before", "before"),
            Column::numbers("peak", "at most"),
            Column::numbers("after", "after"),
            Column::numbers("growth", "growth"),
        ],
    );
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
    let weights = weights.map_or_else(
        || "The engine does not say how large the weights are.".into(),
        |weights| format!("The weights are {}.", Unit::Bytes.show(weights as f64)),
    );
    table.noted(weights)
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

fn series(record: &MemoryRecord, inputs: &Inputs) -> Table {
    let columns = vec![
        Column::words("what", "what"),
        Column::numbers("runs", "runs"),
        Column::numbers("first", "after the first"),
        Column::numbers("last", "after the last"),
        Column::numbers("growth", "growth"),
    ];
    let trends = trends(inputs);
    let is_flat = !trends.is_empty() && trends.iter().all(|(row, _)| row.outcome.exit_code() == 0);
    let mut table = Table::new("series", "Many runs in one process", columns).noted(format!(
        "{} again and again in one process, after {} runs to warm up.{}",
        record.case,
        record.warm_up_runs,
        if is_flat { pages::FLAT } else { "" }
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
        ]);
    }
    table
}

fn places(record: &MemoryRecord, title: &'static str) -> Table {
    let columns = vec![
        Column::numbers("bytes", "growth"),
        Column::numbers("blocks", "allocations a run"),
        Column::words("place", "allocated in, innermost first"),
    ];
    let mut table = Table::new("places", title, columns);
    for site in &record.sites {
        table.row(vec![
            Cell::number(Some(site.bytes_per_run), Unit::BytesPerRun, Missing::NotMeasured),
            Cell::number(Some(site.blocks_per_run), Unit::Plain, Missing::NotMeasured),
            Cell::foreign(&site.frames.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(" < ")),
        ]);
    }
    table
}

fn counters(counted: &[CountedCase]) -> Table {
    let columns =
        vec![Column::words("case", "case"), Column::words("counter", "counter"), Column::numbers("count", "count")];
    let mut table = Table::new("counters", "Exact counters", columns);
    for case in counted {
        for (name, counter) in &case.counters {
            let unit = if Counts::of(name) == Counts::Bytes { Unit::Bytes } else { Unit::Count };
            table.row(vec![Cell::text(case.id.to_string()), counter_name(name), counter_cell(*counter, unit)]);
        }
    }
    table
}
