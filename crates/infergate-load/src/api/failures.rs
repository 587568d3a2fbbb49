//! Why a request failed: from what the network says to a class and one sentence.

use std::io;

use infergate_core::load::{Failure, FailureClass};
use serde_json::Value;

/// A failure without a status.
pub fn failure(class: FailureClass, detail: impl Into<String>) -> Failure {
    Failure { class, status: None, detail: detail.into() }
}

/// The failure that a status is; `None` for one that is none (2xx).
pub fn of_status(status: u16) -> Option<Failure> {
    let (class, what) = match status {
        200..=299 => return None,
        429 => (FailureClass::Status429, "too many requests"),
        400 | 413 | 422 => (
            FailureClass::Status4xx,
            "the server refused the request; shorten prompts that are too long for it (of load: --context), or send other fields",
        ),
        400..=499 => (
            FailureClass::Status4xx,
            "the server refused the request; check the URL, the API, the name of the model and the key",
        ),
        500..=599 => (FailureClass::Status5xx, "the server failed"),
        _ => (
            FailureClass::MalformedStream,
            "the server answered with neither a stream nor an error; redirects are not followed",
        ),
    };
    Some(Failure { class, status: Some(status), detail: format!("status {status}: {what}") })
}

/// Whether an event without output says that the server failed: by a field whose name begins with `error`, or by a code.
pub fn is_failure(event: &Value) -> bool {
    let errors = event.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("error"));
    let codes = ["/code", "/base_resp/status_code"].iter().filter_map(|at| event.pointer(at)?.as_i64());
    errors.into_iter().any(|(_, value)| !is_empty(value)) || codes.into_iter().any(|code| !matches!(code, 0 | 200))
}

/// Whether a value says nothing.
pub fn is_empty(value: &Value) -> bool {
    ["null", "false", "0", "\"\"", "[]", "{}"].contains(&&*value.to_string())
}

/// What an error says: the status in it, from 400 to 599, and the server's words, which no file may hold: they can repeat the prompt.
pub fn error_of(text: &[u8]) -> (Option<u16>, String) {
    let json: Value = serde_json::from_slice(text).unwrap_or_default();
    // Google's is the one item of a list.
    let error = json.get(0).unwrap_or(&json);
    let status = ["/error/code", "/code"].iter().find_map(|at| u16::try_from(error.pointer(at)?.as_u64()?).ok());
    let places = [
        "/error/message",
        "/message",
        "/response/error/message",
        "/error",
        "/detail",
        "/error_message",
        "/base_resp/status_msg",
    ];
    let words = places.iter().find_map(|at| error.pointer(at)?.as_str());
    let whole = || if json.is_null() { String::from_utf8_lossy(text).into_owned() } else { json.to_string() };
    let words = words.map_or_else(whole, str::to_owned);
    (status.filter(|status| (400..600).contains(status)), words)
}

/// No connection to the server.
pub fn of_connect(error: &io::Error) -> Failure {
    // The system's word for it, which names no address.
    failure(FailureClass::Connect, format!("no connection: {}", error.kind()))
}
