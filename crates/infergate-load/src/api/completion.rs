//! One streamed completion: events and their times become a request's record.

use infergate_core::load::{Failure, FailureClass, RequestRecord};
use infergate_core::sha256;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use crate::api::body::Api;
use crate::api::chunk::{Chunk, Reason, Usage, mended};
use crate::api::events::{Event, Events};
use crate::api::failures::{error_of, failure, of_status};

/// Bytes that an answer may have in addition to its tokens.
const MAX_SPARE_BYTES: u64 = 4 << 20;
/// Bytes that the events of one token may have.
const MAX_TOKEN_BYTES: u64 = 64 << 10;
/// Pieces that a token may come in: some servers send an event a character.
const TOKEN_PIECES: u64 = 16;
/// Pieces that may come in addition to those of the tokens.
const SPARE_PIECES: u64 = 64;
/// Tokens by which a server may count more than were asked for, or otherwise than there are pieces: the beginning of a sequence, its
/// end, the name of a tool.
const COUNTED_MARKS: u64 = 2;
/// Reasoning is a summary if, by the server's count, one piece of it holds more than so many times the tokens of a piece of the answer.
const SUMMARY: u64 = 4;

/// Reads one answer. Times and counts go into the record at once, so that an answer that is cut short keeps what came.
#[derive(Debug, Default)]
pub struct Completion {
    api: Api,
    events: Events,
    hash: Sha256,
    /// Each piece of the output so far, where they are kept.
    texts: Option<Vec<String>>,
    asked_tokens: u64,
    read_bytes: u64,
    /// Tokens of the output so far, by the usage beside the last piece; `None` where it had none.
    counted: Option<u64>,
    /// A piece did not say how many tokens there are.
    is_uncounted: bool,
    /// Tokens of the output that are reasoning, by the server's count.
    reasoning_tokens: Option<u64>,
    /// Of these, what the server's count of the output, and so the limit of the answer, leaves out.
    apart_tokens: u64,
    /// Events that brought nothing but reasoning.
    reasoning_pieces: u64,
    /// When text came under names that nobody knows, and the text.
    guesses: Vec<(u64, String)>,
    /// A `<think>` or a `</think>` was sent: reasoning is within the answer.
    thinks_aloud: bool,
    finish: Option<Reason>,
    done: bool,
    /// What the server said of its error.
    words: String,
    /// Its first byte came, which tells whether it is a stream.
    has_begun: bool,
    /// Why it is no stream, if it is not.
    no_stream: Option<&'static str>,
    /// The answer so far, where it is no stream.
    whole: Vec<u8>,
}

impl Completion {
    /// For an answer of `api` with `asked_tokens` output tokens.
    pub fn new(api: Api, asked_tokens: u32) -> Self {
        Self { api, asked_tokens: asked_tokens.into(), ..Self::default() }
    }

    /// Keeps the texts of the output's pieces from now on, reasoning included.
    pub fn keep_texts(&mut self) {
        self.texts = Some(Vec::new());
    }

    /// The texts of its pieces, where they were kept.
    pub fn take_texts(&mut self) -> Option<Vec<String>> {
        self.texts.take()
    }

    /// The number of tokens asked for, where the server says that the answer was ended by it.
    pub fn limit_tokens(&self) -> Option<u64> {
        (self.finish == Some(Reason::Length)).then_some(self.asked_tokens)
    }

    /// What the server said of its error; empty where it said nothing.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The last event came: nothing more is expected.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Takes bytes that one read of the socket gave at `read_ns`. Gives how many pieces of output were in them.
    pub fn read(&mut self, read_ns: u64, bytes: &[u8], record: &mut RequestRecord) -> Result<u64, Failure> {
        self.read_bytes += bytes.len() as u64;
        if self.read_bytes > MAX_SPARE_BYTES + MAX_TOKEN_BYTES * self.asked_tokens {
            let read = self.read_bytes;
            return Err(failure(
                FailureClass::MalformedStream,
                format!("the answer has {read} bytes and no end; the server does not stop"),
            ));
        }
        if let Some(first) = bytes.trim_ascii_start().first().filter(|_| !self.has_begun) {
            self.has_begun = true;
            self.no_stream = no_stream(*first);
        }
        if self.api == Api::Embeddings || self.no_stream.is_some() {
            self.whole.extend_from_slice(bytes);
            return Ok(0);
        }
        let before = record.chunk_ns.len();
        let mut events = std::mem::take(&mut self.events);
        let outcome = events.push(bytes, |event| self.take_event(read_ns, event, record));
        self.events = events;
        outcome?;
        Ok((record.chunk_ns.len() - before) as u64)
    }

