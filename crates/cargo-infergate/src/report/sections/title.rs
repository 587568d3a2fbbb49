//! The title of a page without a verdict: what came out, in one sentence.

use super::findings;
use super::load::title as of_load;
use crate::gate::summary_ns;
use crate::report::inputs::Inputs;
use crate::report::words::pages;
use infergate::case::{Case, Phase};

/// The sentence; `None` where there is no number to say.
pub fn of(inputs: &Inputs) -> Option<String> {
    findings::unusable(inputs).or_else(|| of_run(inputs)).or_else(|| of_load(inputs))
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
