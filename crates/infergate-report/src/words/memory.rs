//! Words about the memory phase: what was looked at, how it moved, and what could have been seen.

use std::fmt::Write as _;

use crate::units;
use infergate_receipts::{MemoryEvidence, MemoryMeasure, Outcome, Verdict};

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What a measure looks at, in a word.
pub fn memory_measure(measure: MemoryMeasure) -> &'static str {
    match measure {
        MemoryMeasure::Heap => "heap",
        MemoryMeasure::Resident => "resident",
        MemoryMeasure::OpenFiles => "open files",
        MemoryMeasure::Threads => "threads",
    }
}

/// What the places of memory that outlives its run are called: a leak only where the verdict says so.
pub fn sites(verdict: Option<&Verdict>) -> &'static str {
    let mut rows = verdict.into_iter().flat_map(|verdict| &verdict.rows);
    let leaks = rows.any(|row| row.outcome == Outcome::Leak);
    if leaks { "Where it leaks" } else { "What stays allocated" }
}

/// How rare a leak of the heap may be and is still seen; `None` where that is not known.
pub fn rarer_leaks(memory: &MemoryEvidence) -> Option<String> {
    let certain = memory.certain_leak_interval?;
    let mut text = format!("a leak in each k-th run is certain to be seen up to k = {certain}");
    for (at, leak) in memory.random_leaks.iter().enumerate() {
        let gap = if at == 0 { ", one in a random k-th with a chance of" } else { "," };
        let _ = write!(text, "{gap} {} at k = {}", units::percent(Some(leak.chance)), leak.interval);
    }
    Some(text)
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
