//! What follows from the numbers, by rules. Each finding names the figures it rests on; there is none without.

use crate::gate::{limit_fraction, summary_ns};
use crate::receipt::{Evidence, Metric, Outcome, Reason};
use crate::report::figures::{self, Spread};
use crate::report::inputs::Inputs;
use crate::report::model::{Finding, Quantity, Tone, Unit};
use crate::report::sections::request::middle_start;
use crate::report::sections::scaling::{Family, families};
use crate::report::words::findings as words;
use crate::report::words::pages;
use infergate_core::case::{Case, Phase};

/// Looks at the files, and says what it finds.
type Rule = fn(&Inputs) -> Vec<Finding>;

/// The rules in the order their findings are read, each with the section it stands in where there is no room at the top. A new one
/// is a function and a line.
const RULES: &[(&str, Rule)] = &[
    ("targets", missed_targets),
    ("memory", memory_growth),
    ("variance", variation),
    ("scaling", growth_with_input),
    ("request", first_token),
    ("latency", smoothness),
    ("latency", of_hardware),
];

/// The coefficient of variation between processes from which on a case is called unsteady, where no verdict has a limit.
const CV_LIMIT: f64 = 0.20;
/// Up to this a case is steady: as much as a gate calls a change.
const STEADY: f64 = 0.02;

/// Cases that one finding names.
const MOST_NAMED: usize = 5;

/// What the rules found, each with its section.
pub fn all(inputs: &Inputs) -> Vec<(&'static str, Finding)> {
    let found = RULES.iter().flat_map(|(section, rule)| rule(inputs).into_iter().map(move |found| (*section, found)));
    found.filter(|(_, found)| !found.rests_on.is_empty()).collect()
}

fn finding(tone: Tone, said: String, figures: &[(String, f64, Unit)]) -> Finding {
    let known = figures.iter().filter_map(|(name, value, unit)| Some((name.clone(), Quantity::new(*value, *unit)?)));
    Finding { tone, said, rests_on: known.collect() }
}

fn missed_targets(inputs: &Inputs) -> Vec<Finding> {
    let rows = inputs.verdict.iter().flat_map(|verdict| &verdict.rows);
    let targets: Vec<Outcome> =
        rows.filter(|row| matches!(row.evidence, Evidence::Target(_))).map(|row| row.outcome).collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let met = targets.iter().filter(|outcome| **outcome == Outcome::Pass).count();
    let tone = if met == targets.len() { Tone::Good } else { Tone::Bad };
    let figures = [("met".into(), met as f64, Unit::Count), ("of".into(), targets.len() as f64, Unit::Count)];
    vec![finding(tone, words::targets(met, targets.len()), &figures)]
}

fn memory_growth(inputs: &Inputs) -> Vec<Finding> {
    let rows = inputs.verdict.iter().flat_map(|verdict| &verdict.rows);
    let grown = rows.filter(|row| matches!(row.outcome, Outcome::Leak | Outcome::Growth));
    grown
        .filter_map(|row| {
            let Evidence::Memory(memory) = &row.evidence else { return None };
            let slope = memory.slope_bytes?;
            let place = inputs.memory_record().and_then(|record| record.sites.first()?.frames.first());
            let said = words::grows(&row.subject, memory.witness, slope, place.map(String::as_str));
            Some(finding(Tone::Bad, said, &[(format!("growth of {}", row.subject), slope, Unit::BytesPerRun)]))
        })
        .collect()
}

