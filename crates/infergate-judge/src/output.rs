//! Are two outputs the same? Numbers first, then tokens: a wrong number shows long before another token wins.

use infergate_core::case::Case;
pub use infergate_core::engine::default_tolerance;
use infergate_core::engine::first_difference;

use infergate_receipts::{Evidence, Outcome, Output, Reason, StepLogits, VerdictRow};
pub use infergate_receipts::{OutputComparison, OutputEvidence};

/// The difference of the two best logits below which another token is no error on another platform (other SIMD width, other
/// rounding).
const NEAR_TIE_LOGITS: f32 = 1e-3;

/// How far a logit can have drifted, as a multiple of the largest drift seen. Logits closer than twice that can have swapped
/// places.
const NEAR_TIE_DRIFTS: f64 = 4.0;

/// The largest [drift of all logits](OutputEvidence::vocabulary_drift) that is rounding, in tolerances: it is an estimate from 16
/// sums.
pub const VOCABULARY_TOLERANCES: f64 = 3.0;

/// The distance between the logits of two outputs, over the positions where both had read the same tokens. A token that only one
/// side has among its best counts with the least possible difference.
#[derive(Debug, Clone, Copy)]
struct Distance {
    /// The largest difference of a logit among the best tokens.
    logit: f64,
    /// Root mean square of the differences, each as a fraction of base's largest logit at its position. Rounding grows with the
    /// numbers it rounds, and single differences vary several times as much as all of them together.
    relative: f64,
}

/// How to judge a changed output.
#[derive(Default)]
pub(super) struct OutputRule<'a> {
    /// A relative drift up to this is rounding.
    pub tolerance: f64,
    /// Why outputs of the two platforms need not be equal.
    pub other_platform: Option<&'a Reason>,
    /// The user allows it.
    pub is_allowed: bool,
    /// Both are the same code.
    pub is_same_code: bool,
    /// Its case was not timed because of a stricter tolerance; a drift then counts as a change, so that it does not pass unseen.
    pub is_untimed: bool,
}

/// The row of an output.
pub(super) fn row(id: Case, base: &Output, head: &Output, rule: &OutputRule) -> VerdictRow {
    use OutputComparison::{Changed, Drifted, Same};
    let mut found = compare(base, head, rule.tolerance);
    if rule.is_untimed && found.comparison == Drifted {
        found.comparison = Changed;
    }
    // An unknown margin is no near tie, and no clear choice either.
    let near_tie = found.base_margin.is_some_and(|margin| margin < NEAR_TIE_LOGITS);
    // The number of finite logits differs if some are no numbers.
    let are_numbers = found.other_logits.is_none();
    let may_be_rounding = rule.other_platform.is_some() && are_numbers && (near_tie || found.position.is_none());
    let logits_missing = found.lost_positions > 0 && !rule.is_same_code;
    let other_prompt = base.prompt_sha256.as_ref().zip(head.prompt_sha256.as_ref()).is_some_and(|(was, is)| was != is);
    let elsewhere = rule.other_platform.cloned();
    let (outcome, reason) = match found.comparison {
        Changed if rule.is_allowed => (Outcome::Advisory, Some(Reason::Allowed)),
        Changed if other_prompt => (Outcome::NotComparable, Some(Reason::OtherPrompt)),
        Changed if may_be_rounding && logits_missing => (Outcome::Inconclusive, Some(Reason::LogitsLost)),
        // Another platform may round by more. That explains neither another token nor a logit that is no number.
        Changed if may_be_rounding => (Outcome::Advisory, elsewhere),
        Changed => (Outcome::OutputChanged, elsewhere),
        Drifted | Same if logits_missing && rule.is_allowed => (Outcome::Advisory, Some(Reason::Allowed)),
        Drifted | Same if logits_missing => (Outcome::Inconclusive, Some(Reason::LogitsLost)),
        Drifted => (Outcome::Drifted, elsewhere),
        _ => (Outcome::Pass, None),
    };
    VerdictRow { reasons: reason.into_iter().collect(), ..VerdictRow::new(id, outcome, Evidence::Output(found)) }
}

