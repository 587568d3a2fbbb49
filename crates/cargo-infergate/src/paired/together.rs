//! Does head give requests that it serves together what it gives each alone? Cases ask for one at a time.

use std::sync::atomic::AtomicBool;

use super::block::Pair;
use super::ensure_not;
use infergate_core::load::{Arrivals, LevelPlan, RequestShape, Stop};
use infergate_core::receipt::FINGERPRINT_POSITIONS;
use infergate_core::worker::{Capability, Client, WorkerError};

/// Two prompts of unequal length, which no step has at the same place.
const PROMPT_TOKENS: [usize; 2] = [5, 37];

/// What a batch of head's changes.
#[derive(Default)]
pub struct Together {
    /// It changes the answer, or fails, in head alone.
    pub broken: Option<String>,
    /// The same, where base does it too or cannot be asked.
    pub note: Option<String>,
}

/// Serves two requests together in head, and in base where head's answers are not those that each prompt gives alone. An engine
/// that serves one at a time is not asked for more.
///
/// # Errors
/// The user's own end.
pub fn compare(
    pair: &mut Pair,
    seed: u64,
    context_tokens: usize,
    cancelled: &AtomicBool,
) -> Result<Together, WorkerError> {
    ensure_not(cancelled)?;
    let plan = plan(seed);
    if plan.validate(context_tokens).is_err() {
        return Ok(Together::default());
    }
    let Served::Wrong(why) = serve(&mut pair.head, &plan)? else { return Ok(Together::default()) };
    let said = |whose: &str| Some(format!("requests together in {whose}: {why}"));
    Ok(match serve(&mut pair.base, &plan)? {
        Served::AsAlone | Served::OneByOne => Together { broken: said("head alone"), note: None },
        Served::Wrong(_) => Together { broken: None, note: said("head as in base") },
        Served::Unknown => Together { broken: None, note: said("head (base cannot be asked)") },
    })
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
    OneByOne,
    Wrong(String),
    /// Its infergate is older.
    Unknown,
}

fn serve(client: &mut Client, plan: &LevelPlan) -> Result<Served, WorkerError> {
    if !client.can(Capability::LoadLevel) {
        return Ok(Served::Unknown);
    }
    match client.load_level(plan) {
        Ok(level) => Ok(level.cut_short.map_or(Served::AsAlone, Served::Wrong)),
        Err(WorkerError::Refused(_)) => Ok(Served::OneByOne),
        Err(error @ WorkerError::Interrupted(_)) => Err(error),
        Err(error) => Ok(Served::Wrong(error.to_string())),
    }
}
