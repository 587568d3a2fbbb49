//! What a request asks for, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Which API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's `/chat/completions`.
    #[default]
    Chat,
    /// OpenAI's `/completions`.
    Completions,
    /// OpenAI's `/responses`.
    Responses,
    /// Anthropic's `/messages`.
    Messages,
    /// OpenAI's `/embeddings`, which stream nothing.
    Embeddings,
}

impl Api {
    /// Each API that streams tokens with its name on the command line and in receipts.
    pub const OF_TOKENS: [(&'static str, Self); 4] = [
        ("chat", Self::Chat),
        ("completions", Self::Completions),
        ("responses", Self::Responses),
        ("messages", Self::Messages),
    ];

    /// All of them.
    pub const ALL: [(&'static str, Self); 5] = {
        let [chat, completions, responses, messages] = Self::OF_TOKENS;
        [chat, completions, responses, messages, ("embeddings", Self::Embeddings)]
    };

    /// The end of its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Completions => "/completions",
            Self::Responses => "/responses",
            Self::Messages => "/messages",
            Self::Embeddings => "/embeddings",
        }
    }

    /// Its name on the command line and in receipts.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, api)| *api == self).map_or("", |(name, _)| name)
    }

    /// Name and value of the header that has the key.
    pub fn key_header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Messages => ("x-api-key", key.to_owned()),
            _ => ("authorization", format!("Bearer {key}")),
        }
    }

    /// Name and value of the header that every request has to have.
    pub fn version_header(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Messages).then_some(("anthropic-version", "2023-06-01"))
    }
}

/// What every request says besides its prompt. Decoding is greedy.
#[derive(Debug, Clone, Default)]
pub struct RequestTemplate {
    /// Which API.
    pub api: Api,
    /// The model's name at the server.
    pub model: String,
    /// The field of chat and completions that limits the output: `max_tokens`, or `max_completion_tokens`.
    pub limit_field: &'static str,
    /// Send `ignore_eos` and `min_tokens`, extensions of some servers: fewer tokens than were asked for are a failure.
    pub ignore_eos: bool,
    /// Merged into the request: null removes a key, an object is merged into the one that is there.
    pub extra: Map<String, Value>,
}

impl RequestTemplate {
    /// The body of a request for `output_tokens` tokens.
    pub fn body(&self, prompt: &str, output_tokens: u32) -> String {
        let mut body = self.asked(prompt, output_tokens);
        merge(&mut body, &Value::Object(self.extra.clone()));
        body.to_string()
    }

    fn asked(&self, prompt: &str, output_tokens: u32) -> Value {
        let messages = || json!([{ "role": "user", "content": prompt }]);
        let (field, value, limit_field) = match self.api {
            Api::Chat => ("messages", messages(), self.limit_field),
            Api::Completions => ("prompt", prompt.into(), self.limit_field),
            Api::Responses => ("input", prompt.into(), "max_output_tokens"),
            Api::Messages => ("messages", messages(), "max_tokens"),
            Api::Embeddings => return json!({ "model": self.model, "input": prompt }),
        };
        let mut body = json!({ "model": self.model, "stream": true, "temperature": 0.0 });
        body[field] = value;
        body[limit_field] = output_tokens.into();
        // Others count tokens unasked.
        if matches!(self.api, Api::Chat | Api::Completions) {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if self.ignore_eos {
            body["ignore_eos"] = true.into();
            body["min_tokens"] = output_tokens.into();
        }
        body
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