/// Compares `head` with `base`. A relative drift up to `tolerance` is rounding.
pub fn compare(base: &Output, head: &Output, tolerance: f64) -> OutputEvidence {
    let (base_tokens, head_tokens) = tokens(base, head);
    // If base gives no output, head's output differs from nothing.
    let is_new = base.ids.is_empty() && base.fingerprint.is_none();
    let position = first_difference(&base_tokens, &head_tokens).filter(|_| !is_new);
    let (steps, lost_positions) = comparable(base, head);
    let logits_of = |output: &Output| output.fingerprint.as_ref()?.logits;
    let other_logits = logits_of(base).zip(logits_of(head)).filter(|(base, head)| base != head);
    let at = |output: &Output| output.said().get(position?).copied();
    let found = OutputEvidence {
        position,
        base_id: at(base),
        head_id: at(head),
        base_margin: position.and_then(|at| base.top2_margins.get(at).copied().flatten()),
        lost_positions,
        other_logits,
        ..OutputEvidence::default()
    };
    if steps.is_empty() {
        let positions = base_tokens.len().min(head_tokens.len());
        let comparison = match position {
            Some(_) => OutputComparison::Changed,
            None if positions == 0 => OutputComparison::NotGiven,
            None => OutputComparison::Same,
        };
        return OutputEvidence { comparison, positions: Some(positions), ..found };
    }
    let distance = Distance::over(&steps);
    let of_all = vocabulary_distance(base, head, &steps);
    let is_equal = steps.iter().all(|(base, head)| base == head) && of_all.is_none_or(|all| all == 0.0);
    let is_rounding = distance.relative <= tolerance
        && of_all.is_none_or(|all| all <= VOCABULARY_TOLERANCES * tolerance)
        && other_logits.is_none();
    let comparison = match position {
        _ if !is_rounding => OutputComparison::Changed,
        None if is_equal => OutputComparison::Same,
        None => OutputComparison::Drifted,
        // Both tokens were as good before the drift, so either can win after it.
        Some(at) if !is_equal && is_near_tie(base, at, distance) => OutputComparison::Drifted,
        Some(_) => OutputComparison::Changed,
    };
    // A distance that is not finite has no place in a file, and is a change.
    let finite = |number: f64| Some(number).filter(|number| number.is_finite());
    OutputEvidence {
        comparison,
        positions: Some(steps.len()),
        relative_drift: finite(distance.relative),
        drift_tolerance: Some(tolerance),
        vocabulary_drift: of_all.and_then(finite),
        max_abs_logit_delta: finite(distance.logit),
        ..found
    }
}

/// Tokens that each side chose itself, cut to the shorter, but never below the case's own.
fn tokens(base: &Output, head: &Output) -> (Vec<u32>, Vec<u32>) {
    let (mut was, mut is) = (base.said(), head.said());
    let known = was.len().min(is.len());
    was.truncate(known.max(base.ids.len()));
    is.truncate(known.max(head.ids.len()));
    (was, is)
}

/// The steps of both at positions that both reached over the same tokens, and how many of base's steps head lacks.
fn comparable<'a>(base: &'a Output, head: &'a Output) -> (Vec<(&'a StepLogits, &'a StepLogits)>, usize) {
    let Some(was) = &base.fingerprint else { return (Vec::new(), 0) };
    let is = head.fingerprint.as_ref().map_or(&[][..], |fingerprint| &fingerprint.steps);
    let (base_path, head_path) = (base.path(), head.path());
    let shared = base_path.iter().zip(&head_path).take_while(|(base, head)| base == head).count();
    // Head's context may end before base's. After the last token that it was fed it chose one more.
    let is_fed = head.fingerprint.as_ref().is_some_and(|fingerprint| fingerprint.fed.is_some());
    let chosen = head_path.len() + usize::from(is_fed);
    let is_reached = |step: &&StepLogits| step.position <= shared && step.position < chosen;
    let reached: Vec<&StepLogits> = was.steps.iter().filter(is_reached).collect();
    let of_head = |base: &StepLogits| is.iter().find(|head| head.position == base.position);
    let pairs: Vec<_> = reached.iter().filter_map(|base| Some((*base, of_head(base)?))).collect();
    let lost_positions = reached.len() - pairs.len();
    (pairs, lost_positions)
}

