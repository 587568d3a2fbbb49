//! Why an answer ended, in the words of many servers.

use serde::Deserialize;
use serde::de::Deserializer;
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

/// Where other APIs say it.
#[derive(Default, Deserialize)]
pub struct End {
    #[serde(default, alias = "stop_reason", deserialize_with = "read")]
    pub reason: Option<Reason>,
}

/// How the names of reasons begin by which an answer is whole.
const WHOLE: [&str; 10] = ["stop", "end", "eos", "complete", "done", "tool", "function", "pause", "model_", "max"];

/// An empty one, which some servers send with every piece, is none.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    let reason = Value::deserialize(deserializer)?;
    let name = reason.as_str().or_else(|| reason.get("type")?.as_str());
    let reason = name.unwrap_or_default().to_lowercase();
    Ok(match &*reason {
        "" | "null" | "none" => None,
        "length" | "limit" | "token_limit" | "max_tokens" | "max_output_tokens" => Some(Reason::Length),
        name if WHOLE.iter().any(|whole| name.starts_with(whole)) => Some(Reason::Stop),
        _ => Some(Reason::Other(reason)),
    })
}
