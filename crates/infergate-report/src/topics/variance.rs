//! How much cases vary between fresh processes.

use infergate_core::case::Case;
use infergate_judge::CV_LIMIT;
use infergate_receipts::{Metric, Receipt};

use crate::figures;
use crate::inputs::Inputs;
use crate::model::{Finding, Tone};
use crate::units;

/// Up to this a case is steady: as much as a gate calls a change.
const STEADY: f64 = 0.02;

/// Coefficients of variation of the figures that cases are gated by, the largest first.
fn variations(receipt: &Receipt) -> Vec<(Case, f64)> {
    let known = receipt.cases.iter().filter_map(|case| {
        let cv = figures::variation(Metric::gated(case.id), case);
        Some((case.id, cv.quantity()?.value))
    });
    let mut cases: Vec<(Case, f64)> = known.collect();
    cases.sort_by(|a, b| b.1.total_cmp(&a.1));
    cases
}

fn above_limit(cases: &[(Case, f64)]) -> usize {
    cases.iter().filter(|(_, cv)| *cv > CV_LIMIT).count()
}

/// The case whose processes differ most, where any differs by more than the limit; else how steady they are.
pub fn finding(receipt: &Receipt) -> Option<Finding> {
    let cases = variations(receipt);
    let (worst, cv) = *cases.first()?;
    let (above, cases) = (above_limit(&cases), cases.len());
    let (shown, limit) = (units::percent(Some(cv)), units::percent(Some(CV_LIMIT)));
    let most = format!("{worst} varies most, by {shown}");
    Some(match above {
        0 if cv <= STEADY => {
            Finding::new(Tone::Good, format!("All {cases} cases are steady between processes; {most}"))
        }
        0 => Finding::plain(format!(
            "{worst} varies most between processes, by {shown}: a smaller difference between two runs says nothing"
        )),
        above => Finding::warn(format!("{above} of {cases} cases vary by more than {limit} between processes; {most}")),
    })
}

/// The title of a run whose times are no measure of the engine; `None` for any other.
pub fn unusable(inputs: &Inputs) -> Option<String> {
    let cases = variations(inputs.head.as_ref()?);
    let (above, (_, cv)) = (above_limit(&cases), cases.first()?);
    let all = cases.len();
    let which = if above == all { "these times".into() } else { format!("the times of {above} of {all} cases") };
    let cv = units::percent(Some(*cv));
    (above > 0).then(|| format!("Do not use {which}: between processes they vary by up to {cv}"))
}