/// Coefficients of variation between processes.
struct Variations {
    /// The case that varies most first, each with the figure it is gated by.
    cases: Vec<(Case, &'static str, f64)>,
    limit: f64,
}

impl Variations {
    fn of(inputs: &Inputs) -> Option<Self> {
        let known = inputs.head.as_ref()?.cases.iter().filter_map(|case| {
            let figure = Metric::gated(case.id);
            Some((case.id, figures::name(figure), figures::variation(figure, case).ok()?))
        });
        let mut cases: Vec<(Case, &'static str, f64)> = known.collect();
        cases.sort_by(|a, b| b.2.total_cmp(&a.2));
        (!cases.is_empty()).then(|| Self { cases, limit: cv_limit(inputs) })
    }

    /// Cases that vary too much.
    fn above(&self) -> usize {
        self.cases.iter().filter(|(.., cv)| *cv > self.limit).count()
    }
}

/// The title of a run whose times are no measure of the engine; `None` for any other.
pub fn unusable(inputs: &Inputs) -> Option<String> {
    let variations = Variations::of(inputs)?;
    let (above, (.., cv)) = (variations.above(), variations.cases.first()?);
    (above > 0).then(|| pages::unusable(above, variations.cases.len(), *cv))
}

/// The cases whose processes differ most, where any differs by more than the limit; else how steady they are.
fn variation(inputs: &Inputs) -> Vec<Finding> {
    let Some(variations) = Variations::of(inputs) else { return Vec::new() };
    let Some((case, _, cv)) = variations.cases.first().copied() else { return Vec::new() };
    let (cases, above) = (variations.cases.len(), variations.above());
    let name = |case: &Case, figure: &str| format!("CV of {figure} of {case} between processes");
    let named = variations.cases.iter().take(above.clamp(1, MOST_NAMED));
    let figures: Vec<_> = named.map(|(case, figure, cv)| (name(case, figure), *cv, Unit::Fraction)).collect();
    let (tone, said) = match above {
        0 if cv <= STEADY => (Tone::Good, words::steady(cases, case, cv)),
        0 => (Tone::Plain, words::varied(case, cv)),
        above => (Tone::Warn, words::unsteady(above, cases, case, cv, variations.limit)),
    };
    vec![finding(tone, said, &figures)]
}

/// The limit that the verdict was reached by, where it says one: a gate's `cv_limit` can be another one.
fn cv_limit(inputs: &Inputs) -> f64 {
    let reasons = inputs.verdict.iter().flat_map(|verdict| &verdict.rows).flat_map(|row| &row.reasons);
    let limit = |reason: &Reason| if let Reason::Noisy { limit, .. } = reason { Some(*limit) } else { None };
    reasons.filter_map(limit).reduce(f64::min).unwrap_or(CV_LIMIT)
}

fn growth_with_input(inputs: &Inputs) -> Vec<Finding> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    families(receipt).iter().filter_map(growth).collect()
}

/// From the shortest to the longest prompt of a family.
fn growth(family: &Family<'_>) -> Option<Finding> {
    let ((first, least), (last, most)) = (*family.cases.first()?, *family.cases.last()?);
    let (from, to) = (first.id.prompt_tokens(), last.id.prompt_tokens());
    if from == 0 || from == to {
        return None;
    }
    let unit = Unit::of(family.figure);
    let name = figures::name(family.figure);
    let figures = [(format!("{name} of {}", first.id), least, unit), (format!("{name} of {}", last.id), most, unit)];
    let said = match family.figure {
        Metric::DecodeSpeed => words::speed(&family.name, from, to, most / least - 1.0),
        _ => words::growth(&family.name, name, (from, to), to as f64 / from as f64, most / least),
    };
    Some(finding(Tone::Plain, said, &figures))
}

fn of_hardware(inputs: &Inputs) -> Vec<Finding> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let fractions = receipt.cases.iter().filter_map(|case| {
        let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes))?;
        (fraction <= 1.0).then_some((case.id, fraction))
    });
    let mut fractions: Vec<(Case, f64)> = fractions.collect();
    fractions.sort_by(|a, b| a.1.total_cmp(&b.1));
    let name = |case: Case| format!("share of the hardware's limit, {case}");
    match (fractions.first(), fractions.last()) {
        (Some((low, least)), Some((high, most))) if low != high => {
            let figures = [(name(*low), *least, Unit::Fraction), (name(*high), *most, Unit::Fraction)];
            vec![finding(Tone::Plain, words::hardware((*low, *least), (*high, *most)), &figures)]
        }
        _ => Vec::new(),
    }
}

fn first_token(inputs: &Inputs) -> Vec<Finding> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let (Some(cold), Some(warm)) = (middle_start(&receipt.cold), middle_start(&receipt.warm)) else {
        return Vec::new();
    };
    let (cold_ns, warm_ns) = (cold.ttft_ns() as f64, warm.ttft_ns() as f64);
    if warm_ns <= 0.0 || cold.prompt_tokens != warm.prompt_tokens {
        return Vec::new();
    }
    let load = cold.load_ns.map(|ns| ns as f64 / cold_ns.max(1.0));
    let figures = [("cold TTFT".into(), cold_ns, Unit::Ns), ("warm TTFT".into(), warm_ns, Unit::Ns)];
    vec![finding(Tone::Plain, words::first_token(cold_ns / warm_ns, load), &figures)]
}

/// By the middle gap of the case with the longest context, as a stream would show it.
fn smoothness(inputs: &Inputs) -> Vec<Finding> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let streamed = receipt.cases.iter().filter(|case| case.id.phase() != Phase::Prefill);
    let Some(case) = streamed.max_by_key(|case| case.id.prompt_tokens()) else { return Vec::new() };
    let median = Spread::of(Metric::Itl, case).median(case);
    let Some(gap) = median.quantity() else { return Vec::new() };
    let figures = [(format!("median ITL of {}", case.id), gap.value, Unit::Ns)];
    vec![finding(Tone::Plain, words::smoothness(case.id, gap.value), &figures)]
}
