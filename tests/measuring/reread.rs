//! A prompt that was just read, timed beside new ones.

use infergate::engine::{Engine, EngineInfo, TokenId};
use infergate::measure;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

const MS: u64 = 1_000_000;

/// Computes what it has not read just before.
struct Keeping {
    engine: FakeEngine,
    clock: VirtualClock,
    prompt: Vec<TokenId>,
    keeps: bool,
}

impl Engine for Keeping {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> anyhow::Result<TokenId> {
        let same = self.prompt.iter().zip(prompt).take_while(|(was, is)| was == is).count();
        self.clock.advance_ns(MS * if self.keeps { prompt.len() - same } else { prompt.len() } as u64);
        self.prompt = prompt.to_vec();
        self.engine.start(prompt)
    }

    fn next(&mut self) -> anyhow::Result<TokenId> {
        self.engine.next()
    }
}

#[test]
fn a_known_prompt_is_timed_beside_new_ones_that_begin_otherwise() {
    let script = FakeScript { prefill_ns_per_token: 0, first_sample_ns: 7, ..FakeScript::default() };
    let looked = |keeps: bool, prompt: &[TokenId], count, skip| {
        let clock = VirtualClock::default();
        let engine = FakeEngine::new(script.clone(), clock.clone());
        let mut engine = Keeping { engine, clock: clock.clone(), prompt: Vec::new(), keeps };
        measure::reread(&mut engine, &clock, prompt, count, skip)
    };
    let prompt: Vec<TokenId> = (10..26).collect();
    let (known, new) = (7, 16 * MS + 7);
    assert_eq!(looked(true, &prompt, 3, 0).expect("times"), (vec![known; 3], vec![new; 3]));
    assert_eq!(looked(true, &prompt, 5, 3).expect("times"), (vec![known; 5], vec![new; 5]));
    assert_eq!(looked(false, &prompt, 3, 0).expect("times"), (vec![new; 3], vec![new; 3]));
    let error = looked(true, &[1, 2, 1, 1, 2, 3], 3, 0).expect_err("two begin otherwise");
    assert!(error.to_string().contains("too few different tokens"), "{error}");
}
