//! A memory phase, for a person.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use infergate_core::printable::printable;

use super::model::{Cell, Missing, Table};
use super::terminal;
use super::units;
use super::words;
use crate::receipt::{CountedCase, Evidence, MemoryReceipt, MemoryRecord, Unit, Verdict, Witness};
use infergate_core::memory::leak::{allocations, asked, resident_trend};

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Blocks of a plot.
const PLOT_WIDTH: usize = 50;
/// The plot's height is at least this much: below it nothing is judged either.
const PLOT_SPAN_BYTES: u64 = 1 << 20;

/// The verdict: what loading took, what a generation took, both series, the counters, and the decision last.
pub fn verdict(receipt: &MemoryReceipt, verdict: &Verdict) -> String {
    let subject = terminal::engine(&receipt.engine, receipt.threads, &receipt.machine);
    let mut text = format!("\n{subject}\n\n");
    text += &loading(&receipt.memory, receipt.engine.weight_bytes);
    text += &inference(&receipt.memory);
    text += &runs(&receipt.memory, verdict);
    text += &sites(&receipt.memory, verdict);
    text += &counters(&receipt.counted);
    text.push('\n');
    for missing in &receipt.memory.missing {
        let _ = writeln!(text, "- {}", printable(missing));
    }
    text + &terminal::decision(verdict, "")
}

fn size(bytes: Option<u64>) -> String {
    units::bytes(bytes.map(|bytes| bytes as f64))
}

fn difference(from: Option<u64>, to: Option<u64>) -> Option<f64> {
    Some(to? as f64 - from? as f64)
}

/// Where the resident set of a loaded model comes from.
fn loading(record: &MemoryRecord, weight_bytes: Option<u64>) -> String {
    let load = &record.load;
    let (before, after) = (&load.before, &load.after);
    let heap = difference(before.live_bytes, after.live_bytes);
    let mapped = difference(before.mapped_bytes, after.mapped_bytes);
    let resident = difference(before.rss_bytes, after.rss_bytes);
    let mut text = format!(
        "loading   resident {} before, {} at most, {} after; weights {}\n",
        size(before.rss_bytes),
        size(load.peak_rss_bytes),
        size(after.rss_bytes),
        size(weight_bytes)
    );
    let other = match (resident, heap, mapped) {
        (Some(resident), Some(heap), Some(mapped)) => Some(resident - heap - mapped),
        _ => None,
    };
    let _ = writeln!(
        text,
        "          of the growth: heap {}, mapped files {}, other {}{}",
        units::bytes(heap),
        units::bytes(mapped),
        units::bytes(other),
        if other.is_some_and(|other| other < 0.0) { " (heap that nobody wrote to yet)" } else { "" }
    );
    if let (Some(heap), Some(weights), Some(transient)) =
        (heap, weight_bytes, difference(after.live_bytes, load.peak_live_bytes))
    {
        let copies = |heap: f64| heap / weights as f64;
        let reserved = record.inference.and_then(|inference| inference.sequence_bytes).filter(|bytes| *bytes > 0);
        let without = reserved.map_or_else(String::new, |bytes| {
            let alone = copies(heap - bytes as f64);
            format!(", {alone:.2} without the {} reserved for a sequence", size(Some(bytes)))
        });
        let _ = writeln!(
            text,
            "          the heap holds {:.2} times the weights{without}; {} more were needed while loading and given back",
            copies(heap),
            units::bytes(Some(transient.max(0.0)))
        );
    }
    text
}

fn inference(record: &MemoryRecord) -> String {
    let Some(inference) = record.inference else { return String::new() };
    let signed = |bytes: Option<i64>| units::bytes(bytes.map(|bytes| bytes as f64));
    format!(
        "one run   of {}: cache expected {}, reserved with the model {}, grown by {} ({} of it while decoding)\n          \
         prefill peak {} above rest\n",
        record.case,
        size(inference.cache_expected_bytes),
        size(inference.sequence_bytes),
        signed(inference.growth_bytes),
        signed(inference.decode_growth_bytes),
        size(inference.prefill_peak_bytes)
    )
}

