//! Which criterion benches both sides have. One that a change adds or removes has nothing to be compared with, and does not keep
//! the others from being compared. And of servers, whether both count tokens alike.

use infergate_core::case::{Case, choose_benches};
use infergate_core::worker::{PreparedReply, WorkerError};

/// What was asked for, by who has it.
#[derive(Default)]
pub struct Shared {
    pub cases: Vec<Case>,
    pub only_in_head: Vec<Case>,
    pub only_in_base: Vec<Case>,
}

/// Of head's `cases`, which `patterns` chose. A bench that is asked for by its whole name stays: base then says that it has none.
///
/// # Errors
/// [`WorkerError::NotComparable`] where nothing is left, unless it is a shard: others may have more.
pub fn shared(
    patterns: &[String],
    cases: Vec<Case>,
    (head, base): (&[Case], &[Case]),
    is_share: bool,
) -> Result<Shared, WorkerError> {
    if head.is_empty() || base.is_empty() {
        return Ok(Shared { cases, ..Shared::default() });
    }
    let named = |case: &Case| patterns.iter().any(|pattern| *pattern == case.to_string());
    let (cases, only_in_head): (Vec<Case>, _) = cases.into_iter().partition(|case| base.contains(case) || named(case));
    if cases.is_empty() && !is_share {
        return Err(WorkerError::NotComparable(
            "base has none of the benches that were requested; compare with a revision that has one of them".to_owned(),
        ));
    }
    // One by one: a pattern may name nothing in base.
    let chosen: Vec<Case> = patterns.chunks(1).flat_map(|one| choose_benches(one, base).unwrap_or_default()).collect();
    let is_asked = |case: &&Case| patterns.is_empty() || chosen.contains(case);
    let only_in_base = base.iter().filter(is_asked).filter(|case| !head.contains(case)).copied().collect();
    Ok(Shared { cases, only_in_head, only_in_base })
}

/// Times per token are no comparison where one side counts more tokens in the same text, or where one says how many an answer has and the
/// other does not.
pub fn ensure_counted_alike(case: Case, was: &PreparedReply, is: &PreparedReply) -> Result<(), WorkerError> {
    let is_same_text = !was.output.ids.is_empty() && was.output.ids == is.output.ids;
    match (was.counted_tokens, is.counted_tokens) {
        (Some(was), Some(is)) if is_same_text && was != is => Err(WorkerError::NotComparable(format!(
            "{case}: base counts {was} tokens in the answer in which head counts {is} (its usage); make both say the same"
        ))),
        (Some(_), None) | (None, Some(_)) => {
            let (says, silent) = if is.counted_tokens.is_none() { ("base", "head") } else { ("head", "base") };
            Err(WorkerError::NotComparable(format!(
                "{case}: {says} says how many tokens an answer has (usage) and {silent} does not; make both say it"
            )))
        }
        _ => Ok(()),
    }
}
