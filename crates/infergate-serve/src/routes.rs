//! The pages of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use infergate::engine::TokenId;
use infergate::engine::scheduler::ensure_request_fits;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::answer::Writer;
use crate::engine_thread::{Job, Status};
use crate::prompt::Prompt;
use crate::refusal::{Refusal, json as json_response};
use crate::request::{self, Api, Order};
use crate::stream::Served;
use crate::text::Text;

/// Bodies that are on their way, or wait to be read, have so much room together: a client may announce one and take its time.
const BODIES_BYTES: usize = 256 << 20;
/// It is given out in pieces of so much.
const PIECE_BYTES: usize = 1 << 10;

/// The room for bodies.
pub fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(BODIES_BYTES / PIECE_BYTES))
}

/// What every page knows.
pub struct App {
    /// The model's name.
    pub model: String,
    /// Prompt and output together must fit into this.
    pub context_tokens: usize,
    /// The tokenizer.
    pub text: Arc<Text>,
    /// To the engine.
    pub jobs: Sender<Job>,
    /// A place for each request that is served or waits.
    pub places: Arc<Semaphore>,
    /// See [`room`].
    pub room: Arc<Semaphore>,
    /// Longest body of a request, bytes.
    pub body_limit_bytes: usize,
    /// How long a request's body may take to arrive.
    pub silence: Duration,
    /// How busy it is.
    pub status: Arc<Status>,
    /// Requests so far.
    pub requests: AtomicU64,
}

/// All pages. A longer body than the limit is refused.
pub fn router(app: Arc<App>) -> Router {
    let body_limit_bytes = app.body_limit_bytes;
    Router::new()
        .route("/v1/completions", post(completions))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .route("/health", get(health))
        .fallback(async || Refusal::no_such_page())
        .method_not_allowed_fallback(async || Refusal::wrong_method())
        .layer(DefaultBodyLimit::max(body_limit_bytes))
        .with_state(app)
}

async fn completions(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    answer(app, Api::Completions, request).await
}

async fn chat(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    answer(app, Api::Chat, request).await
}

async fn answer(app: Arc<App>, api: Api, request: Request) -> Result<Response, Refusal> {
    let room = room_for(&app, &request)?;
    let body = timeout(app.silence, Bytes::from_request(request, &())).await.map_err(|_| Refusal::slow())?;
    let body = body.map_err(|error| Refusal::unreadable(error.status(), error.body_text()))?;
    // Before anything is done for it: who is refused costs nothing more.
    let place = app.places.clone().try_acquire_owned().map_err(|_| Refusal::full())?;
    // Beside the thread that writes: neither a long body nor a long prompt holds up other requests' tokens. The place goes along,
    // or a client that comes, leaves and comes again would have many prompts read at once.
    let reader = app.clone();
    let read = spawn_blocking(move || {
        let understood = understood(&reader, api, &body);
        drop((body, room));
        understood.map(|understood| (understood, place))
    });
    let read = read.await;
    let read = read.map_err(|error| Refusal::failed(format!("the tokenizer failed: {error}")))?;
    let ((Order { output_tokens, stream, include_usage, .. }, prompt), place) = read?;
    let (said, from_engine) = unbounded_channel();
    let prompt_tokens = prompt.len();
    app.jobs.send(Job { prompt, output_tokens, said, place }).map_err(|_| Refusal::gone())?;
    let served = Served { said: from_engine, text: app.text.clone(), prompt_tokens, output_tokens };
    let number = app.requests.fetch_add(1, Ordering::Relaxed);
    let writer = Writer::new(api, number, &app.model, include_usage);
    if stream {
        return Ok(served.streamed(writer));
    }
    Ok(json_response(StatusCode::OK, served.whole(&writer).await?))
}

/// Room for a request's body, of the length that it announces, or else of the longest.
fn room_for(app: &App, request: &Request) -> Result<OwnedSemaphorePermit, Refusal> {
    let longest = app.body_limit_bytes.min(BODIES_BYTES);
    let announced = request.body().size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let pieces = announced.map_or(longest, |bytes| bytes.min(longest)).div_ceil(PIECE_BYTES);
    let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
    app.room.clone().try_acquire_many_owned(pieces).map_err(|_| Refusal::full())
}

/// What is asked for, and the prompt's tokens, which fit with the output into the context.
fn understood(app: &App, api: Api, body: &[u8]) -> Result<(Order, Vec<TokenId>), Refusal> {
    let mut order = request::read(api, body, &app.model)?;
    let prompt = std::mem::replace(&mut order.prompt, Prompt::Several);
    let prompt = tokens(app, api, prompt)?;
    ensure_request_fits(&prompt, order.output_tokens, app.context_tokens)
        .map_err(|error| Refusal::too_long(api.prompt_field(), format!("{error:#}")))?;
    Ok((order, prompt))
}

/// The prompt's tokens, at least one.
fn tokens(app: &App, api: Api, prompt: Prompt) -> Result<Vec<TokenId>, Refusal> {
    let bad = |message: String| Refusal::bad(Some(api.prompt_field()), message);
    let ids = match prompt {
        Prompt::Text(text) => encode(app, api, &text)?,
        Prompt::Ids(ids) => ids,
        Prompt::Several => return Err(bad("one prompt a request is served; send a request for each".into())),
    };
    let vocab_tokens = app.text.vocab_tokens();
    if ids.is_empty() {
        return Err(bad("the prompt has no tokens; give at least one".into()));
    }
    if ids.iter().any(|id| *id as usize >= vocab_tokens) {
        return Err(bad(format!("the prompt has a token outside the vocabulary; ids are below {vocab_tokens}")));
    }
    Ok(ids)
}

fn encode(app: &App, api: Api, text: &str) -> Result<Vec<TokenId>, Refusal> {
    let (bytes, context_tokens) = (text.len(), app.context_tokens);
    if bytes > app.text.most_bytes(context_tokens) {
        let message = format!("a prompt of {bytes} bytes does not fit a context of {context_tokens} tokens");
        return Err(Refusal::too_long(api.prompt_field(), message));
    }
    app.text.encode(text).map_err(|error| Refusal::failed(format!("the tokenizer failed: {error:#}")))
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let model = json!({
        "id": app.model,
        "object": "model",
        "created": 0,
        "owned_by": "infergate",
        "max_model_len": app.context_tokens,
    });
    json_response(StatusCode::OK, json!({ "object": "list", "data": [model] }).to_string())
}

async fn health(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    if app.status.over.load(Ordering::Relaxed) {
        return Err(Refusal::gone());
    }
    let count = |number: &std::sync::atomic::AtomicUsize| number.load(Ordering::Relaxed);
    let (in_flight, waiting) = (count(&app.status.in_flight), count(&app.status.waiting));
    let body = json!({ "status": "ok", "in_flight": in_flight, "waiting": waiting });
    Ok(json_response(StatusCode::OK, body.to_string()))
}
