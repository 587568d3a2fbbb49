//! Live heap and resident set over many runs of one process, as growth since the first run.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};

/// One chart, where a memory phase ran.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(record) = inputs.memory_record() else { return Vec::new() };
    let series = [("live heap", &record.runs.live_bytes), ("resident set", &record.runs.rss_bytes)];
    let layers: Vec<Layer> = series
        .into_iter()
        .enumerate()
        .filter(|(_, (_, column))| column.len() > 1)
        .map(|(n, (name, column))| line(name, column, n))
        .collect();
    if layers.is_empty() {
        return Vec::new();
    }
    vec![Chart {
        id: "memory".into(),
        title: "Memory over many runs of one process".into(),
        caption: "What each run left behind, since the first one. A leak is a line that keeps rising; noise goes up and down.".into(),
        x: Axis::new("run", Unit::Count),
        y: Axis::new("growth since the first run", Unit::Bytes).zero(),
        layers,
    }]
}

fn line(name: &str, column: &[u64], n: usize) -> Layer {
    let first = column.first().copied().unwrap_or_default();
    let points = column.iter().enumerate().map(|(run, bytes)| Place {
        x: (run + 1) as f64,
        y: *bytes as f64 - first as f64,
        hover: format!("{name} after run {}: {}", run + 1, Unit::Bytes.show(*bytes as f64)),
    });
    Layer::Line { name: name.into(), points: points.collect(), look: Look::nth(n), marked: column.len() <= 120 }
}
