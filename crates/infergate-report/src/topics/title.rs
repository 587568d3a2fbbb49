//! The title of a page: what came out, in one sentence; and what was measured, in one line.

use super::ends;
use super::latency::too_unsteady;
use super::load::{advice, at_most_users, failures, winners};
use crate::inputs::Inputs;
use crate::load::Metric;
use crate::model::Headline;
use crate::{units, words};
use infergate_core::case::Phase;
use infergate_core::printable::first_of;
use infergate_judge::summary_ns;
use infergate_receipts::{CaseRecord, Evidence, TargetRecord, Verdict};

/// Targets in a line.
const MOST_NAMED: usize = 4;

/// What was decided, or the numbers; both where nothing but targets was judged and one was missed. `None` where there is no number to say.
pub fn of(inputs: &Inputs, headline: Option<&Headline>) -> Option<String> {
    let numbers = || too_unsteady(inputs).or_else(|| of_run(inputs)).or_else(|| of_load(inputs));
    let Some(Headline { ended, said, exit_code, .. }) = headline else { return numbers() };
    let said = format!("{ended}: {said}");
    let is_of_targets = |verdict: &Verdict| {
        !verdict.rows.is_empty() && verdict.rows.iter().all(|row| matches!(row.evidence, Evidence::Target(_)))
    };
    let numbers = if inputs.verdict.as_ref().is_some_and(is_of_targets) { numbers() } else { None };
    Some(match numbers {
        Some(numbers) if *exit_code == 0 => numbers,
        Some(numbers) => format!("{said}. {numbers}"),
        None => said,
    })
}

/// The first token of a run and each further one, by the case with the shortest prompt of each phase.
fn of_run(inputs: &Inputs) -> Option<String> {
    let cases = &inputs.head.as_ref()?.cases;
    // Of the shortest and the longest prompt.
    let ends_of = |phase: Phase| {
        let of_phase = cases.iter().filter(|case| case.id.phase() == phase);
        let time = |case: &CaseRecord| Some((case.id.prompt_tokens(), units::duration(summary_ns(&case.processes)?)));
        let mut times: Vec<(usize, String)> = of_phase.filter_map(time).collect();
        times.sort();
        Some([times.first()?.clone(), times.last()?.clone()])
    };
    let first = ends_of(Phase::Prefill).map(|[(few, quick), (many, slow)]| {
        let longest = if few == many { String::new() } else { format!(" and {slow} after one of {many}") };
        format!("The first token comes {quick} after a prompt of {few} tokens{longest}")
    });
    match (first, ends_of(Phase::Decode)) {
        (Some(first), Some([(_, further), _])) => Some(format!("{first}, each further one after {further}")),
        (None, Some([(_, further), _])) => Some(format!("A token comes each {further}")),
        (first, None) => first,
    }
}

/// Which of two targets is faster, or what the most users get: the wait for the first token, and how many times the output of one.
fn of_load(inputs: &Inputs) -> Option<String> {
    let view = inputs.load.as_ref()?;
    let of_users = || {
        let shared = at_most_users(view);
        let points = if shared.is_empty() { view.charted().collect() } else { shared };
        let times = ends(points.iter().copied(), |point| {
            Some(view.scaling(point)? * f64::from(point.users().filter(|users| *users > 1)?))
        });
        let [(point, shortest), (_, longest)] = ends(points, |point| point.p50(Metric::Ttft))?;
        let after = units::from_to(units::duration, shortest, longest);
        let times = times.map_or_else(String::new, |[(_, least), (_, most)]| {
            let times = units::from_to(|times| format!("{times:.1}"), least, most);
            format!(", and all together get {times} times the output of one")
        });
        let what = if view.has_tokens() { "the first token" } else { "an embedding" };
        let load = point.arrivals.name();
        let at_load = match advice::readers(view) {
            Some(readers) => format!("{readers}; at {load}"),
            None => format!("At {load}"),
        };
        Some(format!("{at_load} {what} comes after {after}{times}"))
    };
    let failed = failures::sentence(view);
    failed
        .into_iter()
        .chain(winners::sentence(view).or_else(of_users))
        .reduce(|failed, rest| format!("{failed}. {rest}"))
}

/// Who was measured; empty where the files do not say.
pub fn subject(inputs: &Inputs) -> String {
    let engine =
        inputs.subject().map(|subject| words::subject::engine(subject.engine, subject.threads, subject.machine));
    engine.or_else(|| targets(inputs)).unwrap_or_default()
}

/// What was put under load: the first of them, where there are many.
fn targets(inputs: &Inputs) -> Option<String> {
    let view = inputs.load.as_ref()?;
    let named = (0..).zip(&view.receipt.targets).map(|(index, target)| match target {
        TargetRecord::Endpoint { name, model, url, .. } if name.is_empty() => {
            format!("{model} on {url}")
        }
        TargetRecord::Endpoint { model, .. } => format!("{} ({model})", view.target(index)),
        TargetRecord::Local { engine, .. } => format!("{} on {}", engine.model, engine.name),
    });
    Some(format!("{} under load", first_of(&named.collect::<Vec<String>>(), MOST_NAMED, ", ")))
}
