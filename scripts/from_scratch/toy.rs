//! A toy engine. It knows nothing of infergate.

use std::hint::black_box;

/// Prompt and answer together.
pub const CONTEXT_TOKENS: usize = 1024;

/// Arithmetic for one token: a few microseconds.
const ROUNDS: u64 = 20_000;

/// Speaks in bytes: the next one is the sum of all before it.
pub struct Toy {
    context: Vec<u32>,
}

impl Toy {
    /// One that has read nothing yet.
    pub fn new() -> Self {
        Self { context: Vec::with_capacity(CONTEXT_TOKENS) }
    }

    /// Reads a prompt, and gives the first token of the answer.
    pub fn read(&mut self, prompt: &[u32]) -> u32 {
        self.context.clear();
        self.context.extend(prompt);
        self.step()
    }

    /// Gives the next token.
    pub fn step(&mut self) -> u32 {
        work(ROUNDS);
        let token = self.context.iter().sum::<u32>() % 256;
        self.context.push(token);
        token
    }

    /// How many tokens it has read and given.
    pub fn len(&self) -> usize {
        self.context.len()
    }
}

/// Arithmetic that the compiler cannot leave out.
fn work(rounds: u64) {
    let mut x = black_box(1_u64);
    for _ in 0..rounds {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}
