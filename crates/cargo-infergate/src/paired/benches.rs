//! Which criterion benches both sides have. One that a change adds or removes has nothing to be compared with, and does not keep
//! the others from being compared.

use super::PairedRequest;
use super::started::Started;
use infergate_core::case::{Case, choose_benches};
use infergate_core::worker::WorkerError;

/// The cases of head that base has, too. Those that one side alone has are written into its record. A bench that was requested by its whole
/// name stays: base then reports that it lacks it.
///
/// # Errors
/// [`WorkerError::NotComparable`] if no case is left, unless this is a shard: others may have some.
pub fn benches_of_both(
    request: &PairedRequest,
    cases: Vec<Case>,
    base: &mut Started,
    head: &mut Started,
) -> Result<Vec<Case>, WorkerError> {
    if head.benches.is_empty() || base.benches.is_empty() {
        return Ok(cases);
    }
    let patterns = &request.cases;
    let is_shared =
        |case: &Case| base.benches.contains(case) || patterns.iter().any(|pattern| *pattern == case.to_string());
    let (cases, only_in_head): (Vec<Case>, _) = cases.into_iter().partition(is_shared);
    if cases.is_empty() && request.shard.is_whole() {
        return Err(WorkerError::NotComparable(
            "base has none of the benches that were requested; compare with a revision that has one of them".to_owned(),
        ));
    }
    // One by one: a pattern may match nothing in base.
    let chosen = patterns.chunks(1).flat_map(|one| choose_benches(one, &base.benches).unwrap_or_default());
    let chosen: Vec<Case> = chosen.collect();
    let is_in_base_alone = |case: &&Case| {
        let is_chosen = patterns.is_empty() || chosen.contains(case);
        is_chosen && !head.benches.contains(case)
    };
    base.record.unmatched = base.benches.iter().filter(is_in_base_alone).copied().collect();
    head.record.unmatched = only_in_head;
    Ok(cases)
}
