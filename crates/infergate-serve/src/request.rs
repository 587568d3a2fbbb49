//! What clients ask for: the fields of OpenAI's API that are understood here, and what becomes of them.
//!
//! Fields that change nothing of a greedy decoder's work (`temperature`, `seed`, `user`, ...) are passed over, as are unknown
//! ones. What would change it and is not done here is refused.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::prompt::{Conversation, Prompt, StopIsEmpty};
use crate::refusal::Refusal;

/// Output tokens where a request does not say; OpenAI's own default for completions.
const DEFAULT_OUTPUT_TOKENS: u64 = 16;

/// Which of the two APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `/v1/completions`
    Completions,
    /// `/v1/chat/completions`
    Chat,
}

impl Api {
    /// The field that holds the prompt.
    pub fn prompt_field(self) -> &'static str {
        match self {
            Self::Completions => "prompt",
            Self::Chat => "messages",
        }
    }
}

/// A request that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// What to continue.
    pub prompt: Prompt,
    /// Exactly so many tokens, at least one.
    pub output_tokens: usize,
    /// Token by token.
    pub stream: bool,
    /// With a last event that counts tokens.
    pub include_usage: bool,
}

/// The fields of both APIs.
#[derive(Deserialize)]
struct Common {
    model: Option<String>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    n: Option<u64>,
    best_of: Option<u64>,
    echo: Option<bool>,
    stop: Option<StopIsEmpty>,
    /// It is always so; said here so that a wrong type shows.
    #[serde(rename = "ignore_eos")]
    _ignore_eos: Option<bool>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct OfCompletions {
    prompt: Prompt,
}

#[derive(Deserialize)]
struct OfChat {
    messages: Conversation,
}

/// Reads a request to `api`, where `served` is the model's name.
///
/// # Errors
/// 400 for what is no such request or asks for what is not done here, 404 for another model.
pub fn read(api: Api, body: &[u8], served: &str) -> Result<Order, Refusal> {
    let common: Common = parse(body)?;
    if let Some(model) = common.model.as_ref().filter(|model| *model != served) {
        return Err(Refusal::no_such_model(model, served));
    }
    let one_or_none = |count: Option<u64>| count.is_none_or(|count| count == 1);
    if !one_or_none(common.n) || !one_or_none(common.best_of) {
        return Err(Refusal::bad(Some("n"), "one completion a request is served; send the request again for more"));
    }
    if common.echo == Some(true) {
        return Err(Refusal::bad(Some("echo"), "the prompt is not given back; leave `echo` out"));
    }
    if common.stop.is_some_and(|StopIsEmpty(is_empty)| !is_empty) {
        return Err(Refusal::bad(Some("stop"), "output never ends early here; leave `stop` out"));
    }
    let output_tokens = common.max_completion_tokens.or(common.max_tokens).unwrap_or(DEFAULT_OUTPUT_TOKENS);
    if output_tokens == 0 {
        return Err(Refusal::bad(Some("max_tokens"), "zero output tokens were asked for; ask for at least one"));
    }
    Ok(Order {
        prompt: match api {
            Api::Completions => parse::<OfCompletions>(body)?.prompt,
            Api::Chat => Prompt::Text(conversation(parse::<OfChat>(body)?.messages)?),
        },
        output_tokens: usize::try_from(output_tokens).unwrap_or(usize::MAX),
        stream: common.stream == Some(true),
        include_usage: common.stream_options.is_some_and(|options| options.include_usage == Some(true)),
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    // serde names the field and the place, never what stands there: an unexpected text is shown by its beginning alone.
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        let why = if error.is_data() { "a field is missing or of another type" } else { "it is not JSON" };
        Refusal::bad(None, format!("the body is no request of this API: {why}, at {place}"))
    })
}

/// The messages, and the word that the answer follows.
fn conversation(all: Conversation) -> Result<String, Refusal> {
    if all.messages == 0 {
        return Err(Refusal::bad(Some("messages"), "there are no messages; send at least one"));
    }
    if all.has_other_parts {
        return Err(Refusal::bad(Some("messages"), "only parts of type text are read here"));
    }
    Ok(all.text + "assistant:")
}
