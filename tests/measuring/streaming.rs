//! Steps of an engine that goes on by itself.

use infergate::engine::{Engine, EngineInfo, Pacing, TokenId};
use infergate::measure::{self, Sampler};
use infergate_core::prompt;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

const MS: u64 = 1_000_000;

/// Has its next token already when it is asked for the first one, as one that decodes ahead while another process has its turn.
struct Ahead {
    engine: FakeEngine,
    clock: VirtualClock,
    is_ready: bool,
}

impl Engine for Ahead {
    fn info(&self) -> EngineInfo {
        EngineInfo { pacing: Pacing::Streaming, ..self.engine.info() }
    }

    fn start(&mut self, prompt: &[TokenId]) -> anyhow::Result<TokenId> {
        self.is_ready = true;
        self.engine.start(prompt)
    }

    fn next(&mut self) -> anyhow::Result<TokenId> {
        if !std::mem::take(&mut self.is_ready) {
            self.clock.advance_ns(20 * MS);
        }
        self.engine.next()
    }

    fn rewind(&mut self) -> anyhow::Result<bool> {
        self.is_ready = true;
        self.engine.rewind()
    }
}

#[test]
fn a_step_that_was_computed_ahead_is_not_timed() {
    for rewinds in [true, false] {
        let clock = VirtualClock::default();
        let script = FakeScript { step_ns: 0, rewinds, ..FakeScript::default() };
        let engine = FakeEngine::new(script, clock.clone());
        let mut engine = Ahead { engine, clock: clock.clone(), is_ready: false };
        let prompt = prompt::seeded_ids(8, 1, 50_000);
        let prepared =
            measure::prepare(&mut engine, "decode/p8".parse().expect("a case id"), prompt, None).expect("prepares");
        let mut sampler = Sampler::default();
        for steps in [1, 8, 40] {
            let sample = sampler.sample(&mut engine, &clock, &prepared, steps).expect("samples");
            assert_eq!(sample, [20 * MS * steps as u64], "rewinds: {rewinds}");
        }
    }
}
