//! What is answered where there is no completion, in the form that OpenAI clients know.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Seconds after which a refused client may come again.
const RETRY_AFTER_S: &str = "1";

/// A status, and why.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    /// The field of the request that is wrong.
    param: Option<&'static str>,
    message: String,
}

/// The body of every refusal, and of the event in a stream that breaks off.
#[derive(Serialize)]
struct Wire<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl Refusal {
    /// The request is wrong: 400.
    pub fn bad(param: Option<&'static str>, message: impl Into<String>) -> Self {
        let (status, kind) = (StatusCode::BAD_REQUEST, "invalid_request_error");
        Self { status, kind, code: None, param, message: message.into() }
    }

    /// Prompt and output do not fit the context: 400, with the code that clients look for.
    pub fn too_long(param: &'static str, message: String) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::bad(Some(param), message) }
    }

    /// Another model than the one that is served: 404.
    pub fn no_such_model(model: &str, served: &str) -> Self {
        let message = format!("the model '{model}' is not served here; ask for '{served}'");
        Self { status: StatusCode::NOT_FOUND, code: Some("model_not_found"), ..Self::bad(Some("model"), message) }
    }

    /// Nothing is at this address: 404.
    pub fn no_such_page() -> Self {
        let message = "there is nothing here; ask /v1/completions, /v1/chat/completions, /v1/models or /health";
        Self { status: StatusCode::NOT_FOUND, ..Self::bad(None, message) }
    }

    /// Another method than the page's: 405.
    pub fn wrong_method() -> Self {
        let message = "not by this method; POST completions, GET models and health";
        Self { status: StatusCode::METHOD_NOT_ALLOWED, ..Self::bad(None, message) }
    }

    /// The body cannot be read, most often because it is too long.
    pub fn unreadable(status: StatusCode, message: String) -> Self {
        Self { status, ..Self::bad(None, message) }
    }

    /// The body did not arrive in time: 408.
    pub fn slow() -> Self {
        Self {
            status: StatusCode::REQUEST_TIMEOUT,
            ..Self::bad(None, "the request did not arrive in time; send it again")
        }
    }

    /// Every place is taken: 429.
    pub fn full() -> Self {
        let message = "the server is full; try again later".to_owned();
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { status, kind: "rate_limit_error", code: Some("rate_limit_exceeded"), param: None, message }
    }

    /// The engine failed: 500.
    pub fn failed(message: String) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, kind: "server_error", code: None, param: None, message }
    }

    /// There is no engine any more: 503.
    pub fn gone() -> Self {
        let failed = Self::failed("the engine ended; start the server again".into());
        Self { status: StatusCode::SERVICE_UNAVAILABLE, ..failed }
    }

    /// As JSON.
    pub fn body(&self) -> String {
        let Self { kind, code, param, message, .. } = self;
        let wire = Wire { error: Inner { message, r#type: kind, param: *param, code: *code } };
        // Four texts are always JSON.
        serde_json::to_string(&wire).unwrap_or_default()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(self.status, self.body());
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response
    }
}

/// A response with a body of JSON.
pub fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
