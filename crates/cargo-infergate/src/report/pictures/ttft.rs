//! TTFT against prompt length, with the least time the hardware could take.

use crate::gate::limit_fraction;
use crate::receipt::{CaseRecord, Metric};
use crate::report::figures;
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use infergate_core::case::Phase;

/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 600;

/// Prompt lengths below this are a sentence.
const LEAST: usize = 3;

/// One chart, where at least three prompt lengths were measured.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let mut cases: Vec<&CaseRecord> = receipt.cases.iter().filter(|case| case.id.phase() == Phase::Prefill).collect();
    cases.sort_by_key(|case| case.id.prompt_tokens());
    let known: Vec<(&CaseRecord, f64)> =
        cases.into_iter().filter_map(|case| Some((case, figures::summary(Metric::Ttft, case)?))).collect();
    if known.len() < LEAST {
        return Vec::new();
    }
    let place = |case: &CaseRecord, ns: f64, what: &str| Place {
        x: case.id.prompt_tokens() as f64,
        y: ns,
        hover: format!("{what} at {} tokens: {}", case.id.prompt_tokens(), Unit::Ns.show(ns)),
    };
    // An equal share for each case, so that none goes without.
    let share = (MOST_POINTS / known.len()).max(1);
    let samples = known.iter().flat_map(|(case, _)| {
        let sample = |ns| Place { hover: String::new(), ..place(case, ns, "") };
        figures::values(Metric::Ttft, case).into_iter().take(share).map(sample).collect::<Vec<_>>()
    });
    let medians = known.iter().map(|(case, ns)| place(case, *ns, "median")).collect();
    let least = known.iter().filter_map(|(case, ns)| {
        let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), Some(*ns))?;
        Some(place(case, ns * fraction, "least possible"))
    });
    let least: Vec<Place> = least.collect();
    let mut layers = vec![
        Layer::Points { name: "samples".into(), points: samples.collect(), look: Look::head() },
        Layer::Line { name: "median".into(), points: medians, look: Look::head(), marked: true },
    ];
    let mut caption = String::from("The line joins medians over processes.");
    if least.len() > 1 {
        caption += " The hardware limit is the work that no implementation can avoid, at the rates the probes measured on this \
                    machine.";
        let name = "hardware limit".into();
        layers.push(Layer::Line { name, points: least, look: Look::ink(), marked: true });
    }
    vec![Chart {
        id: "ttft".into(),
        title: "Time to first token against prompt length".into(),
        caption,
        x: Axis::new("prompt", Unit::Tokens).zero(),
        y: Axis::new("TTFT", Unit::Ns).zero(),
        layers,
    }]
}
