//! Does head give requests that it serves together what it gives each alone? Cases ask for one at a time.

use std::sync::atomic::AtomicBool;

use super::block::Pair;
use super::{PairedRequest, ensure_not};
use infergate_core::load::{Arrivals, LevelPlan, RequestShape, Stop};
use infergate_core::receipt::FINGERPRINT_POSITIONS;
use infergate_core::worker::{Capability, Client, WorkerError};

/// Two prompts of unequal length, which no step has at the same place.
const PROMPT_TOKENS: [usize; 2] = [5, 37];

/// What a batch of head's changes.
#[derive(Default)]
pub struct Together {
    /// In head alone it ends the process, or changes the answer and does so with other prompts, too.
    pub broken: Option<String>,
    /// It does so otherwise.
    pub note: Option<String>,
    /// A side may have ended by it: no more can be asked of the two.
    pub ended: bool,
}

/// Serves two requests together in head, and in base where head's answers are not those that each prompt gives alone. An engine
/// that serves one at a time is not asked for more than base does. A near tie, or a race, can give another token once: what is in
/// head alone is asked again with other prompts.
///
/// # Errors
/// The user's own end.
pub fn compare(
    pair: &mut Pair,
    request: &PairedRequest,
    context_tokens: usize,
    cancelled: &AtomicBool,
) -> Result<Together, WorkerError> {
    ensure_not(cancelled)?;
    let seed = request.load.seed;
    if request.is_same_code() || plan(seed).validate(context_tokens).is_err() {
        return Ok(Together::default());
    }
    let mut ended = false;
    let note = |whose: &str, why: &str| Some(format!("requests together in {whose}: {why}"));
    let (broken, note) = match look(pair, &plan(seed), &mut ended)? {
        None => (None, None),
        Some((Whose::Both, _, why)) => (None, note("head as in base", &why)),
        Some((Whose::NotKnown, _, why)) => (None, note("head (base cannot be asked)", &why)),
        Some((Whose::Head, kind, why)) => {
            ensure_not(cancelled)?;
            // Who has ended can be asked for nothing else.
            let again = if ended { None } else { Some(look(pair, &plan(seed ^ 1), &mut ended)?) };
            let (kind, why) = match again {
                None => (kind, why),
                // The worse of both counts.
                Some(Some((Whose::Head, second, said))) if second > kind => (second, said),
                Some(Some((Whose::Head, ..))) => (kind, why),
                Some(_) => {
                    let note = note("head alone, in one of two looks", &why);
                    return Ok(Together { broken: None, note, ended });
                }
            };
            match request.allow_output_change && kind == Kind::Wrong {
                false => (note("head alone", &why), None),
                true => (None, note("head alone", &why)),
            }
        }
    };
    Ok(Together { broken, note, ended })
}

/// Who does what head does.
enum Whose {
    Head,
    Both,
    NotKnown,
}

/// What a side does with a batch, the worse the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It serves one at a time, or cannot begin.
    Refuses,
    Wrong,
    /// It gives no answer.
    Fails,
    /// It died, hangs or breaks the protocol.
    Ends,
}

/// What is wrong with head's answers, if anything is.
fn look(pair: &mut Pair, plan: &LevelPlan, ended: &mut bool) -> Result<Option<(Whose, Kind, String)>, WorkerError> {
    let Served::Not(kind, why) = serve(&mut pair.head, plan)? else { return Ok(None) };
    *ended |= kind == Kind::Ends;
    let whose = match serve(&mut pair.base, plan)? {
        Served::AsAlone => Whose::Head,
        _ if kind == Kind::Refuses => return Ok(None),
        Served::Unknown => Whose::NotKnown,
        Served::Not(Kind::Ends, _) => {
            *ended = true;
            Whose::NotKnown
        }
        Served::Not(Kind::Refuses, _) => Whose::Head,
        Served::Not(of_base, _) => {
            if kind > of_base {
                Whose::Head
            } else {
                Whose::Both
            }
        }
    };
    Ok(Some((whose, kind, why)))
}

fn plan(seed: u64) -> LevelPlan {
    let shape =
        |prompt_tokens| RequestShape { prompt_tokens, output_tokens: FINGERPRINT_POSITIONS, shared_prefix_tokens: 0 };
    let requests = PROMPT_TOKENS.len() as u32;
    LevelPlan {
        arrivals: Arrivals::Closed { users: requests },
        stop: Stop::Requests { count: u64::from(requests) },
        warm_up_requests: 0,
        slots: requests,
        scenarios: PROMPT_TOKENS.map(shape).to_vec(),
        seed,
        compared: 2 * requests,
    }
}

enum Served {
    AsAlone,
    Not(Kind, String),
    /// Its infergate is older.
    Unknown,
}

fn serve(client: &mut Client, plan: &LevelPlan) -> Result<Served, WorkerError> {
    if !client.can(Capability::LoadLevel) {
        return Ok(Served::Unknown);
    }
    match client.load_level(plan) {
        Ok(level) => Ok(level.cut_short.map_or(Served::AsAlone, |why| Served::Not(Kind::Fails, why))),
        Err(WorkerError::Refused(why)) => Ok(Served::Not(Kind::Refuses, why.to_string())),
        Err(WorkerError::Invalid(why)) => Ok(Served::Not(Kind::Wrong, why)),
        Err(error @ WorkerError::Interrupted(_)) => Err(error),
        Err(error) => Ok(Served::Not(Kind::Ends, error.to_string())),
    }
}
