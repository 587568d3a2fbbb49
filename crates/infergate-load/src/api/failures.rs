//! Why a request failed: from what the network says to a class and one sentence.

use std::io;

use infergate_core::load::{Failure, FailureClass};

/// A failure without a status.
pub fn failure(class: FailureClass, detail: impl Into<String>) -> Failure {
    Failure { class, status: None, detail: detail.into() }
}

/// The failure that a status is; `None` for one that is none (2xx).
pub fn of_status(status: u16) -> Option<Failure> {
    let (class, what) = match status {
        200..=299 => return None,
        429 => (FailureClass::Status429, "the server is full"),
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

/// No connection to the server.
pub fn of_connect(error: &io::Error) -> Failure {
    failure(FailureClass::Connect, format!("no connection: {}", kind(error)))
}

/// The system's word for it, which names no address.
pub fn kind(error: &io::Error) -> String {
    error.kind().to_string()
}
