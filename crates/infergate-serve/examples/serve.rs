//! A server whose tokens come at set times, behind the OpenAI API: what load clients are tried on without a network or a model.
//!
//! `cargo run --release -p infergate-serve --example serve -- --port 0 --option ttft_ms=200 --option itl_ms=20`

use std::process::ExitCode;

fn main() -> ExitCode {
    infergate_serve::main(&infergate_serve::timed::load)
}
