//! Which criterion benches both sides have. One that a change adds or removes has nothing to be compared with, and does not keep
//! the others from being compared.

use infergate_core::case::{Case, choose_benches};
use infergate_core::worker::WorkerError;

/// The benches that were chosen, by the side that has them.
#[derive(Default)]
pub struct SharedBenches {
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
) -> Result<SharedBenches, WorkerError> {
    if head.is_empty() || base.is_empty() {
        return Ok(SharedBenches { cases, ..SharedBenches::default() });
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
    Ok(SharedBenches { cases, only_in_head, only_in_base })
}
