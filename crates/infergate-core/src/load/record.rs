//! What one request did, [`RequestRecord`], and all of a level on an engine, [`LoadLevel`].

use serde::{Deserialize, Serialize};

use super::Window;
use crate::trace::Times;

/// One request of a load run, raw. All times are nanoseconds since the run began, on one monotonic clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its number in the run, from 0, in the order of their starts.
    pub request: u64,
    /// Which user sent it (closed loop), or 0.
    pub user: u32,
    /// Index of its scenario among the run's.
    pub scenario: u32,
    /// Index of its target among the run's; 0 where there is one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub target: u32,
    /// It counts: it started at full load, which was kept until it had ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub measured: bool,
    /// `t_0`: when it was to start. In a closed loop the moment its user was free.
    pub scheduled_ns: u64,
    /// When the client began to send it; never before `scheduled_ns`.
    pub sent_ns: u64,
    /// When its connection stood; `None` where an open one was used again, or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_ns: Option<u64>,
    /// When the first byte of the answer arrived; `None` without a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// When the first piece of the answer itself arrived, where reasoning came before it; `None` where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer_ns: Option<u64>,
    /// When each piece of output arrived: one token each from an engine; from a server a piece can hold several, see
    /// `chunk_tokens`.
    pub chunk_ns: Vec<u64>,
    /// Tokens in each piece; empty where each holds one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_tokens: Vec<u32>,
    /// When it ended, well or not.
    pub ended_ns: u64,
    /// Prompt tokens; `None` where nobody counted them.
    pub input_tokens: Option<u64>,
    /// Of `input_tokens`, those that the server had in a cache, by its usage; `None` where it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens, by the server's usage or the engine; `None` where it says nothing.
    pub output_tokens: Option<u64>,
    /// Of `output_tokens`, reasoning that the server counted and did not send: no time of these is known. `None` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent_tokens: Option<u64>,
    /// Output tokens by a tokenizer's count of the answer's text; `None` where no tokenizer was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_tokens: Option<u64>,
    /// Bytes of the output's text so far, UTF-8, however it was divided into pieces; `None` where no text was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u64>,
    /// SHA-256 of the output, hex: of the token ids as little-endian u32 where they are known, else of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_sha256: Option<String>,
    /// Attempts before this one that ended in 429 or 5xx, or met a connection that the server had just closed. The request's
    /// start never moves.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// Why it failed; `None` for one that completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl RequestRecord {
    /// Output tokens: by usage, by a tokenizer, by the counts of its pieces, or one a piece.
    pub fn tokens(&self) -> u64 {
        let pieces = self.chunk_tokens.iter().map(|tokens| u64::from(*tokens)).sum();
        let counted = self.output_tokens.or(self.text_tokens);
        counted.unwrap_or(if pieces > 0 { pieces } else { self.chunk_ns.len() as u64 })
    }

    /// The same with each of its times as `time_ns` gives it.
    #[must_use]
    pub fn with_times(mut self, time_ns: impl Fn(u64) -> u64) -> Self {
        let Self { scheduled_ns, sent_ns, connected_ns, first_byte_ns, first_answer_ns, chunk_ns, ended_ns, .. } =
            &mut self;
        let some = connected_ns.iter_mut().chain(first_byte_ns).chain(first_answer_ns).chain(chunk_ns);
        some.chain([scheduled_ns, sent_ns, ended_ns]).for_each(|ns| *ns = time_ns(*ns));
        self
    }

    /// Of [`tokens`](Self::tokens) those that were sent.
    pub fn sent_tokens(&self) -> u64 {
        self.tokens().saturating_sub(self.unsent_tokens.unwrap_or(0))
    }
}

impl<'a> From<&'a RequestRecord> for Times<'a> {
    fn from(record: &'a RequestRecord) -> Self {
        let first_tokens = record.chunk_tokens.first().map_or(1, |tokens| u64::from(*tokens));
        Self { start_ns: record.scheduled_ns, piece_ns: &record.chunk_ns, tokens: record.sent_tokens(), first_tokens }
    }
}

fn is_false(mark: &bool) -> bool {
    !mark
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Its class.
    pub class: FailureClass,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// One sentence without anything of the prompt, the key or the answer's text.
    pub detail: String,
}

/// Classes of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No connection.
    Connect,
    /// No TLS session.
    Tls,
    /// A 4xx status other than 429.
    Status4xx,
    /// 429: too many requests.
    Status429,
    /// A 5xx status.
    Status5xx,
    /// An error within the stream, after status 200, that says no status of its own.
    ErrorEvent,
    /// The request took longer than it may.
    Timeout,
    /// Bytes that are no stream of completion events.
    MalformedStream,
    /// The stream ended before `[DONE]` or a finish reason.
    CutStream,
    /// Fewer or more tokens than asked for.
    WrongLength,
    /// The engine behind a local target failed.
    Engine,
    /// The run ended first.
    Cancelled,
}

/// What a level gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadLevel {
    /// Every request, by its number.
    pub records: Vec<RequestRecord>,
    /// The time in which the load was what was asked for; `None` where it never was, or an older worker did not say.
    pub steady: Option<Window>,
    /// What the engine did with many of them at once.
    #[serde(flatten)]
    pub batch: BatchRecord,
}

/// What an engine did with many requests at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BatchRecord {
    /// Requests that it had room for at once.
    pub slots: u32,
    /// Most requests that one step worked on.
    pub largest_batch: u32,
    /// Whether a step computes several requests together. `false`: they take turns. `None`: the engine does not say.
    pub batches: Option<bool>,
    /// Memory for the keys and values of one request, bytes. `None`: the engine does not say.
    pub kv_bytes_per_request: Option<u64>,
    /// Requests whose output was computed once more alone, and was the same, up to a near tie.
    pub compared: u32,
    /// Why the level ended before its stop rule said so: the engine failed, or there were more records than fit an answer.
    pub cut_short: Option<String>,
}
