//! The title of a page: what came out, in one sentence.

use super::findings;
use super::load::title as of_load;
use crate::gate::summary_ns;
use crate::receipt::{Evidence, Verdict};
use crate::report::inputs::Inputs;
use crate::report::model::Headline;
use crate::report::words::pages;
use infergate_core::case::{Case, Phase};

/// What was decided, or the numbers; both where nothing but targets was judged. `None` where there is no number to say.
pub fn of(inputs: &Inputs, headline: Option<&Headline>) -> Option<String> {
    let numbers = || findings::unusable(inputs).or_else(|| of_run(inputs)).or_else(|| of_load(inputs));
    let Some(Headline { said, .. }) = headline else { return numbers() };
    let is_of_targets = |verdict: &Verdict| {
        !verdict.rows.is_empty() && verdict.rows.iter().all(|row| matches!(row.evidence, Evidence::Target(_)))
    };
    let numbers = if inputs.verdict.as_ref().is_some_and(is_of_targets) { numbers() } else { None };
    Some(numbers.map_or_else(|| said.clone(), |numbers| format!("{said}. {numbers}")))
}

/// The case with the shortest prompt of each phase.
fn of_run(inputs: &Inputs) -> Option<String> {
    let cases = &inputs.head.as_ref()?.cases;
    let shortest = |phase: Phase| -> Option<(Case, f64)> {
        let of_phase = cases.iter().filter(|case| case.id.phase() == phase);
        let case = of_phase.min_by_key(|case| case.id.prompt_tokens())?;
        Some((case.id, summary_ns(&case.processes)?))
    };
    pages::of_run(shortest(Phase::Prefill), shortest(Phase::Decode))
}
