//! What to do about the numbers, by rules: each says the number it rests on, and there is none without.

use infergate_core::stats::samples_needed;

use super::load::found;
use super::request::middle_start;
use super::scaling::families;
use crate::gate::{limit_fraction, summary_ns};
use crate::receipt::{CaseRecord, Metric, Receipt};
use crate::report::figures::{self, Spread};
use crate::report::inputs::Inputs;
use crate::report::load::WAITED_FOR_NS;
use crate::report::model::{Block, Finding, Section, Tone, Unit};
use crate::report::words::recommendations as words;

/// The rules, in the order they are read: what makes the others' numbers no measure comes first. A new one is a function and a line.
const RULES: &[fn(&Receipt) -> Option<Finding>] =
    &[varies, long_prompts, keep_it_warm, slowest_by_hardware, few_samples];

/// Samples of a case that vary by more than this are not steady.
const CV_LIMIT: f64 = 0.20;
/// A cold start that takes this many times as long as a warm one is worth a process that stays.
const COLD_TIMES: f64 = 1.5;
/// Below this part of what the hardware gives there is something to gain.
const ROOM: f64 = 0.5;

/// What the rules recommend.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let found: Vec<Finding> = RULES.iter().filter_map(|rule| rule(receipt)).collect();
    (!found.is_empty()).then(|| Section::new("recommendations", "Recommendations").with(Block::Findings(found)))
}

/// The case whose samples vary most, where that is too much.
fn varies(receipt: &Receipt) -> Option<Finding> {
    let all = receipt.cases.iter().filter_map(|case| {
        let figure = Metric::gated(case.id);
        let cv = Spread::of(figure, case).variation().quantity()?.value;
        Some((case.id, figure, cv))
    });
    let (case, figure, cv) = all.filter(|(.., cv)| *cv > CV_LIMIT).max_by(|a, b| a.2.total_cmp(&b.2))?;
    let figures = [(format!("CV of {} of {case}", figures::name(figure)), cv, Unit::Fraction)];
    found(Tone::Warn, words::measure_in_quiet(case, figures::name(figure), cv, CV_LIMIT), &figures)
}

/// Up to which prompt the first token is there at once.
fn long_prompts(receipt: &Receipt) -> Option<Finding> {
    let families = families(receipt);
    let family = families.iter().find(|family| family.figure == Metric::Ttft)?;
    let quick = family.cases.iter().rev().find(|(_, ttft_ns)| *ttft_ns <= WAITED_FOR_NS);
    let (longest, most) = family.cases.last().filter(|(_, ttft_ns)| *ttft_ns > WAITED_FOR_NS)?;
    let name = |case: &CaseRecord| format!("TTFT of {}", case.id);
    let long = (name(longest), *most, Unit::Ns);
    let Some((shorter, least)) = quick else {
        let (shortest, least) = family.cases.first()?;
        let said = words::no_prompt_is_short((shortest.id.prompt_tokens(), *least), WAITED_FOR_NS);
        return found(Tone::Warn, said, &[(name(shortest), *least, Unit::Ns), long]);
    };
    let (short, long_tokens) = (shorter.id.prompt_tokens(), longest.id.prompt_tokens());
    let said = words::shorter_prompts((short, *least), (long_tokens, *most), WAITED_FOR_NS);
    found(Tone::Plain, said, &[(name(shorter), *least, Unit::Ns), long])
}

/// What a process that stays saves.
fn keep_it_warm(receipt: &Receipt) -> Option<Finding> {
    let (cold, warm) = (middle_start(&receipt.cold)?, middle_start(&receipt.warm)?);
    let (cold_ns, warm_ns) = (cold.ttft_ns() as f64, warm.ttft_ns() as f64);
    if cold.prompt_tokens != warm.prompt_tokens || warm_ns <= 0.0 || cold_ns < COLD_TIMES * warm_ns {
        return None;
    }
    let figures = [("cold TTFT".to_owned(), cold_ns, Unit::Ns), ("warm TTFT".to_owned(), warm_ns, Unit::Ns)];
    found(Tone::Plain, words::keep_it_warm(cold_ns, warm_ns), &figures)
}

/// Where the hardware gives most that is not taken.
fn slowest_by_hardware(receipt: &Receipt) -> Option<Finding> {
    let shares = receipt.cases.iter().filter_map(|case| {
        let share = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes))?;
        (share < ROOM).then_some((case.id, share))
    });
    let (case, share) = shares.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let figures = [(format!("share of the hardware's limit, {case}"), share, Unit::Fraction)];
    found(Tone::Plain, words::look_there_first(case, share), &figures)
}

/// The case with the fewest samples, where they are too few for a P95.
fn few_samples(receipt: &Receipt) -> Option<Finding> {
    let needed = samples_needed(0.95)?;
    let samples = |case: &CaseRecord| case.processes.iter().map(|process| process.samples_ns.len()).sum::<usize>();
    let (case, samples) =
        receipt.cases.iter().map(|case| (case.id, samples(case))).min_by_key(|(_, samples)| *samples)?;
    if samples >= needed {
        return None;
    }
    let figures = [
        (format!("samples of {case}"), samples as f64, Unit::Count),
        ("samples that a P95 takes".to_owned(), needed as f64, Unit::Count),
    ];
    found(Tone::Plain, words::take_more_samples(case, samples, needed), &figures)
}
