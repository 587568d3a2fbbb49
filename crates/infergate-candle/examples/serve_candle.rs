//! A model of candle behind the OpenAI API; GPT-2 serves its requests in one pass over the weights.
//!
//! `cargo run --release -p infergate-candle --example serve_candle -- --model synthetic:gpt2 --slots 8`

use std::process::ExitCode;

fn main() -> ExitCode {
    infergate_serve::main(&infergate_candle::Candle)
}
