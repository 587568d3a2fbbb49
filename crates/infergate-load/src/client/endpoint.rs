//! A server, and one request to it over HTTP: connect, send, read the stream, with attempts and time limits. A record gets all of it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Request, Uri};
use infergate_core::load::{Failure, FailureClass, RequestRecord};
use infergate_core::printable::printable_within;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::api::body::RequestTemplate;
use crate::api::completion::Completion;
use crate::api::failures::{error_of, failure, of_status};
use crate::api::text::{AnswerText, Texts};
use crate::client::connection::{Connection, of_http};
use crate::client::dial::{Dial, Network};
use crate::client::stamped::RunClock;
use crate::client::url::Url;
use crate::targets::live::Live;

/// Bytes of a body that are read for an error's text, or only to use the connection again.
const MAX_REST_BYTES: usize = 64 << 10;
/// Characters of an error's text that are shown.
const SHOWN_CHARS: usize = 200;
/// Bytes of the shortest secret: shorter parts of headers occur in any text.
const LEAST_SECRET: usize = 4;
/// The longest that a user waits after `[DONE]` for the end of the answer, to use its connection again. Nothing is in flight meanwhile: so
/// after an answer that did not end in time nobody waits, until one does again.
const AFTER_DONE: Duration = Duration::from_millis(20);
/// The same for the text of an answer whose status is an error.
const AFTER_STATUS: Duration = Duration::from_secs(1);
/// A connection that takes longer is not made.
const CONNECT: Duration = Duration::from_secs(10);
/// Codings that change the bytes of a stream.
const CODINGS: [&str; 5] = ["gzip", "deflate", "compress", "br", "zstd"];
/// A server may close an idle connection while a request is on its way. The request fails within this time then, over the farthest
/// network, too.
const STALE: Duration = Duration::from_millis(400);

/// The time limit of a request, and its attempts.
#[derive(Clone, Copy)]
pub struct Limits {
    /// For a whole request, every attempt and wait included.
    pub request: Duration,
    /// Attempts in all, where the server says 429 or 5xx.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { request: Duration::from_secs(300), attempts: 3 }
    }
}

/// A server, and what is asked of it.
pub struct Endpoint {
    /// Makes its connections.
    pub dial: Box<dyn Dial>,
    path: Uri,
    headers: HeaderMap,
    /// What every request says.
    pub template: RequestTemplate,
    limits: Limits,
    /// It completed a request.
    pub answered: Cell<bool>,
    /// The last answer that was watched did not end soon [after `[DONE]`](AFTER_DONE).
    ends_late: Rc<Cell<bool>>,
    /// The texts of the answers so far, where they are kept.
    texts: Option<Texts>,
}

/// How one attempt ended, if not well.
enum Miss {
    /// The request failed.
    Final(Failure),
    /// It may be tried again; after this, where the server says so.
    Again(Failure, Option<Duration>),
    /// An old connection was closed just when it was used again. The next attempt makes a new one.
    Stale,
}