fn runs(record: &MemoryRecord, verdict: &Verdict) -> String {
    let series = &record.runs;
    if series.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{} runs of {} after {} to warm up\n", series.len(), record.case, record.warm_up_runs);
    let seen = |witness: Witness| {
        verdict.rows.iter().find_map(|row| match &row.evidence {
            Evidence::Memory(memory) if memory.witness == witness => Some((row.outcome, memory)),
            _ => None,
        })
    };
    for (witness, column) in [(Witness::Heap, &series.live_bytes), (Witness::Resident, &series.rss_bytes)] {
        let (Some(first), Some(last)) = (column.first(), column.last()) else { continue };
        let plot = sparkline(column, PLOT_WIDTH, PLOT_SPAN_BYTES);
        let _ =
            writeln!(text, "  {:9} {plot}  {} to {}", words::witness(witness), size(Some(*first)), size(Some(*last)));
        if let Some((outcome, memory)) = seen(witness) {
            for line in std::iter::once(words::memory_trend(outcome, memory)).chain(words::rarer_leaks(memory)) {
                let _ = writeln!(text, "  {:9} {line}", "");
            }
        }
    }
    if let Some(fit) = resident_trend(asked(record, &series.rss_bytes)) {
        let _ = writeln!(
            text,
            "  {:9} noise {} (MAD around the line), autocorrelation {:.2}",
            "",
            units::bytes(Some(fit.mad_bytes)),
            fit.autocorrelation
        );
    }
    text
}

fn sites(record: &MemoryRecord, verdict: &Verdict) -> String {
    let mut text = String::new();
    for (at, site) in record.sites.iter().enumerate() {
        let _ = writeln!(
            text,
            "\n{} {} a run in {}, allocated in",
            if at == 0 { format!("{}:", words::sites(Some(verdict)).to_lowercase()) } else { "also:".into() },
            units::bytes(Some(site.bytes_per_run)),
            allocations(site.blocks_per_run)
        );
        for frame in &site.frames {
            let _ = writeln!(text, "  {}", printable(frame));
        }
    }
    text
}

/// A line a case, a column a counter; a range where it does not repeat.
fn counters(counted: &[CountedCase]) -> String {
    let names: BTreeSet<&str> = counted.iter().flat_map(|case| case.counters.keys().map(String::as_str)).collect();
    if names.is_empty() {
        return String::new();
    }
    let headings: Vec<String> = names.iter().map(|name| words::counter::name(name)).collect();
    let mut table = Table::brief(&[vec!["case"], headings.iter().map(String::as_str).collect()].concat());
    for case in counted {
        let cell = |name: &&str| match case.counters.get(*name) {
            None => Cell::Missing(Missing::NotCounted),
            Some(counter) => Cell::text(words::counter::value(Unit::of(name), *counter)),
        };
        let mut cells = vec![Cell::text(case.id.to_string())];
        cells.extend(names.iter().map(cell));
        table.row(cells);
    }
    terminal::paragraph(terminal::table(&table))
}

/// `values` in at most `width` blocks, each the largest of its share of the series. From bottom to top is at least `least_span`,
/// so that noise does not look like a mountain.
pub fn sparkline(values: &[u64], width: usize, least_span: u64) -> String {
    let Some(low) = values.iter().min().copied() else { return String::new() };
    let span = (values.iter().max().copied().unwrap_or(low) - low).max(least_span).max(1);
    let blocks = values.len().min(width.max(1));
    let share = |block: usize| {
        let (from, to) = (block * values.len() / blocks, (block + 1) * values.len() / blocks);
        let largest = values[from..to].iter().max().copied().unwrap_or(low);
        let level = u128::from(largest - low) * (BLOCKS.len() as u128 - 1) / u128::from(span);
        BLOCKS[usize::try_from(level).unwrap_or(0).min(BLOCKS.len() - 1)]
    };
    (0..blocks).map(share).collect()
}
