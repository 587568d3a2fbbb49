//! How TTFT, tokens/s and E2E change with the length of the input.

use std::collections::{BTreeMap, BTreeSet};

use crate::figures;
use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Place, Section, Table, Tone, Unit};
use crate::units;
use infergate_core::case::{Case, Phase};
use infergate_judge::limit_fraction;
use infergate_receipts::Metric;
use infergate_receipts::{CaseRecord, Receipt};

/// Growth within this fraction of the input's is called "as the input".
const AS_THE_INPUT: f64 = 0.05;
/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 600;

/// Prompt lengths below this are a sentence.
const LEAST: usize = 3;

/// Cases that differ in their prompt alone, the shortest first, for one figure; or generations, each of another length.
pub struct Family<'a> {
    pub figure: Metric,
    /// `prefill`, `generate 64 tokens`, `generate 64 to 256 tokens`.
    pub name: String,
    pub cases: Vec<(&'a CaseRecord, f64)>,
}

/// Every family of at least two cases with a value each.
pub fn families(receipt: &Receipt) -> Vec<Family<'_>> {
    let generated = || receipt.cases.iter().filter(|case| case.id.phase() == Phase::Generate);
    let lengths: BTreeSet<usize> = generated().map(|case| case.id.output_tokens()).collect();
    // Where no two answers are as long, what grows with the prompt is still looked for, with both lengths beside it.
    let all_differ = lengths.len() == generated().count();
    let mut groups: BTreeMap<(Phase, Option<usize>), Vec<&CaseRecord>> = BTreeMap::new();
    for case in &receipt.cases {
        let length = (!all_differ).then(|| case.id.output_tokens());
        groups.entry((case.id.phase(), length)).or_default().push(case);
    }
    let mut families = Vec::new();
    for ((phase, _), mut cases) in groups {
        cases.sort_by_key(|case| (case.id.prompt_tokens(), case.id.output_tokens()));
        for figure in figures::that_scale(phase) {
            // A prefill's TTFT and a decode's speed say the same of prompts alone.
            if phase == Phase::Generate && all_differ && families.iter().any(|family: &Family| family.figure == *figure)
            {
                continue;
            }
            let known = cases
                .iter()
                .filter_map(|case| Some((*case, figures::summary(*figure, case).filter(|value| *value > 0.0)?)));
            let cases: Vec<(&CaseRecord, f64)> = known.collect();
            if let [(first, _), .., (last, _)] = cases[..] {
                families.push(Family { figure: *figure, name: family_name(first.id, last.id), cases });
            }
        }
    }
    families.sort_by_key(|family| family.figure);
    families
}

fn family_name(first: Case, last: Case) -> String {
    match (first.phase(), first.output_tokens(), last.output_tokens()) {
        (Phase::Generate, from, to) if from == to => format!("generate {from} tokens"),
        (Phase::Generate, from, to) => format!("generate {from} to {to} tokens"),
        (phase, ..) => phase.name().into(),
    }
}

fn output_tokens(case: Case) -> Cell {
    if case.phase() == Phase::Generate { Cell::count(case.output_tokens()) } else { Cell::text("") }
}

/// A line a case, each beside the shortest of its family.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let columns = vec![
        Column::words("figure", "figure"),
        Column::words("case", "case"),
        Column::numbers("prompt_tokens", "prompt").about("tokens"),
        Column::numbers("output_tokens", "output").about("tokens of a generation"),
        Column::numbers("median", "median").about("median over processes of each one's median"),
        Column::numbers("input", "input grows").about("prompt tokens / those of the shortest"),
        Column::numbers("growth", "figure grows").about("median / that of the shortest"),
        Column::numbers("change", "change").about("against the shortest"),
    ];
    let mut table = Table::new("scaling", "", columns);
    let families = families(receipt);
    for family in &families {
        let Some((shortest, least)) = family.cases.first().copied() else { continue };
        for (case, value) in &family.cases {
            let input = case.id.prompt_tokens() as f64 / shortest.id.prompt_tokens() as f64;
            table.row(vec![
                Cell::text(figures::name(family.figure)),
                Cell::text(case.id.to_string()),
                Cell::number(Some(case.id.prompt_tokens() as f64), Unit::Tokens, Missing::NotMeasured),
                output_tokens(case.id),
                Cell::number(Some(*value), Unit::of(family.figure), Missing::NotMeasured),
                Cell::number(Some(input), Unit::Times, Missing::Undefined),
                Cell::number(Some(value / least), Unit::Times, Missing::Undefined),
                Cell::number(Some(value / least - 1.0), Unit::Change, Missing::Undefined),
            ]);
        }
    }
    let findings: Vec<Finding> = families.iter().filter_map(growth).collect();
    let section = Section::new("scaling", "Scaling with the input").with([table]);
    Some(section.with([findings]).ranked(3).with(chart(receipt)))
}

/// From the shortest to the longest prompt of a family.
fn growth(family: &Family<'_>) -> Option<Finding> {
    let ((first, least), (last, most)) = (*family.cases.first()?, *family.cases.last()?);
    let (from, to) = (first.id.prompt_tokens(), last.id.prompt_tokens());
    if from == 0 || from == to {
        return None;
    }
    let (figure, name) = (figures::name(family.figure), &family.name);
    let (input, growth) = (to as f64 / from as f64, most / least);
    let said = if family.figure == Metric::DecodeSpeed {
        let change = units::change(growth - 1.0);
        format!("{name}: tokens/s change by {change} from a context of {from} to one of {to} tokens")
    } else {
        let pace = if growth > input * (1.0 + AS_THE_INPUT) {
            "faster than the input"
        } else if growth < input * (1.0 - AS_THE_INPUT) {
            "slower than the input"
        } else {
            "as the input does"
        };
        format!("{name}: from {from} to {to} prompt tokens {figure} grows {growth:.1} times, {pace} ({input:.1} times)")
    };
    Some(Finding::new(Tone::Plain, said))
}

/// TTFT against prompt length, with the least time the hardware could take, where at least three lengths were measured.
fn chart(receipt: &Receipt) -> Option<Chart> {
    let mut cases: Vec<&CaseRecord> = receipt.cases.iter().filter(|case| case.id.phase() == Phase::Prefill).collect();
    cases.sort_by_key(|case| case.id.prompt_tokens());
    let known: Vec<(&CaseRecord, f64)> =
        cases.into_iter().filter_map(|case| Some((case, figures::summary(Metric::Ttft, case)?))).collect();
    if known.len() < LEAST {
        return None;
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
    Some(Chart {
        id: "ttft".into(),
        title: "Time to first token against prompt length".into(),
        caption,
        x: Axis::new("prompt", Unit::Tokens).zero(),
        y: Axis::new("TTFT", Unit::Ns).zero(),
        layers,
    })
}
