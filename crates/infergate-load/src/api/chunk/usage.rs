//! The counts of tokens in an event.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

/// Token counts as the server gives them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
    total_tokens: Option<u32>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    // Some servers send both names of a count, so that they are no aliases.
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
    // Of servers without details, DeepSeek's last.
    cached_tokens: Option<u32>,
    prompt_cache_hit_tokens: Option<u32>,
    // Anthropic's `input_tokens` leaves these out.
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
}

/// What kinds the tokens of a prompt or an output are of.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u32>,
    #[serde(alias = "thinking_tokens")]
    reasoning_tokens: Option<u32>,
}

impl Usage {
    /// That of an event: any object in it that is named `usage`. Groq's is in `x_groq`, Moonshot's in the choice.
    pub fn within(json: &[u8]) -> serde_json::Result<Option<Self>> {
        // Every count's name ends so; many events have a null for usage.
        if memmem::find(json, b"_tokens\"").is_none() {
            return Ok(None);
        }
        usage_in(&serde_json::from_slice(json)?).map(Self::deserialize).transpose()
    }

    /// Tokens of the prompt, those of a cache included.
    pub fn input_tokens(self) -> Option<u64> {
        let apart = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        let all = || apart.into_iter().flatten().try_fold(self.input_tokens?, u32::checked_add);
        self.prompt_tokens.or_else(all).map(u64::from)
    }

    /// Tokens of the prompt that the server had in a cache.
    pub fn cached_tokens(self) -> Option<u64> {
        let details = self.prompt_tokens_details.or(self.input_tokens_details);
        let cached = details.and_then(|details| details.cached_tokens).or(self.cache_read_input_tokens);
        cached.or(self.cached_tokens).or(self.prompt_cache_hit_tokens).map(u64::from)
    }

    /// Tokens of the output, reasoning included.
    pub fn output_tokens(self) -> Option<u64> {
        Some(self.counted_tokens()? + self.apart_tokens())
    }

    fn counted_tokens(self) -> Option<u64> {
        self.completion_tokens.or(self.output_tokens).map(u64::from)
    }

    /// Reasoning that the count of the output leaves out, as some servers do: by the total it comes on top.
    pub fn apart_tokens(self) -> u64 {
        let counts = [self.input_tokens(), self.counted_tokens(), self.reasoning_tokens()];
        let sum = counts.into_iter().sum::<Option<u64>>();
        self.reasoning_tokens().filter(|_| sum.is_some() && sum == self.total_tokens.map(u64::from)).unwrap_or(0)
    }

    /// Tokens of the output that are reasoning.
    pub fn reasoning_tokens(self) -> Option<u64> {
        self.completion_tokens_details.or(self.output_tokens_details)?.reasoning_tokens.map(u64::from)
    }
}

/// The first object named `usage`; its own comes before those in its fields.
fn usage_in(value: &Value) -> Option<&Value> {
    let usage = value.get("usage").filter(|usage| usage.is_object());
    usage.or_else(|| match value {
        Value::Object(fields) => fields.values().find_map(usage_in),
        Value::Array(items) => items.iter().find_map(usage_in),
        _ => None,
    })
}
