//! A model behind an OpenAI-compatible API, for trying `cargo infergate load`. It listens on loopback only, without authentication.
//!
//! `cargo run --release -p infergate-candle --example serve -- --model synthetic:gpt2 --slots 8`
//!
//! With `--timed TTFT,ITL` it computes nothing: each request gets its tokens at these times, so a load client can be checked.
//! The first line on stdout is the address. Decoding is greedy, and every request gets exactly as many tokens as it asks for.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use clap::Parser;
use futures_util::stream;
use infergate::engine::scheduler::ensure_request_fits;
use infergate::engine::{Engine, EngineFactory as _, EngineInfo, Event, LoadRequest, RequestId, Scheduler, TokenId};
use infergate_candle::Candle;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Output tokens of a request that names no number, as in OpenAI's API.
const DEFAULT_OUTPUT_TOKENS: usize = 16;
/// Tokens of `--timed` are below this.
const TIMED_VOCAB_TOKENS: u64 = 50_000;
/// The timed scheduler waits no longer than this in one step, so that it takes in further requests meanwhile.
const SLICE: Duration = Duration::from_micros(250);

#[derive(Parser)]
struct Arguments {
    /// The model spec
    #[arg(long, default_value = "synthetic:gpt2")]
    model: String,
    /// Compute type, for example f32
    #[arg(long)]
    dtype: Option<String>,
    /// Threads to compute with
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Port of 127.0.0.1; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Requests that are served at once
    #[arg(long, default_value_t = 8)]
    slots: usize,
    /// Requests that wait for a slot; further ones get status 429
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Compute nothing: milliseconds to the first token, and from each token to the next
    #[arg(long, value_name = "TTFT,ITL", value_delimiter = ',')]
    timed: Vec<u64>,
    /// Changes the output of `--timed`
    #[arg(long, default_value_t = 0)]
    salt: u64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let request = LoadRequest {
        model: arguments.model,
        dtype: arguments.dtype,
        threads: arguments.threads,
        ..LoadRequest::default()
    };
    infergate_core::process::ensure_environment(&Candle.environment(&request))?;
    // HTTP has one thread, the engine its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let port = arguments.port;
    let listener = runtime
        .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
        .with_context(|| format!("cannot listen on port {port}; choose another one, or 0 for any free one"))?;
    let (info, engine, scheduler): (_, _, Box<dyn Scheduler + Send>) = match arguments.timed[..] {
        [] => {
            let engine = Candle.load(&request)?;
            let scheduler = engine.scheduler(arguments.slots)?;
            (engine.info(), Some(engine), scheduler)
        }
        [ttft, itl] => {
            let (ttft, itl) = (Duration::from_millis(ttft), Duration::from_millis(itl));
            let (context_tokens, vocab_tokens) = (32_768, TIMED_VOCAB_TOKENS as usize);
            let info = EngineInfo { model: "timed".into(), context_tokens, vocab_tokens, ..EngineInfo::default() };
            let (salt, slots, running) = (arguments.salt, arguments.slots, Vec::new());
            (info, None, Box::new(Timed { salt, ttft, itl, slots, running, submitted: 0 }))
        }
        _ => bail!("--timed takes two numbers, as in --timed 200,20"),
    };
    let (jobs, incoming) = mpsc::channel();
    thread::spawn(move || work(scheduler, &incoming));
    let app = Arc::new(App {
        info,
        tokenizer: engine.filter(|engine| matches!(engine.tokenize("a"), Ok(Some(_)))).map(Mutex::new),
        jobs,
        places: Arc::new(Semaphore::new(arguments.slots + arguments.queue)),
        requests: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/v1/completions", post(async |State(app), body| answer(app, false, body).await))
        .route("/v1/chat/completions", post(async |State(app), body| answer(app, true, body).await))
        .route("/v1/models", get(models))
        .route("/health", get(async || json_response(StatusCode::OK, &json!({ "status": "ok" }))))
        .with_state(app);
    println!("http://{}", listener.local_addr()?);
    runtime.block_on(async {
        // A token is a small packet, and must not wait for the answer to the one before.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, router).await
    })?;
    Ok(())
}

struct App {
    info: EngineInfo,
    /// Reads and writes text; the requests run on its scheduler.
    tokenizer: Option<Mutex<Box<dyn Engine + Send>>>,
    jobs: mpsc::Sender<Job>,
    /// One for each request that is served or waits.
    places: Arc<Semaphore>,
    requests: AtomicU64,
}

impl App {
    /// The tokens of `text`; one a word without a tokenizer.
    fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        match &self.tokenizer {
            Some(engine) => {
                let engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(engine.tokenize(text)?.unwrap_or_default())
            }
            None => {
                let vocab_tokens = self.info.vocab_tokens as TokenId;
                let next = |id: TokenId, byte: u8| (31 * id + TokenId::from(byte)) % vocab_tokens;
                Ok(text.split_whitespace().map(|word| word.bytes().fold(0, next)).collect())
            }
        }
    }

    /// The text of `tokens`; without a tokenizer token 17 is `t17 `.
    fn decode(&self, tokens: &[TokenId]) -> Result<String> {
        match &self.tokenizer {
            Some(engine) => {
                let engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(engine.detokenize(tokens)?.unwrap_or_default())
            }
            None => Ok(tokens.iter().map(|token| format!("t{token} ")).collect()),
        }
    }
}

/// The fields of both APIs. Fields that change nothing of a greedy decoder's work are ignored.
#[derive(Deserialize)]
struct Request {
    prompt: Option<Prompt>,
    #[serde(default)]
    messages: Vec<Message>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: StreamOptions,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<TokenId>),
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

#[derive(Deserialize, Default)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let EngineInfo { model, context_tokens, .. } = &app.info;
    let model = json!({ "id": model, "object": "model", "owned_by": "infergate", "max_model_len": context_tokens });
    json_response(StatusCode::OK, &json!({ "object": "list", "data": [model] }))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn error(message: &str) -> Value {
    json!({ "error": { "message": message } })
}

async fn answer(app: Arc<App>, chat: bool, body: Bytes) -> Response {
    let Ok(place) = app.places.clone().try_acquire_owned() else {
        return json_response(StatusCode::TOO_MANY_REQUESTS, &error("the server is full; try again later"));
    };
    let (request, prompt) = match understand(&app, chat, &body) {
        Ok(understood) => understood,
        Err(why) => return json_response(StatusCode::BAD_REQUEST, &error(&format!("{why:#}"))),
    };
    let (said, tokens) = unbounded_channel();
    let (prompt_tokens, output_tokens) = (prompt.len(), request.output_tokens());
    // If the engine's thread has ended, `tokens` says so.
    let _ = app.jobs.send(Job { prompt, output_tokens, tokens: said, place });
    let answer = Answer {
        number: app.requests.fetch_add(1, Ordering::Relaxed),
        created_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        app,
        chat,
        include_usage: request.stream_options.include_usage,
        prompt_tokens,
        output_tokens,
        tokens,
        given: Vec::new(),
        settled: 0,
        written: 0,
    };
    if !request.stream {
        return answer.whole().await;
    }
    let events = stream::unfold(Some(answer), async |answer| {
        let mut answer = answer?;
        let (events, is_over) = answer.events().await;
        Some((Ok::<_, Infallible>(events), (!is_over).then_some(answer)))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// The request and its prompt's tokens, which fit the context together with the output.
fn understand(app: &App, chat: bool, body: &[u8]) -> Result<(Request, Vec<TokenId>)> {
    let request: Request = serde_json::from_slice(body).context("the body is no request of this API")?;
    let prompt = match &request.prompt {
        // There are no chat templates here.
        _ if chat => {
            let lines = request.messages.iter().map(|message| format!("{}: {}\n", message.role, message.content));
            app.encode(&(lines.collect::<String>() + "assistant:"))?
        }
        Some(Prompt::Text(text)) => app.encode(text)?,
        Some(Prompt::Ids(ids)) => ids.clone(),
        None => bail!("the request has no prompt"),
    };
    ensure!(request.output_tokens() > 0, "max_tokens is 0; give at least one token");
    ensure!(
        prompt.iter().all(|id| (*id as usize) < app.info.vocab_tokens),
        "the prompt has a token outside the vocabulary"
    );
    ensure_request_fits(&prompt, request.output_tokens(), app.info.context_tokens)?;
    Ok((request, prompt))
}

impl Request {
    fn output_tokens(&self) -> usize {
        self.max_completion_tokens.or(self.max_tokens).unwrap_or(DEFAULT_OUTPUT_TOKENS)
    }
}

/// A completion on its way to the client.
struct Answer {
    app: Arc<App>,
    chat: bool,
    include_usage: bool,
    number: u64,
    created_s: u64,
    prompt_tokens: usize,
    output_tokens: usize,
    tokens: UnboundedReceiver<Result<TokenId, String>>,
    /// Tokens so far.
    given: Vec<TokenId>,
    /// Tokens before this one cannot change the text of later ones any more.
    settled: usize,
    /// Tokens whose text was written.
    written: usize,
}

impl Answer {
    /// The text that the next tokens add: of more than one where a character has several.
    async fn next(&mut self) -> Result<String, String> {
        loop {
            let token = self.tokens.recv().await.unwrap_or_else(|| Err("the engine ended".into()))?;
            self.given.push(token);
            let decode = |from: usize, to: usize| {
                self.app.decode(&self.given[from..to]).map_err(|error| format!("the tokenizer failed: {error:#}"))
            };
            // A tokenizer may write a token differently where it stands first: some written ones are decoded with it.
            let before = decode(self.settled, self.written)?;
            let all = decode(self.settled, self.given.len())?;
            let text = all.strip_prefix(before.as_str()).or(all.get(before.len()..)).unwrap_or_default();
            if self.is_complete() || !(text.is_empty() || all.ends_with('\u{fffd}')) {
                (self.settled, self.written) = (self.written, self.given.len());
                return Ok(text.to_owned());
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.given.len() == self.output_tokens
    }

    fn usage(&self) -> Value {
        let (prompt, output) = (self.prompt_tokens, self.given.len());
        json!({ "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output })
    }

    fn body(&self, object: &str, choices: &Value, usage: &Value) -> Value {
        json!({
            "id": format!("cmpl-{}", self.number),
            "object": object,
            "created": self.created_s,
            "model": self.app.info.model,
            "choices": choices,
            "usage": usage,
        })
    }

    async fn whole(mut self) -> Response {
        let mut text = String::new();
        while !self.is_complete() {
            match self.next().await {
                Ok(more) => text += &more,
                Err(why) => return json_response(StatusCode::INTERNAL_SERVER_ERROR, &error(&why)),
            }
        }
        let (object, mut choice) = match self.chat {
            true => ("chat.completion", json!({ "message": { "role": "assistant", "content": text } })),
            false => ("text_completion", json!({ "text": text })),
        };
        (choice["index"], choice["finish_reason"]) = (0.into(), "length".into());
        json_response(StatusCode::OK, &self.body(object, &json!([choice]), &self.usage()))
    }

    /// The events of the next text, in one piece, and whether they are the last ones.
    async fn events(&mut self) -> (String, bool) {
        let is_first = self.given.is_empty();
        let text = match self.next().await {
            Ok(text) => text,
            Err(why) => return (event(&error(&why)), true),
        };
        let is_over = self.is_complete();
        let (object, mut choice) = match self.chat {
            true => ("chat.completion.chunk", json!({ "delta": { "content": text } })),
            false => ("text_completion", json!({ "text": text })),
        };
        if self.chat && is_first {
            choice["delta"]["role"] = "assistant".into();
        }
        (choice["index"], choice["finish_reason"]) = (0.into(), is_over.then_some("length").into());
        let mut events = event(&self.body(object, &json!([choice]), &Value::Null));
        if is_over {
            if self.include_usage {
                events += &event(&self.body(object, &json!([]), &self.usage()));
            }
            events += "data: [DONE]\n\n";
        }
        (events, is_over)
    }
}

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}

/// A request on its way to the engine, which cancels it once nobody receives its tokens.
struct Job {
    prompt: Vec<TokenId>,
    output_tokens: usize,
    tokens: UnboundedSender<Result<TokenId, String>>,
    place: OwnedSemaphorePermit,
}

impl Job {
    fn fail(self, error: &anyhow::Error) {
        let _ = self.tokens.send(Err(format!("{error:#}")));
    }
}

/// The engine's thread: serves `jobs` together, first come first served.
fn work(mut scheduler: Box<dyn Scheduler + Send>, jobs: &mpsc::Receiver<Job>) {
    let (mut waiting, mut running) = (VecDeque::new(), HashMap::new());
    loop {
        if waiting.is_empty() && running.is_empty() {
            let Ok(job) = jobs.recv() else { return };
            waiting.push_back(job);
        }
        waiting.extend(jobs.try_iter());
        waiting.retain(|job| !job.tokens.is_closed());
        while scheduler.in_flight() < scheduler.capacity() {
            let Some(job) = waiting.pop_front() else { break };
            match scheduler.submit(&job.prompt, job.output_tokens) {
                Ok(request) => drop(running.insert(request, job)),
                Err(error) => job.fail(&error),
            }
        }
        match scheduler.step() {
            Ok(events) => {
                for Event { request, token, finished, .. } in events {
                    if finished && let Some(Job { tokens, place, .. }) = running.remove(&request) {
                        // The place is free before the client knows that its request ended, or its next one could be refused.
                        drop(place);
                        let _ = tokens.send(Ok(token));
                    } else if running.get(&request).is_some_and(|job| job.tokens.send(Ok(token)).is_err()) {
                        scheduler.cancel(request);
                        running.remove(&request);
                    }
                }
            }
            Err(error) => running.drain().for_each(|(_, job)| job.fail(&error)),
        }
    }
}

/// Gives each request its tokens at set times, whatever the others do. Each is a hash of all tokens before it.
struct Timed {
    salt: u64,
    ttft: Duration,
    itl: Duration,
    slots: usize,
    running: Vec<Running>,
    submitted: u64,
}

struct Running {
    request: RequestId,
    /// Of the tokens so far.
    hash: u64,
    due: Instant,
    given: usize,
    output_tokens: usize,
}

/// FNV-1a over `tokens`, behind those that `hash` is of.
fn hashed(hash: u64, tokens: &[TokenId]) -> u64 {
    tokens.iter().fold(hash, |hash, token| (hash ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3))
}

impl Running {
    fn next(&mut self) -> Event {
        let token = (self.hash % TIMED_VOCAB_TOKENS) as TokenId;
        self.hash = hashed(self.hash, &[token]);
        self.given += 1;
        let (index, finished) = (self.given - 1, self.given == self.output_tokens);
        Event { request: self.request, token, index, age_ns: 0, finished }
    }
}

impl Scheduler for Timed {
    fn capacity(&self) -> usize {
        self.slots
    }

    fn in_flight(&self) -> usize {
        self.running.len()
    }

    fn submit(&mut self, prompt: &[TokenId], output_tokens: usize) -> Result<RequestId> {
        let request = RequestId(self.submitted);
        self.submitted += 1;
        let (hash, due) = (hashed(0xcbf2_9ce4_8422_2325 ^ self.salt, prompt), Instant::now() + self.ttft);
        self.running.push(Running { request, hash, due, given: 0, output_tokens });
        Ok(request)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        let now = Instant::now();
        let mut events = Vec::new();
        for running in &mut self.running {
            if running.due <= now {
                running.due += self.itl;
                events.push(running.next());
            }
        }
        self.running.retain(|running| running.given < running.output_tokens);
        if events.is_empty()
            && let Some(due) = self.running.iter().map(|running| running.due).min()
        {
            thread::sleep(due.saturating_duration_since(now).min(SLICE));
        }
        Ok(events)
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        let before = self.running.len();
        self.running.retain(|running| running.request != request);
        self.running.len() < before
    }
}
