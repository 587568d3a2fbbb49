//! A completion on its way to the client: events for each token, in one piece, as soon as the engine says it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures_core::Stream;
use infergate::engine::TokenId;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::answer::Writer;
use crate::engine_thread::Said;
use crate::refusal::Refusal;
use crate::text::{Decoder, Text};

/// One request that was handed to the engine. Dropped before its end it is cancelled: the engine finds its channel closed.
pub struct Served {
    /// From the engine.
    pub said: UnboundedReceiver<Said>,
    /// The engine's tokenizer.
    pub text: Arc<Text>,
    /// How many tokens the prompt has.
    pub prompt_tokens: usize,
    /// How many the output will have.
    pub output_tokens: usize,
}

impl Served {
    /// The whole output as text.
    ///
    /// # Errors
    /// An engine that fails or ends before the last token.
    pub async fn whole(mut self, writer: &Writer) -> Result<String, Refusal> {
        let mut decoder = Decoder::default();
        let mut output = String::new();
        for given in 1..=self.output_tokens {
            match self.said.recv().await {
                Some(Said::Token(token)) => {
                    let last = given == self.output_tokens;
                    output += &decoder.push(&self.text, token, last).map_err(|error| failed(&error))?;
                }
                Some(Said::Failed(why)) => return Err(Refusal::failed(why)),
                None => return Err(Refusal::gone()),
            }
        }
        Ok(writer.whole(&output, self.prompt_tokens, self.output_tokens))
    }

    /// The output token by token.
    pub fn streamed(self, writer: Writer) -> Response {
        let events = Events { served: self, writer, decoder: Decoder::default(), given: 0, begun: false, ended: false };
        let mut response = Response::new(Body::from_stream(events));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

fn failed(error: &anyhow::Error) -> Refusal {
    Refusal::failed(format!("the tokenizer failed: {error:#}"))
}

struct Events {
    served: Served,
    writer: Writer,
    decoder: Decoder,
    /// Tokens so far.
    given: usize,
    /// An event with text was written.
    begun: bool,
    ended: bool,
}

impl Events {
    /// The events of one token; none while a character is not whole.
    fn token(&mut self, token: TokenId) -> Option<String> {
        self.given += 1;
        let last = self.given == self.served.output_tokens;
        let text = match self.decoder.push(&self.served.text, token, last) {
            Ok(text) => text,
            Err(error) => return Some(self.broken(&failed(&error))),
        };
        if text.is_empty() && !last {
            return None;
        }
        let mut events = self.writer.token(&text, !self.begun, last);
        self.begun = true;
        if last {
            self.ended = true;
            events += &self.writer.end(self.served.prompt_tokens, self.served.output_tokens);
        }
        Some(events)
    }

    /// The event that says that there is no more, and why. `[DONE]` does not follow.
    fn broken(&mut self, refusal: &Refusal) -> String {
        self.ended = true;
        format!("data: {}\n\n", refusal.body())
    }
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended {
            let events = match ready!(self.served.said.poll_recv(context)) {
                Some(Said::Token(token)) => self.token(token),
                Some(Said::Failed(why)) => Some(self.broken(&Refusal::failed(why))),
                None => Some(self.broken(&Refusal::gone())),
            };
            if let Some(events) = events {
                return Poll::Ready(Some(Ok(Bytes::from(events))));
            }
        }
        Poll::Ready(None)
    }
}
