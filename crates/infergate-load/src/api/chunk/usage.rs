//! The counts of tokens in an event.

use serde::Deserialize;
use serde_json::Value;

/// Token counts as the server gives them.
#[derive(Debug, Deserialize)]
pub struct Usage(Value);

impl Usage {
    /// That of an event: any object in it that is named `usage`. Groq's is in `x_groq`, Moonshot's in the choice.
    pub fn within(event: &Value) -> Option<Self> {
        usage_in(event).cloned().map(Self)
    }

    /// The first of these that there is: some servers send several names of a count. One can be written as a text, or with a fraction of
    /// zero; one that no answer can have is none.
    fn count(&self, places: &[&str]) -> Option<u64> {
        places.iter().find_map(|place| {
            let count = self.0.pointer(place)?;
            let count = count.as_f64().or_else(|| count.as_str()?.parse().ok())?;
            (count.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&count)).then_some(count as u64)
        })
    }

    /// Tokens of the prompt, those of a cache included.
    pub fn input_tokens(&self) -> Option<u64> {
        let all = || {
            // Anthropic's `input_tokens` leaves these out.
            let apart = ["/cache_creation_input_tokens", "/cache_read_input_tokens"];
            let apart = apart.into_iter().filter_map(|place| self.count(&[place]));
            Some(self.count(&["/input_tokens"])? + apart.sum::<u64>())
        };
        self.count(&["/prompt_tokens"]).or_else(all)
    }

    /// Tokens of the prompt that the server had in a cache.
    pub fn cached_tokens(&self) -> Option<u64> {
        self.count(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cache_read_input_tokens",
            // Of servers without details, DeepSeek's last.
            "/cached_tokens",
            "/prompt_cache_hit_tokens",
        ])
    }

    /// Tokens of the output, reasoning included.
    pub fn output_tokens(&self) -> Option<u64> {
        Some(self.counted_tokens()? + self.apart_tokens())
    }

    fn counted_tokens(&self) -> Option<u64> {
        self.count(&["/completion_tokens", "/output_tokens"])
    }

    /// Reasoning that the count of the output leaves out, as some servers do: by the total it comes on top.
    pub fn apart_tokens(&self) -> u64 {
        let counts = [self.input_tokens(), self.counted_tokens(), self.reasoning_tokens()];
        let sum = counts.into_iter().sum::<Option<u64>>();
        self.reasoning_tokens().filter(|_| sum.is_some() && sum == self.count(&["/total_tokens"])).unwrap_or(0)
    }

    /// Tokens of the output that are reasoning.
    pub fn reasoning_tokens(&self) -> Option<u64> {
        self.count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/completion_tokens_details/thinking_tokens",
            "/output_tokens_details/reasoning_tokens",
            "/output_tokens_details/thinking_tokens",
        ])
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
