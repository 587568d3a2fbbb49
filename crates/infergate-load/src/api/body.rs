//! What a request asks for, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Which of the two endpoints is asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `/chat/completions`.
    Chat,
    /// `/completions`.
    Completions,
}

impl Api {
    /// The end of its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Completions => "/completions",
        }
    }

    /// Its name on the command line and in receipts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }
}

/// What every request says besides its prompt. Decoding is greedy.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which endpoint.
    pub api: Api,
    /// The model's name at the server.
    pub model: String,
    /// The field that limits the output: `max_tokens`, or `max_completion_tokens`.
    pub limit_field: &'static str,
    /// Send `ignore_eos`, an extension of some servers.
    pub ignore_eos: bool,
    /// Send `min_tokens`, an extension of some servers, with the number of output tokens.
    pub min_tokens: bool,
    /// Ask for the count of tokens in a last chunk.
    pub usage: bool,
    /// Merged into the request: null removes a key, an object is merged into the one that is there.
    pub extra: Map<String, Value>,
}

impl Wanted {
    /// Whether the server was asked for exactly so many tokens, so that fewer are a failure.
    pub fn is_exact(&self) -> bool {
        self.ignore_eos || self.min_tokens
    }

    /// The body of a request for `output_tokens` tokens.
    pub fn body(&self, prompt: &str, output_tokens: u32) -> String {
        let mut body = json!({ "model": self.model, "stream": true, "temperature": 0.0 });
        let mut set = |field: &str, value: Value| {
            body[field] = value;
        };
        match self.api {
            Api::Chat => set("messages", json!([{ "role": "user", "content": prompt }])),
            Api::Completions => set("prompt", prompt.into()),
        }
        set(self.limit_field, output_tokens.into());
        if self.usage {
            set("stream_options", json!({ "include_usage": true }));
        }
        if self.ignore_eos {
            set("ignore_eos", true.into());
        }
        if self.min_tokens {
            set("min_tokens", output_tokens.into());
        }
        merge(&mut body, &Value::Object(self.extra.clone()));
        body.to_string()
    }
}

/// As RFC 7396 says.
fn merge(body: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        body.clone_from(patch);
        return;
    };
    if !body.is_object() {
        *body = json!({});
    }
    for (key, value) in patch {
        match (value, body.as_object_mut()) {
            (Value::Null, Some(body)) => drop(body.remove(key)),
            _ => merge(&mut body[key], value),
        }
    }
}
