//! Outputs at prompt lengths that no case has: a mask, a tail or a table of positions can be wrong at some lengths alone.

use std::sync::atomic::AtomicBool;

use super::block::Pair;
use super::{PairedRequest, ensure_not};
use crate::receipt::{FINGERPRINT_POSITIONS, Note, OtherLength};
use infergate_core::case::{Case, Phase};
use infergate_core::worker::WorkerError;

/// The shortest prompt with a past, and lengths that no block size divides.
const LENGTHS: [usize; 4] = [2, 37, 101, 333];

/// One more reaches to the end of the context, or of so much of it.
const MOST_CONTEXT_TOKENS: usize = 1024;

/// A prompt that is longer than those of all cases may take one part in so many of a budget.
const PART_OF_BUDGET: u32 = 10;

/// What was compared, and what has to be said of what was not.
#[derive(Default)]
pub struct Compared {
    pub outputs: Vec<OtherLength>,
    pub notes: Vec<Note>,
}

/// Asks both sides what they say to prompts of other lengths than those of `cases`. To be called behind all that the pilot times:
/// what a base breaks that fails here is not needed any more.
///
/// # Errors
/// What head alone cannot do.
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
    let room = request.budget.map(|budget| budget / PART_OF_BUDGET);
    for prompt_tokens in lengths(cases, context_tokens) {
        ensure_not(cancelled)?;
        // Both sides take at least as much longer as the prompt is.
        let expected = 2.0 * took.as_secs_f64() * prompt_tokens as f64 / longest.prompt_tokens() as f64;
        let is_long = prompt_tokens > longest.prompt_tokens();
        if is_long && room.is_some_and(|room| expected > room.as_secs_f64()) {
            compared.not(prompt_tokens, "it would take more than a tenth of the budget");
            continue;
        }
        say(&format!("pilot: prompt of {prompt_tokens} tokens"));
        match ask(pair, Case::Prefill { prompt_tokens })? {
            Ok(both) => compared.outputs.push(both),
            Err(why) => compared.not(prompt_tokens, &why),
        }
    }
    Ok(compared)
}

/// Whether engines are asked for more than their cases. Of several shares the first asks for all; a quick look judges no output.
pub fn are_asked(request: &PairedRequest, cases: &[Case]) -> bool {
    let is_of_engines = cases.iter().all(|case| case.phase() != Phase::Bench);
    is_of_engines && !request.quick && request.shard.is_none_or(|shard| shard.number == 1)
}

impl Compared {
    pub fn not_asked(why: &str) -> Self {
        let note = Note::from(format!("outputs of other prompt lengths were not compared: {why}"));
        Self { outputs: Vec::new(), notes: vec![note] }
    }

    fn not(&mut self, prompt_tokens: usize, why: &str) {
        let text = format!("the output of a prompt of {prompt_tokens} tokens was not compared: {why}");
        self.notes.push(Note::from(text));
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

/// What both say, or why that is not known.
fn ask(pair: &mut Pair, id: Case) -> Result<Result<OtherLength, String>, WorkerError> {
    let in_head = match pair.head.prepare(id, None) {
        Ok(said) => said.output,
        Err(error @ WorkerError::Interrupted(_)) => return Err(error),
        Err(error) => match pair.base.prepare(id, None) {
            Ok(_) => return Err(error.of(&format!("{id}: head"))),
            Err(_) => return Ok(Err(format!("head and base cannot run it ({error})"))),
        },
    };
    match pair.base.prepare_beside(id, &in_head) {
        Ok(said) => Ok(Ok(OtherLength { id, base_output: said.output, head_output: in_head })),
        Err(error @ WorkerError::Interrupted(_)) => Err(error),
        Err(error) => Ok(Err(format!("base cannot run it ({error})"))),
    }
}
