//! OpenMetrics text, for whatever scrapes files: gauges in base units, a line a case and process.

use std::fmt::Write as _;

use anyhow::Result;
use infergate_core::printable::printable_within;

use super::File;
use crate::receipt::Receipt;
use crate::report::figures;
use crate::report::inputs::Inputs;
use crate::report::load::{Metric, Point, View};
use crate::report::model::{MAX_WORD_CHARS, Report};

/// The figures: name, unit, help, and what a value is divided by.
const FAMILIES: [(Metric, &str, &str, &str, f64); 4] = [
    (Metric::Ttft, "infergate_ttft_seconds", "seconds", "Time to first token, median over processes.", 1e9),
    (Metric::Itl, "infergate_itl_seconds", "seconds", "Inter-token latency, median over processes.", 1e9),
    (Metric::DecodeSpeed, "infergate_decode_tokens_per_second", "", "Decode speed, median over processes.", 1.0),
    (Metric::E2e, "infergate_e2e_seconds", "seconds", "End-to-end latency, median over processes.", 1e9),
];

/// The figures of a load run: as above.
const LOAD_FAMILIES: [(Metric, &str, &str, &str, f64); 4] = [
    (Metric::Ttft, "infergate_load_ttft_seconds", "seconds", "Time to first token under load, median.", 1e9),
    (Metric::Itl, "infergate_load_itl_seconds", "seconds", "Inter-token latency under load, median.", 1e9),
    (Metric::E2e, "infergate_load_e2e_seconds", "seconds", "End-to-end latency under load, median.", 1e9),
    (
        Metric::DecodeSpeed,
        "infergate_load_decode_tokens_per_second",
        "",
        "Decode speed of a user under load, median.",
        1.0,
    ),
];

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let mut text = String::new();
    if let Some(receipt) = &inputs.head {
        for family in FAMILIES {
            gauge(&mut text, receipt, family);
        }
    }
    if let Some(view) = View::of(inputs) {
        for family in LOAD_FAMILIES {
            load_gauge(&mut text, &view, family);
        }
    }
    text.push_str("# EOF\n");
    Ok(vec![File::text("metrics.txt", text)])
}

fn gauge(text: &mut String, receipt: &Receipt, (figure, name, unit, help, divisor): (Metric, &str, &str, &str, f64)) {
    let known = receipt.cases.iter().filter(|case| figures::of_phase(case.id.phase()).contains(&figure));
    let known: Vec<(String, f64)> =
        known.filter_map(|case| Some((case.id.to_string(), figures::summary(figure, case)? / divisor))).collect();
    if known.is_empty() {
        return;
    }
    head(text, name, unit, help);
    let labels = format!(
        "engine=\"{}\",model=\"{}\",machine_class=\"{}\"",
        label(&receipt.engine.name),
        label(&receipt.engine.model),
        label(&receipt.machine.class)
    );
    for (case, value) in known {
        let _ = writeln!(text, "{name}{{case=\"{}\",{labels}}} {value}", label(&case));
    }
}

fn head(text: &mut String, name: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} gauge");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

fn load_gauge(
    text: &mut String,
    view: &View<'_>,
    (metric, name, unit, help, divisor): (Metric, &str, &str, &str, f64),
) {
    let known: Vec<(&Point, f64)> =
        view.digest.points.iter().filter_map(|point| Some((point, point.spread(metric).p50? / divisor))).collect();
    if known.is_empty() {
        return;
    }
    head(text, name, unit, help);
    for (point, value) in known {
        let target =
            point.target.map_or_else(String::new, |target| format!(",target=\"{}\"", label(&view.target(target))));
        let _ = writeln!(
            text,
            "{name}{{scenario=\"{}\",level=\"{}\",load=\"{}\"{target}}} {value}",
            label(&view.scenario(point.scenario)),
            point.level + 1,
            point.arrivals.name()
        );
    }
}

/// A label's value: one line, with what would end it escaped.
fn label(value: &str) -> String {
    printable_within(value, MAX_WORD_CHARS).replace('\\', "\\\\").replace('"', "\\\"")
}