/// Whether base's two best logits at `at` lay so close that the drift can have swapped them. An unknown margin is no near tie.
fn is_near_tie(base: &Output, at: usize, drift: Distance) -> bool {
    let mut steps = base.fingerprint.iter().flat_map(|fingerprint| &fingerprint.steps);
    let kept = steps.find(|step| step.position == at).and_then(|step| match step.top.as_slice() {
        [(_, best), (_, second), ..] => Some(best - second),
        _ => None,
    });
    let margin = base.top2_margins.get(at).copied().flatten().or(kept);
    // One goes up and one goes down; and another position can have drifted further than those that were kept.
    margin.is_some_and(|margin| f64::from(margin) <= 2.0 * NEAR_TIE_DRIFTS * drift.logit)
}

fn largest_logit(step: &StepLogits) -> f64 {
    // The logit of an excluded token is infinite.
    let finite = step.top.iter().map(|(_, logit)| f64::from(logit.abs())).filter(|logit| logit.is_finite());
    finite.fold(0.0, f64::max)
}

impl Distance {
    fn over(steps: &[(&StepLogits, &StepLogits)]) -> Self {
        let (mut logit, mut relative) = (0.0, Vec::new());
        for (base, head) in steps {
            let scale = largest_logit(base);
            for difference in differences(base, head) {
                logit = larger(logit, difference);
                relative.push(if difference == 0.0 { 0.0 } else { difference / scale });
            }
        }
        Self { logit, relative: root_mean_square(&relative) }
    }
}

/// Root mean square of the distances of signed sums, each for one logit and as a fraction of base's largest at its position. The
/// expected square of a distance of signed sums is the sum of the squares of the distances of all logits.
fn vocabulary_distance(base: &Output, head: &Output, steps: &[(&StepLogits, &StepLogits)]) -> Option<f64> {
    let (was, is) = (base.fingerprint.as_ref()?, head.fingerprint.as_ref()?);
    let logits = was.logits? as f64;
    let distances = steps.iter().filter_map(|(step, _)| {
        let apart = (is.signed_sum(step.position)? - was.signed_sum(step.position)?).abs();
        Some(if apart == 0.0 { 0.0 } else { apart / (logits.sqrt() * largest_logit(step)) })
    });
    let distances: Vec<f64> = distances.collect();
    (!distances.is_empty()).then(|| root_mean_square(&distances))
}

fn root_mean_square(numbers: &[f64]) -> f64 {
    let squares: f64 = numbers.iter().map(|number| number * number).sum();
    (squares / numbers.len().max(1) as f64).sqrt()
}

/// Unlike `f64::max`: a NaN is the largest.
fn larger(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// How far each token among the best of either side lies from the same token on the other.
fn differences(base: &StepLogits, head: &StepLogits) -> Vec<f64> {
    let least = |step: &StepLogits| step.top.last().map_or(f64::NEG_INFINITY, |(_, logit)| f64::from(*logit));
    let of_base = base.top.iter().map(|(id, logit)| match find(head, *id) {
        Some(other) if other.to_bits() == logit.to_bits() => 0.0,
        Some(other) => (f64::from(*logit) - f64::from(other)).abs(),
        None => at_least_zero(f64::from(*logit) - least(head)),
    });
    let new = head.top.iter().filter(|(id, _)| find(base, *id).is_none());
    of_base.chain(new.map(|(_, logit)| at_least_zero(f64::from(*logit) - least(base)))).collect()
}

/// Unlike `f64::max`: a NaN stays one.
fn at_least_zero(difference: f64) -> f64 {
    if difference <= 0.0 { 0.0 } else { difference }
}

fn find(step: &StepLogits, id: u32) -> Option<f32> {
    step.top.iter().find(|(other, _)| *other == id).map(|(_, logit)| *logit)
}
