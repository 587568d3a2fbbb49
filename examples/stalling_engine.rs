//! Candle with stalls: a share of its steps takes several times as long. Its file's name says which, so that base and head
//! of a gate can differ: `stalls-2x6` is 2 % of steps six times as long, any other name none. What a gate makes of it:
//!
//! ```console
//! cargo build --release --example stalling_engine && cd target/release/examples
//! for name in calm stalls-2x6 stalls-10x3 stalls-25x2; do cp stalling_engine $name; done
//! cargo xtask gate --cases decode/p128 --time-same-code --memory-runs 0 --base-bin calm --head-bin stalls-2x6
//! ```

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use infergate::engine::{Cost, Engine, EngineFactory, EngineInfo, LoadRequest, TokenId};
use infergate_candle::Candle;

/// Percent of steps, and how many times as long they take.
type Stalls = (u64, u32);

struct Stalling {
    engine: Box<dyn Engine + Send>,
    stalls: Stalls,
    random: u64,
}

impl Stalling {
    /// xorshift64, another sequence in each process.
    fn is_hit(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 100 < self.stalls.0
    }

    /// What `work` gives, after the time that it took so many times over.
    fn stalled<T>(&mut self, work: impl FnOnce(&mut dyn Engine) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = work(&mut *self.engine);
        if self.is_hit() {
            let until = begun.elapsed() * self.stalls.1;
            while begun.elapsed() < until {
                std::hint::spin_loop();
            }
        }
        done
    }
}

impl Engine for Stalling {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.stalled(|engine| engine.start(prompt))
    }

    fn next(&mut self) -> Result<TokenId> {
        self.stalled(|engine| engine.next())
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        self.engine.logits(out)
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        self.engine.force(token)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.engine.rewind()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        self.engine.tokenize(text)
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        self.engine.detokenize(tokens)
    }

    fn cost(&self) -> Option<Cost> {
        self.engine.cost()
    }
}

struct Factory;

impl EngineFactory for Factory {
    fn load(&self, request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
        let program = std::env::current_exe()?;
        let name = program.file_stem().unwrap_or_default().to_string_lossy();
        let stalls = stalls(&name).unwrap_or((0, 1));
        let random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Ok(Box::new(Stalling { engine: Candle.load(request)?, stalls, random }))
    }

    fn environment(&self, request: &LoadRequest) -> Vec<(String, String)> {
        Candle.environment(request)
    }
}

/// Of `stalls-2x6`.
fn stalls(name: &str) -> Option<Stalls> {
    let (percent, times) = name.strip_prefix("stalls-")?.split_once('x')?;
    Some((percent.parse().ok()?, times.parse().ok()?))
}

fn main() -> ExitCode {
    infergate::bench::main(&Factory)
}