    /// The stream ended, as streams do: judges whether the answer is whole and writes its counts and hash into `record`.
    pub fn finish(&mut self, last_ns: u64, exact: bool, record: &mut RequestRecord) -> Result<(), Failure> {
        if self.api == Api::Embeddings {
            return self.finish_embeddings(last_ns, record);
        }
        if let Some(detail) = self.no_stream {
            return Err(self.whole_error(detail));
        }
        let mut events = std::mem::take(&mut self.events);
        match events.finish(|event| self.take_event(last_ns, event, record)) {
            Err(failure) if failure.class != FailureClass::MalformedStream => return Err(failure),
            // Half of an event says nothing; whether the answer is whole is checked below.
            Err(_) => self.words.clear(),
            Ok(()) => {}
        }
        if !self.done && self.finish.is_none() {
            return Err(failure(FailureClass::CutStream, "the stream ended before its last event and a finish reason"));
        }
        self.settle_guesses(record);
        if record.chunk_tokens.iter().all(|tokens| *tokens == 1) {
            record.chunk_tokens.clear();
        }
        // Some gateways send a count of 0 with every answer.
        record.output_tokens = record.output_tokens.filter(|tokens| *tokens > 0 || record.chunk_ns.is_empty());
        let came = record.output_tokens.unwrap_or(record.chunk_ns.len() as u64);
        if let Some(Reason::Other(name)) = &self.finish
            && came < self.asked_tokens
        {
            self.words = format!("finish reason {name}");
            let detail = "the server ended the answer by a finish reason that is neither its end nor its length";
            return Err(failure(FailureClass::CutStream, detail));
        }
        record.unsent_tokens = self.unsent_tokens(record);
        record.output_sha256 = Some(sha256::hex(self.hash.finalize_reset().as_slice()));
        self.judge_length(exact, record)
    }

    /// Embeddings come at once: one piece, which counts as one token.
    fn finish_embeddings(&mut self, last_ns: u64, record: &mut RequestRecord) -> Result<(), Failure> {
        let Ok(Embeddings { data, usage }) = serde_json::from_slice::<Embeddings>(&self.whole) else {
            self.words = error_of(&self.whole).1;
            return Err(failure(FailureClass::MalformedStream, "the answer holds no embeddings"));
        };
        if data.is_empty() {
            return Err(failure(FailureClass::WrongLength, "the answer holds no embedding"));
        }
        record.chunk_ns.push(last_ns);
        record.input_tokens = usage.and_then(|usage| usage.input_tokens());
        record.output_tokens = Some(1);
        Ok(())
    }

    fn judge_length(&self, exact: bool, record: &RequestRecord) -> Result<(), Failure> {
        let asked = self.asked_tokens;
        let wrong = |tokens: u64| {
            failure(FailureClass::WrongLength, format!("{tokens} output tokens came where {asked} were requested"))
        };
        if record.chunk_ns.is_empty() {
            return Err(failure(
                FailureClass::WrongLength,
                format!("no text came where {asked} tokens were requested"),
            ));
        }
        let pieces = record.chunk_ns.len() as u64;
        // The count without and with reasoning that the server counts apart: nobody knows which of both the limit is for.
        let counted = record.output_tokens.map(|tokens| (tokens.saturating_sub(self.apart_tokens), tokens));
        match counted {
            Some((answer, tokens)) if answer > asked + COUNTED_MARKS => Err(wrong(tokens)),
            Some((answer, tokens))
                if exact && !(answer..=tokens).contains(&asked) && self.finish != Some(Reason::Length) =>
            {
                Err(wrong(tokens))
            }
            // Pieces alone are no count, but here the server itself says that the model ended the answer.
            None if exact && pieces < asked && self.finish == Some(Reason::Stop) => Err(failure(
                FailureClass::WrongLength,
                format!("the model ended the answer after {pieces} pieces where {asked} tokens were requested"),
            )),
            _ => Ok(()),
        }
    }

    fn take_event(&mut self, read_ns: u64, event: Event<'_>, record: &mut RequestRecord) -> Result<(), Failure> {
        let data = event.data.trim_ascii();
        if event.is_error {
            return Err(self.server_error(data));
        }
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk = Chunk::read(self.api, data).or_else(|_| Chunk::read(self.api, &mended(data)));
        let Ok(chunk) = chunk else {
            let error = self.server_error(data);
            // Words, or an error in a form of its own.
            if error.status.is_some() || !matches!(data.first(), Some(b'{' | b'[')) {
                return Err(error);
            }
            return Err(failure(
                FailureClass::MalformedStream,
                format!("an event of {} bytes is no JSON of this API", data.len()),
            ));
        };
        if chunk.is_error() {
            return Err(self.server_error(data));
        }
        let (mut is_output, mut is_answer) = (false, false);
        let is_new = !chunk.is_repeat || record.chunk_ns.is_empty();
        for piece in chunk.pieces().filter(|_| is_new) {
            self.add_text(piece.text, record);
            if !piece.is_reasoning {
                is_answer = true;
                record.first_answer_ns.get_or_insert(read_ns);
            }
            is_output = true;
        }
        let guess = chunk.guess();
        if !guess.is_empty() {
            self.guesses.push((read_ns, guess));
        }
        let counted = chunk.usage.as_ref().and_then(Usage::output_tokens);
        if is_output {
            self.reasoning_pieces += u64::from(!is_answer);
            record.chunk_ns.push(read_ns);
            self.count_piece(counted, record);
            if record.chunk_ns.len() as u64 > TOKEN_PIECES * self.asked_tokens + SPARE_PIECES {
                let (pieces, asked) = (record.chunk_ns.len(), self.asked_tokens);
                let detail = format!("{pieces} pieces of output came where {asked} tokens were requested, and no end");
                return Err(failure(FailureClass::WrongLength, detail));
            }
            if counted.is_none() {
                // A count from before this piece is not that of the whole answer.
                record.output_tokens = None;
            }
        }
        if let Some(usage) = &chunk.usage {
            record.input_tokens = usage.input_tokens().filter(|tokens| *tokens > 0).or(record.input_tokens);
            record.cached_tokens = usage.cached_tokens().or(record.cached_tokens);
            record.output_tokens = counted.filter(|tokens| *tokens > 0).or(record.output_tokens).or(counted);
            self.reasoning_tokens = usage.reasoning_tokens().or(self.reasoning_tokens);
            self.apart_tokens = counted.map_or(self.apart_tokens, |_| usage.apart_tokens());
        }
        self.finish = chunk.finish_reason().or(self.finish.take());
        self.done = chunk.is_last;
        Ok(())
    }

