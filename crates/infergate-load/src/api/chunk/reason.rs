//! Why an answer ended, in the words of many servers.

use serde_json::Value;

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// `length`, or the name of the limit: all that was asked for.
    Length,
    /// The model ended it.
    Stop,
    /// By its name no end of a whole answer, as `abort`, `error` or `content_filter`.
    Other(String),
}

/// How the names of reasons begin by which an answer is whole.
const WHOLE: [&str; 10] = ["stop", "end", "eos", "complete", "done", "tool", "function", "pause", "model_", "max"];

impl Reason {
    /// An empty one, which some servers send with every piece, is none.
    pub fn of(reason: &Value) -> Option<Self> {
        let name = reason.as_str().or_else(|| reason.get("type")?.as_str())?.to_lowercase();
        match &*name {
            "" | "null" | "none" => None,
            "length" | "limit" | "token_limit" | "max_tokens" | "max_output_tokens" => Some(Self::Length),
            _ if WHOLE.iter().any(|whole| name.starts_with(whole)) => Some(Self::Stop),
            _ => Some(Self::Other(name)),
        }
    }
}