impl From<Failure> for Miss {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

impl Endpoint {
    /// The server behind `dial`; requests go to `url`. `key` is sent in a header, and shown nowhere.
    pub fn new(
        dial: Box<dyn Dial>,
        url: &Url,
        key: Option<&str>,
        template: RequestTemplate,
        limits: Limits,
    ) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&url.authority)?);
        for (name, value) in [
            (CONTENT_TYPE, "application/json"),
            (ACCEPT, "text/event-stream"),
            // A stream that is compressed comes in pieces of its own, if it comes as a stream at all.
            (ACCEPT_ENCODING, "identity"),
            (USER_AGENT, concat!("infergate/", env!("CARGO_PKG_VERSION"))),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = template.api.version_header() {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(key) = key {
            let (name, value) = template.api.key_header(key);
            let value =
                secret(&value).context("the API key holds characters that no request can carry; check its source")?;
            headers.insert(name, value);
        }
        Ok(Self {
            dial,
            path: url.path.parse()?,
            headers,
            template,
            limits,
            answered: Cell::default(),
            ends_late: Rc::default(),
            texts: None,
        })
    }

    /// As [`new`](Self::new), over the network.
    pub fn over_network(
        url: &Url,
        key: Option<&str>,
        template: RequestTemplate,
        limits: Limits,
    ) -> anyhow::Result<Self> {
        Self::new(Box::new(Network::new(url)?), url, key, template, limits)
    }

    /// Sends this header, too: `NAME: VALUE`.
    ///
    /// # Errors
    /// A text that is no header.
    pub fn add_header(&mut self, text: &str) -> anyhow::Result<()> {
        let (name, value) = text.split_once(':').context("--header: write NAME: VALUE")?;
        let name: HeaderName =
            name.trim().parse().ok().context("--header: a header's name has letters, digits and dashes alone")?;
        let value = secret(value.trim()).with_context(|| format!("--header {name}: its value cannot be sent"))?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Keeps the texts of answers from now on until [`take_texts`](Self::take_texts), as far as there is room.
    pub fn keep_texts(&mut self) {
        self.texts = Some(Texts::default());
    }

    /// The texts of the answers since the last call, in the order of their ends; none where they are not kept.
    pub fn take_texts(&self) -> Vec<AnswerText> {
        self.texts.as_ref().map(Texts::take).unwrap_or_default()
    }

    /// Sends one request and reads its answer. `record` gets everything as it happens, so that it is there also if this is dropped. An open
    /// `connection` is used, and left there if it can be used again.
    pub async fn request(
        &self,
        body: impl Into<Bytes>,
        output_tokens: u32,
        connection: &mut Option<Connection>,
        record: &mut RequestRecord,
        run: (RunClock, &Live),
    ) -> Result<(), Failure> {
        let (body, give_up): (Bytes, _) = (body.into(), Instant::now() + self.limits.request);
        let attempts = async {
            let mut refused = 0;
            loop {
                match self.attempt(body.clone(), output_tokens, connection, record, run).await {
                    Ok(()) => return Ok(()),
                    Err(Miss::Stale) => record.retries += 1,
                    Err(Miss::Again(failure, after)) if refused + 1 < self.limits.attempts => {
                        refused += 1;
                        // Without a word from the server: half a second, one, two...
                        let wait = after.unwrap_or(Duration::from_millis(250) * 2u32.pow(refused.min(8)));
                        // No wait that the time limit would end.
                        if wait >= give_up.saturating_duration_since(Instant::now()) {
                            return Err(failure);
                        }
                        sleep(wait).await;
                        record.retries += 1;
                    }
                    Err(Miss::Final(failure) | Miss::Again(failure, _)) => return Err(failure),
                }
            }
        };
        timeout_at(give_up, attempts).await.unwrap_or_else(|_| {
            let seconds = self.limits.request.as_secs_f64();
            Err(failure(
                FailureClass::Timeout,
                format!("no end after {seconds} s, which is the time limit of a request (of load: --timeout)"),
            ))
        })
    }

    async fn attempt(
        &self,
        body: Bytes,
        output_tokens: u32,
        connection: &mut Option<Connection>,
        record: &mut RequestRecord,
        run: (RunClock, &Live),
    ) -> Result<(), Miss> {
        let (clock, live) = run;
        record.first_byte_ns = None;
        // `connection` stays empty unless the answer ends.
        let open = match connection.take() {
            // Once the answer before has been cleared away; not where the server closed the connection.
            Some(mut open) => open.sender.ready().await.is_ok().then_some(open),
            None => None,
        };
        let reused = open.is_some();
        let mut open = match open {
            Some(open) => open,
            None => {
                let late = |_| failure(FailureClass::Connect, format!("no connection after {CONNECT:?}"));
                let stream = timeout(CONNECT, self.dial.dial()).await.map_err(late)??;
                let open = Connection::over(stream, clock).await?;
                record.connected_ns = Some(clock.now_ns());
                open
            }
        };
        open.times.first_ns.set(None);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = hyper::Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        let sent = Instant::now();
        let response = open.sender.send_request(request).await.map_err(|error| {
            let is_stale = reused && open.times.first_ns.get().is_none() && sent.elapsed() < STALE;
            if is_stale { Miss::Stale } else { Miss::Final(of_http(error)) }
        })?;
        record.first_byte_ns = open.times.first_ns.get();
        if let Some(failed) = of_status(response.status().as_u16()) {
            let may_again = matches!(failed.class, FailureClass::Status429 | FailureClass::Status5xx);
            // In seconds; a date is ignored.
            let after = text_of(response.headers(), RETRY_AFTER).and_then(|text| text.parse().ok());
            let after = after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            // Read to its end, so that the connection can be used again.
            if let Some(rest) = rest_of(response.into_body(), AFTER_STATUS).await {
                self.note_words(&error_of(&rest).1, live);
                *connection = Some(open);
            }
            return Err(if may_again { Miss::Again(failed, after) } else { Miss::Final(failed) });
        }
        ensure_stream(response.headers())?;
        let mut completion = Completion::new(self.template.api, output_tokens);
        if self.texts.as_ref().is_some_and(Texts::has_room) {
            completion.keep_texts();
        }
        let mut body = response.into_body();
        let read = async {
            while !completion.is_done()
                && let Some(frame) = body.frame().await
            {
                if let Some(bytes) = frame.map_err(of_http)?.data_ref() {
                    live.pieces(completion.read(open.times.last_ns.get(), bytes, record)?);
                }
            }
            record.ended_ns = open.times.last_ns.get();
            completion.finish(record.ended_ns, self.template.ignore_eos, record)
        };
        let outcome: Result<(), Failure> = read.await;
        self.note_words(completion.words(), live);
        outcome?;
        if let Some((texts, pieces)) = self.texts.as_ref().zip(completion.take_texts()) {
            texts.add(AnswerText { request: record.request, pieces, limit_tokens: completion.limit_tokens() });
        }
        *connection = self.cleared(body, open).await;
        if let Some(open) = &connection {
            record.ended_ns = open.times.last_ns.get();
        }
        Ok(())
    }

    /// Notes for the level the server's first words about an error. Servers repeat what they were sent, so each part of the query and of
    /// headers that can be secret is hidden.
    fn note_words(&self, words: &str, live: &Live) {
        if words.trim().is_empty() {
            return;
        }
        live.words.get_or_init(|| {
            let headers = self
                .headers
                .values()
                .filter(|value| value.is_sensitive())
                .map(|value| String::from_utf8_lossy(value.as_bytes()));
            let mut words = words.to_owned();
            for text in headers.chain([self.path.query().unwrap_or_default().into()]) {
                // JSON writes quotes and backslashes in another way.
                let parts = text.split([' ', '=', '&', ';', ',', '"', '\\']);
                for secret in parts.filter(|part| part.len() >= LEAST_SECRET) {
                    words = words.replace(secret, "[hidden]");
                }
            }
            printable_within(&words, SHOWN_CHARS).into_owned()
        });
    }

    /// The connection, if the rest of its answer ends soon. After an answer that did not, nobody waits: a task only watches whether it ends.
    async fn cleared(&self, body: Incoming, open: Connection) -> Option<Connection> {
        let ends_late = self.ends_late.clone();
        let cleared = async move {
            let is_over = rest_of(body, AFTER_DONE).await.is_some();
            ends_late.set(!is_over);
            is_over.then_some(open)
        };
        if self.ends_late.get() {
            spawn_local(cleared);
            return None;
        }
        cleared.await
    }
}

/// The rest of a body, if it ends soon. After `[DONE]` it can be empty lines, comments and trailers, which change no answer.
async fn rest_of(body: Incoming, within: Duration) -> Option<Bytes> {
    let rest = Limited::new(body, MAX_REST_BYTES).collect();
    Some(timeout(within, rest).await.ok()?.ok()?.to_bytes())
}

/// Refuses a compressed stream. The content type does not matter: servers name many for the same events.
fn ensure_stream(headers: &HeaderMap) -> Result<(), Failure> {
    let coding = text_of(headers, CONTENT_ENCODING).unwrap_or_default().to_ascii_lowercase();
    // Some servers write `none` or `utf-8` here, which change no byte. A name of our own: a server's words are in no receipt.
    if let Some(name) = CODINGS.into_iter().find(|name| coding.contains(name)) {
        return Err(failure(
            FailureClass::MalformedStream,
            format!(
                "the stream is compressed ({name}), which was not asked for; turn that off, or ask past the proxy that does it"
            ),
        ));
    }
    Ok(())
}

/// A value that no log shows; `None` where no request can carry it.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}
