//! What to do about the numbers, by rules: each says the number it rests on, and there is none without. And what to run next.

use infergate_core::stats::samples_needed;

use super::ends;
use super::latency::{STEADY, drift, too_unsteady};
use super::request::middle_start;
use super::scaling::families;
use crate::figures::{self, CaseFigure};
use crate::inputs::Inputs;
use crate::load::WAITED_FOR_NS;
use crate::model::Section;
use crate::units::{change, duration, percent, times};
use infergate_judge::CV_LIMIT;
use infergate_receipts::{CaseRecord, Metric, Receipt};

/// A piece of advice.
type Rule = fn(&Receipt) -> Option<String>;

/// The rules, in the order they are read. A new one is a function and a line.
const RULES: &[Rule] = &[varies, warms_up, long_prompts, keep_it_warm, slowest_by_hardware, few_samples];
/// Those on how to measure.
const OF_THE_RUN: &[Rule] = &[varies, warms_up, few_samples];

/// A cold start that takes this many times as long as a warm one is worth a process that stays.
const COLD_TIMES: f64 = 1.5;
/// Below this part of what the hardware gives there is something to gain.
const ROOM: f64 = 0.5;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    // Times that are no measure of the engine say nothing of it.
    let rules = if too_unsteady(inputs).is_some() { OF_THE_RUN } else { RULES };
    let mut advice: Vec<String> = rules.iter().filter_map(|rule| rule(receipt)).collect();
    if !receipt.engine.is_of_benches() {
        advice.push(format!(
            "Run next: {0} memory for what loading and each request keep, {0} load --target local for many users; {0} report --format csv makes tables of the \
             receipt, which has every sample",
            inputs.program
        ));
    }
    Some(Section::new("recommendations", "What to do").with([advice]))
}

/// The case whose samples vary most, where that is too much.
fn varies(receipt: &Receipt) -> Option<String> {
    let gated = |case: &CaseRecord| Metric::gated(case.id);
    let [_, (case, cv)] = ends(&receipt.cases, |case| CaseFigure::of(gated(case), case).variation().value())?;
    (cv > CV_LIMIT).then(|| {
        format!(
            "Measure again on an idle machine, on cores of its own: {} of {} varies by {} from sample to sample, and up to {} is steady",
            figures::name(gated(case)),
            case.id,
            percent(cv),
            percent(CV_LIMIT)
        )
    })
}

/// The case that gets faster most within a process.
fn warms_up(receipt: &Receipt) -> Option<String> {
    let [(case, drift), _] = ends(&receipt.cases, drift)?;
    let (case, change) = (case.id, change(drift));
    (drift < -STEADY).then(|| {
        format!("Warm up for longer (--seconds-per-case): {case} changes by {change} in the second half of a process")
    })
}

/// Up to which prompt the first token is there at once.
fn long_prompts(receipt: &Receipt) -> Option<String> {
    let families = families(receipt);
    let family = families.iter().find(|family| family.figure == Metric::Ttft)?;
    let points: Vec<(f64, f64)> =
        family.cases.iter().map(|(case, ttft_ns)| (case.id.prompt_tokens() as f64, *ttft_ns)).collect();
    let quick = points.iter().rposition(|(_, ttft_ns)| *ttft_ns <= WAITED_FOR_NS);
    let (fewer, least_ns) = points[quick.unwrap_or(0)];
    let (more, most_ns) = *points.get(quick.map_or(points.len() - 1, |at| at + 1))?;
    let remedy = match quick {
        Some(_) => {
            let between = (WAITED_FOR_NS - least_ns) / (most_ns - least_ns);
            format!("Keep prompts below about {:.0} tokens", fewer + (more - fewer) * between)
        }
        None => "Use a faster prefill or a smaller model".into(),
    };
    Some(format!(
        "{remedy} where somebody waits for the first word: below {} it comes nearly at once, and TTFT is {} at {fewer} prompt tokens and {} at \
         {more}",
        duration(WAITED_FOR_NS),
        duration(least_ns),
        duration(most_ns)
    ))
}

fn keep_it_warm(receipt: &Receipt) -> Option<String> {
    let (cold, warm) = (middle_start(&receipt.cold)?, middle_start(&receipt.warm)?);
    let (cold_ns, warm_ns) = (cold.ttft_ns() as f64, warm.ttft_ns() as f64);
    if cold.prompt_tokens != warm.prompt_tokens || warm_ns <= 0.0 || cold_ns < COLD_TIMES * warm_ns {
        return None;
    }
    Some(format!(
        "Keep the process running: the first token of a new one takes {}, {} as long as a warm one ({})",
        duration(cold_ns),
        times(cold_ns / warm_ns),
        duration(warm_ns)
    ))
}

/// Where the hardware gives most that is not taken.
fn slowest_by_hardware(receipt: &Receipt) -> Option<String> {
    let [(case, share), _] = ends(&receipt.cases, |case| figures::share_of_hardware(case, receipt))?;
    let (case, reached) = (case.id, percent(share));
    (share < ROOM).then(|| {
        format!("Optimise {case} first: it reaches {reached} of what the hardware gives, the least of all cases")
    })
}

/// The case with the fewest samples, where they are too few for a P95.
fn few_samples(receipt: &Receipt) -> Option<String> {
    let needed = samples_needed(0.95)?;
    let samples = receipt.cases.iter().map(|case| (case.id, figures::samples(case)));
    let few: Vec<_> = samples.filter(|(_, samples)| *samples < needed).collect();
    let (case, samples) = few.iter().min_by_key(|(_, samples)| *samples)?;
    Some(format!(
        "Take more samples (--runs, --seconds-per-case): a P95 takes {needed}, and {} of {} cases have fewer, {case} {samples}",
        few.len(),
        receipt.cases.len()
    ))
}
