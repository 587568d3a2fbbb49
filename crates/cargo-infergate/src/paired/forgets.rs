//! Whether both sides compute a prompt anew that they have just read. Each sample reads the same one: with a cache of prefixes its time
//! would be that of a look into the cache.

use super::block::Pair;
use infergate_core::case::{Case, Phase};
use infergate_core::worker::{Capability, Client, WorkerError};
use infergate_receipts::Side;

/// A shorter prompt takes hardly longer than the first token of a longer one.
const LEAST_TOKENS: usize = 16;
/// Prompts of each kind in the first look, and in those that it calls for.
const LOOKS: [usize; 3] = [1, 2, 5];

/// What has to be known where base keeps prompts and head does not: head can be no faster by that.
///
/// # Errors
/// [`WorkerError::Invalid`] where head does; a worker that died, hangs or breaks the protocol.
pub fn ensure(pair: &mut Pair<'_>, timed: impl Iterator<Item = Case>) -> Result<Vec<String>, WorkerError> {
    let reads = |case: &Case| matches!(case.phase(), Phase::Prefill | Phase::Generate);
    let known = timed.filter(|case| case.prompt_tokens() >= LEAST_TOKENS).filter(reads);
    let known: Vec<Case> = known.collect();
    // A cache of whole blocks keeps no prompt that is shorter than one, and one of few bytes none that is long. The short one first:
    // new prompts of the long one begin as those of the short one.
    let (shortest, longest) =
        (known.iter().min_by_key(|case| case.prompt_tokens()), known.iter().max_by_key(|case| case.prompt_tokens()));
    let mut asked: Vec<Case> = shortest.into_iter().chain(longest).copied().collect();
    asked.dedup_by_key(|case| case.prompt_tokens());
    let mut notes = Vec::new();
    for case in asked {
        let mut times = |side: Side| times_as_fast(pair.client(side), case).map_err(|error| error.of(side.name()));
        let said = |who: &str, times: f64| {
            format!("{who} answers a prompt of {case} that it has just read {times:.1} times as fast as a new one")
        };
        let (head, base) = (times(Side::Head)?, times(Side::Base)?);
        if let Some(head) = head {
            let both = base.map(|base| format!("; base answers it {base:.1} times as fast")).unwrap_or_default();
            let mend = "Engine::start has to compute it anew (docs/reference/engine.md)";
            return Err(WorkerError::Invalid(format!("{}{both}; {mend}", said("head", head))));
        }
        notes.extend(base.map(|times| format!("{}: its times of prompts are those of its cache", said("base", times))));
    }
    Ok(notes)
}

/// How many times as fast it is in the look that shows least, where it is in all. `None` also where it cannot be asked.
fn times_as_fast(client: &mut Client<'_>, case: Case) -> Result<Option<f64>, WorkerError> {
    if !client.can(Capability::Reread) {
        return Ok(None);
    }
    let (mut least, mut skip) = (f64::INFINITY, 0);
    for count in LOOKS {
        let looked = match client.reread(case, count, skip) {
            Ok(looked) => looked,
            // Of a prompt with few different tokens there are no new ones, and an engine may take no other.
            Err(WorkerError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(times) = looked.times_as_fast() else { return Ok(None) };
        (least, skip) = (least.min(times), skip + count);
    }
    Ok(Some(least))
}
