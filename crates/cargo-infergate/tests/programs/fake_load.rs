//! `FakeEngine` on virtual time as a worker that serves several requests at once: what the tests of load run instead of a model.
//!
//! Words in the model spec make it wrong: `fake:changes` gives another token where requests share a step, `fake:fails` fails
//! after some steps, `fake:alone` cannot serve more than one sequence, `fake:wordless` has no tokenizer. That of the others makes a
//! token of each character.

#[path = "../../../../tests/support/fake.rs"]
mod fake;

use std::process::ExitCode;

use anyhow::{Result, bail};
use infergate::engine::{Engine, EngineInfo, Event, LoadRequest, RequestId, Scheduler, TokenId};
use infergate::worker;

use fake::{FakeEngine, FakeScript, VirtualClock};

struct Fake {
    engine: FakeEngine,
    word: String,
}

impl Engine for Fake {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.engine.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.engine.next()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        let vocab = u32::try_from(self.engine.info().vocab_tokens)?;
        Ok((self.word != "wordless").then(|| text.chars().map(|letter| u32::from(letter) % vocab).collect()))
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        match self.word.as_str() {
            "alone" => bail!("this fake has room for one sequence"),
            "changes" => Ok(Box::new(Changes(self.engine.scheduler(requests)?))),
            _ => self.engine.scheduler(requests),
        }
    }
}

/// Gives another token where more than one request is in flight.
struct Changes(Box<dyn Scheduler + Send>);

impl Scheduler for Changes {
    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId> {
        self.0.submit(prompt, max_tokens)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        let together = self.0.in_flight() > 1;
        let events = self.0.step()?;
        let change = |event: Event| Event { token: if together { event.token / 2 } else { event.token }, ..event };
        Ok(events.into_iter().map(change).collect())
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        self.0.cancel(request)
    }
}

fn main() -> ExitCode {
    infergate_core::process::end_with_parent();
    let clock = VirtualClock::default();
    let engine_clock = clock.clone();
    let load = move |request: &LoadRequest| -> Result<Box<dyn Engine + Send>> {
        let word = request.model.split(':').nth(1).unwrap_or_default().to_owned();
        let fails_at_step = (word == "fails").then_some(4);
        let script = FakeScript { fails_at_step, ..FakeScript::default() };
        Ok(Box::new(Fake { engine: FakeEngine::new(script, engine_clock.clone()), word }))
    };
    match worker::serve_here(&load, &clock) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
