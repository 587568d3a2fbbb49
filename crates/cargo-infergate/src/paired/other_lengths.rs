//! Outputs at prompt lengths that no case has: a mask, a tail or a table of positions can be wrong at some lengths alone.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::block::Pair;
use super::{PairedRequest, ensure_not};
use infergate_core::case::{Case, Phase};
use infergate_core::worker::WorkerError;
use infergate_receipts::{FINGERPRINT_POSITIONS, Note, OtherLength};

/// The shortest prompt with a past, and lengths that no block size divides.
const LENGTHS: [usize; 4] = [2, 37, 101, 333];

/// One more reaches to the end of the context, or of so much of it.
const MOST_CONTEXT_TOKENS: usize = 1024;

/// All these prompts together may take one part in so many of a budget.
const PART_OF_BUDGET: u32 = 10;

/// An answer may take so many times what is expected, and never less than the least.
const MOST_TIMES_EXPECTED: f64 = 20.0;
const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// What was compared, and what has to be said of what was not.
#[derive(Default)]
pub struct Compared {
    pub outputs: Vec<OtherLength>,
    pub notes: Vec<Note>,
    /// What head alone cannot run. No more is asked behind it.
    pub broken: Option<String>,
}

/// Asks both sides what they say to prompts of other lengths than those of `cases`. To be called behind all that the pilot times:
/// what a base breaks that fails here is not needed any more.
///
/// # Errors
/// The user's own end.
pub fn compare(
    pair: &mut Pair,
    cases: &[Case],
    context_tokens: usize,
    request: &PairedRequest,
    cancelled: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<Compared, WorkerError> {
    let mut compared = Compared::default();
    let longest = cases.iter().max_by_key(|case| case.prompt_tokens()).filter(|_| are_asked(request, cases));
    let Some(longest) = longest else { return Ok(compared) };
    let took = pair.head.patience().prepared(*longest).unwrap_or_default();
    let (begun, room_s) = (Instant::now(), request.budget.map(|budget| (budget / PART_OF_BUDGET).as_secs_f64()));
    let mut not: BTreeMap<&str, (Vec<String>, String)> = BTreeMap::new();
    for prompt_tokens in lengths(cases, context_tokens) {
        ensure_not(cancelled)?;
        // Both sides take at least as much longer as the prompt is.
        let expected_s = 2.0 * took.as_secs_f64() * prompt_tokens as f64 / longest.prompt_tokens() as f64;
        if room_s.is_some_and(|room_s| expected_s > room_s - begun.elapsed().as_secs_f64()) {
            let why = "they would take more than a tenth of the budget";
            not.entry(why).or_default().0.push(prompt_tokens.to_string());
            continue;
        }
        // A path that hangs at some lengths is not waited for as the first run of a suite is.
        let limit = Duration::from_secs_f64(MOST_TIMES_EXPECTED * expected_s).max(LEAST_LIMIT);
        [&mut pair.base, &mut pair.head].into_iter().for_each(|client| client.give_first_of_case(limit));
        say(&format!("pilot: prompt of {prompt_tokens} tokens"));
        match ask(pair, Case::Prefill { prompt_tokens })? {
            Asked::Both(both) => compared.outputs.push(*both),
            Asked::Not(why, error) => {
                let (lengths, _) = not.entry(why).or_insert((Vec::new(), format!(" ({error})")));
                lengths.push(prompt_tokens.to_string());
            }
            Asked::HeadFails(why) => {
                compared.broken = Some(why);
                break;
            }
            Asked::Ended(why) => {
                let text =
                    format!("prompts of {prompt_tokens} tokens and more were not compared: a side ended ({why})");
                compared.notes.push(Note::from(text));
                break;
            }
        }
    }
    compared.notes.extend(not.into_iter().map(|(why, (lengths, first_error))| {
        let lengths = lengths.join(", ");
        Note::from(format!("the outputs of prompts of {lengths} tokens were not compared: {why}{first_error}"))
    }));
    Ok(compared)
}

/// Whether engines are asked for more than their cases. Of several shares the first asks for all.
pub fn are_asked(request: &PairedRequest, cases: &[Case]) -> bool {
    let is_of_engines = !cases.is_empty() && cases.iter().all(|case| case.phase() != Phase::Bench);
    is_of_engines && request.other_outputs && !request.quick && request.shard.is_none_or(|shard| shard.number == 1)
}

impl Compared {
    pub fn not_asked(why: &str) -> Self {
        let note = Note::from(format!("outputs of other prompt lengths were not compared: {why}"));
        Self { notes: vec![note], ..Self::default() }
    }
}

/// The lengths that no case has and behind which the context has room for all positions of a fingerprint.
fn lengths(cases: &[Case], context_tokens: usize) -> Vec<usize> {
    let room = context_tokens.min(MOST_CONTEXT_TOKENS).saturating_sub(FINGERPRINT_POSITIONS + 1);
    let is_new =
        |length: &usize| (1..=room).contains(length) && cases.iter().all(|case| case.prompt_tokens() != *length);
    let mut lengths: Vec<usize> = LENGTHS.into_iter().filter(|length| *length < room).chain([room]).collect();
    lengths.retain(is_new);
    lengths
}

enum Asked {
    Both(Box<OtherLength>),
    /// Why it is not known, and the error.
    Not(&'static str, String),
    HeadFails(String),
    /// No more can be asked of a side.
    Ended(String),
}

fn ask(pair: &mut Pair, id: Case) -> Result<Asked, WorkerError> {
    let in_head = match pair.head.prepare(id, None) {
        Ok(said) => said.output,
        Err(error @ WorkerError::Interrupted(_)) => return Err(error),
        Err(error) => match pair.base.prepare(id, None) {
            Ok(_) => return Ok(Asked::HeadFails(format!("{id}: head alone cannot run it: {error}"))),
            Err(stop @ WorkerError::Interrupted(_)) => return Err(stop),
            Err(of_base) if has_ended(&of_base) => return Ok(Asked::Ended(error.to_string())),
            Err(_) if has_ended(&error) => {
                return Ok(Asked::HeadFails(format!("{id}: base refuses it, head ends: {error}")));
            }
            Err(_) => return Ok(Asked::Not("head and base cannot run them", error.to_string())),
        },
    };
    match pair.base.prepare_beside(id, &in_head) {
        Ok(said) => Ok(Asked::Both(Box::new(OtherLength { id, base_output: said.output, head_output: in_head }))),
        Err(error @ WorkerError::Interrupted(_)) => Err(error),
        Err(error) if has_ended(&error) => Ok(Asked::Ended(error.to_string())),
        Err(error) => Ok(Asked::Not("base cannot run them", error.to_string())),
    }
}

/// Whether its process is gone, or out of step.
fn has_ended(error: &WorkerError) -> bool {
    matches!(error, WorkerError::Died(_) | WorkerError::Hung(_) | WorkerError::Protocol(_))
}
