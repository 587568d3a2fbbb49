//! How TTFT, tokens/s and E2E change with the length of the input.

use std::collections::{BTreeMap, BTreeSet};

use crate::receipt::{CaseRecord, Metric, Receipt};
use crate::report::figures;
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Missing, Section, Table, Unit};
use infergate_core::case::{Case, Phase};

/// Cases that differ in their prompt alone, the shortest first, for one figure; or generations, each of another length.
pub struct Family<'a> {
    /// What is looked at.
    pub figure: Metric,
    /// `prefill`, `generate 64 tokens`, `generate 64 to 256 tokens`.
    pub name: String,
    /// At least two.
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
        for &figure in figures::that_scale(phase) {
            // A prefill's TTFT and a decode's speed say the same of prompts alone.
            if phase == Phase::Generate && all_differ && families.iter().any(|family: &Family| family.figure == figure)
            {
                continue;
            }
            let known = cases
                .iter()
                .filter_map(|case| Some((*case, figures::summary(figure, case).filter(|value| *value > 0.0)?)));
            let cases: Vec<(&CaseRecord, f64)> = known.collect();
            if let [(first, _), .., (last, _)] = cases[..] {
                families.push(Family { figure, name: family_name(first.id, last.id), cases });
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
pub fn section(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut table = Table::new(
        "scaling",
        "",
        vec![
            Column::words("figure", "figure"),
            Column::words("case", "case"),
            Column::numbers("prompt_tokens", "prompt").about("tokens"),
            Column::numbers("output_tokens", "output").about("tokens of a generation"),
            Column::numbers("median", "median").about("median over processes of each one's median"),
            Column::numbers("input", "input grows").about("prompt tokens / those of the shortest"),
            Column::numbers("growth", "figure grows").about("median / that of the shortest"),
            Column::numbers("change", "change").about("against the shortest"),
        ],
    );
    for family in families(receipt) {
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
    (!table.rows.is_empty()).then(|| Section::new("scaling", "Scaling with the input").with(table))
}
