//! What many runs of one process left behind, as growth since the first run, with what counts as growth.

use crate::receipt::{MemoryEvidence, MemoryRecord, Witness};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::memory::trends;
use crate::report::words;

/// One chart of what grew or could not be decided, and of everything where nothing was judged. A flat line is a sentence.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(record) = inputs.memory_record() else { return Vec::new() };
    let trends = trends(inputs);
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
        return Vec::new();
    }
    vec![Chart {
        id: "memory".into(),
        title: "Memory over many runs of one process".into(),
        caption: "What each run left behind, since the first one. A leak is a line that keeps rising.".into(),
        x: Axis::new("run", Unit::Count),
        y: Axis::new("growth since the first run", Unit::Bytes).zero(),
        layers,
    }]
}

fn column(record: &MemoryRecord, witness: Witness) -> &[u64] {
    match witness {
        Witness::Heap => &record.runs.live_bytes,
        Witness::Resident => &record.runs.rss_bytes,
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
