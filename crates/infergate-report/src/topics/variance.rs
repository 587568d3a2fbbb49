//! How much each figure varies: within all samples, and between fresh processes.

use crate::figures::{self, Spread};
use crate::inputs::Inputs;
use crate::model::{Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::units;
use infergate_core::case::Case;
use infergate_judge::CV_LIMIT;
use infergate_receipts::{Metric, Receipt};

/// Up to this a case is steady: as much as a gate calls a change.
const STEADY: f64 = 0.02;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let columns = vec![
        Column::words("case", "case"),
        Column::words("figure", "figure"),
        Column::numbers("deviation", "std dev").about("sample standard deviation, n - 1"),
        Column::numbers("cv", "CV of samples").about("standard deviation / mean of all samples"),
        Column::numbers("cv_processes", "CV of processes").about("of the medians of fresh processes"),
    ];
    let mut table = Table::new("variance", "", columns);
    for case in &receipt.cases {
        for &figure in figures::of_phase(case.id.phase()) {
            let spread = Spread::of(figure, case);
            let between = match figures::variation(figure, case) {
                Ok(cv) => Cell::number(Some(cv), Unit::Fraction, Missing::Undefined),
                Err(missing) => Cell::Missing(missing),
            };
            table.row(vec![
                Cell::text(case.id.to_string()),
                Cell::text(figures::name(figure)),
                spread.deviation(),
                spread.variation(),
                between,
            ]);
        }
    }
    let finding = Variations::of(receipt).and_then(|variations| variations.finding());
    Some(Section::new("variance", "Variance").with([table]).with(finding).ranked(2))
}

struct Variations {
    /// The case that varies most first, each with the figure it is gated by.
    cases: Vec<(Case, &'static str, f64)>,
}

impl Variations {
    fn of(receipt: &Receipt) -> Option<Self> {
        let known = receipt.cases.iter().filter_map(|case| {
            let figure = Metric::gated(case.id);
            Some((case.id, figures::name(figure), figures::variation(figure, case).ok()?))
        });
        let mut cases: Vec<(Case, &'static str, f64)> = known.collect();
        cases.sort_by(|a, b| b.2.total_cmp(&a.2));
        (!cases.is_empty()).then_some(Self { cases })
    }

    fn above(&self) -> usize {
        self.cases.iter().filter(|(.., cv)| *cv > CV_LIMIT).count()
    }

    /// The cases whose processes differ most, where any differs by more than the limit; else how steady they are.
    fn finding(&self) -> Option<Finding> {
        let (worst, _, cv) = *self.cases.first()?;
        let (cases, above) = (self.cases.len(), self.above());
        let percent = |fraction| units::percent(Some(fraction));
        let shown = percent(cv);
        let (tone, said) = match above {
            0 if cv <= STEADY => {
                (Tone::Good, format!("All {cases} cases are steady between processes; {worst} varies most, by {shown}"))
            }
            0 => (
                Tone::Plain,
                format!(
                    "{worst} varies most between processes, by {shown}: a smaller difference between two runs says nothing"
                ),
            ),
            above => (
                Tone::Warn,
                format!(
                    "{above} of {cases} cases vary by more than {} between processes; {worst} varies most, by {shown}",
                    percent(CV_LIMIT)
                ),
            ),
        };
        Some(Finding::new(tone, said))
    }
}

/// The title of a run whose times are no measure of the engine; `None` for any other.
pub fn unusable(inputs: &Inputs) -> Option<String> {
    let variations = Variations::of(inputs.head.as_ref()?)?;
    let (above, cases, (.., cv)) = (variations.above(), variations.cases.len(), variations.cases.first()?);
    let which = if above == cases { "these times".into() } else { format!("the times of {above} of {cases} cases") };
    let cv = units::percent(Some(*cv));
    (above > 0).then(|| format!("Do not use {which}: between processes they vary by up to {cv}"))
}
