//! Time to first token, in parts.

use std::cell::Cell;

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId};
use infergate::{measure, worker};
use infergate_core::prompt;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

const MS: u64 = 1_000_000;

#[test]
fn time_to_first_token_adds_up_from_its_parts() {
    let clock = VirtualClock::default();
    let script = FakeScript { prefill_ns_per_token: MS, first_sample_ns: 9, ..FakeScript::default() };
    let mut engine = FakeEngine::new(script, clock.clone());
    let prompt = prompt::seeded_ids(16, 1, 50_000);
    let cold = measure::Cold { load_ns: 5 * MS, tokenize_ns: None };
    let parts = measure::ttft_parts(&mut engine, &clock, &prompt, Some(cold)).expect("measures");
    assert_eq!((parts.load_ns, parts.tokenize_ns), (Some(5 * MS), None));
    assert_eq!((parts.prefill_ns, parts.first_sample_ns), (16 * MS, Some(9)));
    assert_eq!(parts.ttft_ns(), 21 * MS + 9);
}

/// A tokenizer of letters that takes a second for its first text, and a millisecond for each letter.
struct Tokenizes(FakeEngine, VirtualClock, Cell<bool>);

impl Engine for Tokenizes {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.0.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.0.next()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        let once_ns = if self.2.replace(true) { 0 } else { 1_000 * MS };
        self.1.advance_ns(once_ns + text.len() as u64 * MS);
        Ok(Some(text.bytes().map(TokenId::from).collect()))
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        Ok(Some(tokens.iter().filter_map(|token| char::from_u32(*token)).collect()))
    }
}

#[test]
fn a_cold_start_has_the_first_use_of_the_tokenizer_in_it() {
    let clock = VirtualClock::default();
    let made = clock.clone();
    let load = move |_: &LoadRequest| -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Tokenizes(FakeEngine::new(FakeScript::default(), made.clone()), made.clone(), Cell::new(false))))
    };
    let requests = [
        r#"{"op":"load","request":{"model":"m","threads":1,"seed":1}}"#,
        r#"{"op":"ttft","prompt_tokens":8}"#,
        r#"{"op":"ttft","prompt_tokens":8}"#,
    ];
    let mut answers = Vec::new();
    worker::serve(&load, &clock, requests.join("\n").as_bytes(), &mut answers).expect("served");
    let answers = String::from_utf8(answers).expect("text");
    let tokenize_ns: Vec<u64> = answers
        .lines()
        .skip(1)
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON")["ok"]["tokenize_ns"]
                .as_u64()
                .expect("a time")
        })
        .collect();
    assert_eq!(tokenize_ns, [1_032 * MS, 8 * MS], "a cold text is of four bytes for each token");
}
