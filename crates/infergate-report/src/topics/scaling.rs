//! How TTFT, tokens/s and E2E change with the length of the input.

use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Finding, Layer, Look, Marks, Missing, Place, Rows, Section, Unit};
use crate::{figures, units};
use infergate_core::case::Phase;
use infergate_receipts::{CaseRecord, Metric, Receipt};

/// Prompt lengths below this are a sentence.
const LEAST: usize = 3;

/// Each figure that tells about growth, and the phases that tell it, the plainest first.
const FIGURES: [(Metric, &[Phase]); 3] = [
    (Metric::Ttft, &[Phase::Prefill, Phase::Generate]),
    (Metric::DecodeSpeed, &[Phase::Decode, Phase::Generate]),
    (Metric::E2e, &[Phase::Generate]),
];

/// The cases of a phase, the shortest prompt first, each with the value of one figure.
pub struct Family<'a> {
    pub figure: Metric,
    pub cases: Vec<(&'a CaseRecord, f64)>,
}

/// A family a figure, of the first phase with at least two cases that have a value.
pub fn families(receipt: &Receipt) -> Vec<Family<'_>> {
    let of = |(figure, phases): &(Metric, &[Phase])| phases.iter().find_map(|phase| family(receipt, *figure, *phase));
    FIGURES.iter().filter_map(of).collect()
}

fn family(receipt: &Receipt, figure: Metric, phase: Phase) -> Option<Family<'_>> {
    let cases = receipt.cases.iter().filter(|case| case.id.phase() == phase);
    let known = cases.filter_map(|case| Some((case, figures::summary(figure, case).filter(|value| *value > 0.0)?)));
    let mut cases: Vec<(&CaseRecord, f64)> = known.collect();
    cases.sort_by_key(|(case, _)| (case.id.prompt_tokens(), case.id.output_tokens()));
    (cases.len() > 1).then_some(Family { figure, cases })
}

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let families = families(receipt);
    let lines = families.iter().flat_map(|family| {
        let cases = family.cases.iter();
        cases.map(move |(case, value)| (family, *case, *value))
    });
    let table = Rows::of("scaling", "", lines)
        .words("figure", |(family, ..)| figures::name(family.figure))
        .words("case", |(_, case, _)| case.id.to_string())
        .titled_numbers("prompt_tokens", "prompt", |(_, case, _)| Cell::of(case.id.prompt_tokens(), Unit::Tokens))
        .titled_numbers("output_tokens", "output", |(_, case, _)| match case.id.phase() {
            Phase::Generate => case.id.output_tokens().into(),
            _ => Cell::text(""),
        })
        .numbers("median", |(family, _, value)| Cell::of(*value, Unit::of(family.figure)))
        .about("over processes")
        .titled_numbers("input", "input grows", |(family, case, _)| {
            let growth = case.id.prompt_tokens() as f64 / family.cases[0].0.id.prompt_tokens() as f64;
            Cell::number(growth, Unit::Times, Missing::Undefined)
        })
        .about("prompt tokens / those of the shortest")
        .titled_numbers("growth", "figure grows", |(family, _, value)| {
            Cell::of(*value / family.cases[0].1, Unit::Times)
        })
        .about("median / that of the shortest")
        .table();
    let mut growths = families.iter().filter_map(|family| growth(family, receipt));
    let section = Section::new("scaling", "Scaling with the input").with([table]);
    // A page has few findings.
    let section = section.with(growths.next().map(Finding::plain)).with([growths.collect::<Vec<String>>()]);
    Some(section.with(chart(receipt)))
}

/// From the shortest to the longest prompt of a family.
fn growth(family: &Family<'_>, receipt: &Receipt) -> Option<String> {
    let ((first, least), (last, most)) = (*family.cases.first()?, *family.cases.last()?);
    let (from, to) = (first.id.prompt_tokens(), last.id.prompt_tokens());
    if from == 0 || from == to {
        return None;
    }
    let (phase, figure) = (first.id.phase().name(), figures::name(family.figure));
    let (input, growth) = (to as f64 / from as f64, most / least);
    let output = match family.figure {
        Metric::E2e => {
            format!(", output {}", units::times(last.id.output_tokens() as f64 / first.id.output_tokens() as f64))
        }
        _ => String::new(),
    };
    let variations = [first, last].map(|case| figures::variation(family.figure, case));
    let noise = variations.iter().filter_map(Cell::value).fold(0.0, f64::max);
    let (expected, what) = match family.figure {
        Metric::Ttft => (Some(input), "the prompt"),
        Metric::E2e => {
            let both = figures::least_ns(last, receipt).zip(figures::least_ns(first, receipt));
            (both.map(|(last, first)| last / first), "its work")
        }
        _ => (None, ""),
    };
    let how = match expected {
        _ if (growth - 1.0).abs() <= noise => ", not shown to change".into(),
        None => String::new(),
        Some(expected) if (growth / expected - 1.0).abs() <= noise => format!(", in proportion to {what}"),
        Some(expected) => format!(", {} than in proportion to {what}", if growth > expected { "more" } else { "less" }),
    };
    let ([input, growth], differ) = ([input, growth].map(units::times), variations.map(|cv| cv.shown()).join(" and "));
    Some(format!(
        "{figure} of {phase} at {to} prompt tokens is {growth} that at {from} (prompt {input}{output}){how}; processes differ by {differ}"
    ))
}

/// TTFT against prompt length, with the least time the hardware could take, where at least three lengths were measured.
fn chart(receipt: &Receipt) -> Option<Chart> {
    let known = family(receipt, Metric::Ttft, Phase::Prefill).filter(|family| family.cases.len() >= LEAST)?.cases;
    let place = |case: &CaseRecord, ns: f64, what: &str| {
        let tokens = case.id.prompt_tokens();
        Place::new(tokens as f64, ns, format!("{what} at {tokens} tokens: {}", units::duration(ns)))
    };
    let medians = known.iter().map(|(case, ns)| place(case, *ns, "median")).collect();
    let least =
        known.iter().filter_map(|(case, _)| Some(place(case, figures::least_ns(case, receipt)?, "least possible")));
    let least: Vec<Place> = least.collect();
    let mut layers = vec![Layer::new("median", Look::head(), Marks::MarkedLine(medians))];
    let mut caption = String::from("The line joins medians over processes.");
    if least.len() > 1 {
        caption += " The hardware limit is the least work at the rates that the probes measured.";
        layers.push(Layer::new("hardware limit", Look::ink(), Marks::MarkedLine(least)));
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