    fn add_text(&mut self, text: &str, record: &mut RequestRecord) {
        self.hash.update(text.as_bytes());
        *record.text_bytes.get_or_insert_default() += text.len() as u64;
        self.texts.iter_mut().for_each(|texts| texts.push(text.to_owned()));
        self.thinks_aloud |= text.contains("think>");
    }

    /// Text under unknown names is output if it comes several times or alone. If it comes once beside output, it is about the output.
    fn settle_guesses(&mut self, record: &mut RequestRecord) {
        let guesses = std::mem::take(&mut self.guesses);
        if guesses.len() == 1 && !record.chunk_ns.is_empty() {
            return;
        }
        for (read_ns, text) in guesses {
            self.add_text(&text, record);
            record.chunk_tokens.clear();
            let at = record.chunk_ns.partition_point(|known_ns| *known_ns <= read_ns);
            record.chunk_ns.insert(at, read_ns);
            record.first_answer_ns = record.first_answer_ns.into_iter().chain([read_ns]).min();
        }
    }

    /// The failure for an error within the stream.
    fn server_error(&mut self, text: &[u8]) -> Failure {
        let (status, words) = error_of(text);
        self.words = words;
        let class = status.and_then(of_status).map_or(FailureClass::ErrorEvent, |failure| failure.class);
        Failure { class, status, detail: "the server sent an error after status 200".into() }
    }

    /// The failure for a text in place of a stream.
    fn whole_error(&mut self, detail: &str) -> Failure {
        let text = std::mem::take(&mut self.whole);
        let error = self.server_error(&text);
        let is_error = Chunk::read(Api::Chat, &text).is_ok_and(|chunk| chunk.is_error());
        if is_error { error } else { failure(FailureClass::MalformedStream, detail) }
    }

    /// Some servers count along: the difference of two counts is what the piece holds.
    fn count_piece(&mut self, counted: Option<u64>, record: &mut RequestRecord) {
        let tokens = counted.and_then(|now| now.checked_sub(self.counted.unwrap_or(0)));
        match tokens.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0) {
            Some(tokens) if !self.is_uncounted => record.chunk_tokens.push(tokens),
            _ => {
                self.is_uncounted = true;
                // A request that fails later keeps no count for some pieces only.
                record.chunk_tokens.clear();
            }
        }
        self.counted = counted;
    }

    /// Tokens of reasoning that the server counts and does not send, or sends a summary of. It was sent if its pieces hold about as many
    /// tokens each as those of the answer; or within the answer, if that has `<think>` or more pieces than tokens of its own.
    fn unsent_tokens(&self, record: &RequestRecord) -> Option<u64> {
        let reasoning = self.reasoning_tokens.filter(|tokens| *tokens > 0)?;
        let answer = record.output_tokens?.checked_sub(reasoning)?;
        let answer_pieces = (record.chunk_ns.len() as u64).saturating_sub(self.reasoning_pieces);
        let is_sent = self.thinks_aloud
            || answer_pieces > answer.saturating_add(COUNTED_MARKS)
            || reasoning.saturating_mul(answer_pieces)
                <= SUMMARY.saturating_mul(answer).saturating_mul(self.reasoning_pieces);
        (!is_sent && answer_pieces > 0).then(|| reasoning.saturating_sub(self.reasoning_pieces))
    }
}

/// An answer of the embeddings API. Other fields are passed over.
#[derive(Deserialize)]
struct Embeddings {
    data: Vec<IgnoredAny>,
    usage: Option<Usage>,
}

/// Why an answer with this first byte is no event stream, whatever its headers say.
fn no_stream(first: u8) -> Option<&'static str> {
    match first {
        b'{' | b'[' => Some("the server answered with one JSON text and no event stream; it ignores \"stream\": true"),
        b'<' => Some("the server answered with a page and no event stream; check the URL, and which API it has"),
        _ => None,
    }
}
