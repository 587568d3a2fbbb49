//! `FakeEngine` as a measured worker on virtual time: what the tests of suite and gate run instead of a model.
//!
//! The model spec is a list of words: `fake`, `fake:slow`, `fake:other-output`, `fake:unrepeatable`, `fake:dies`,
//! `fake:fails`, `fake:garbage`, `fake:new-protocol`. It speaks the worker protocol and nothing else.

use std::io::{self, Write};
use std::process::{self, ExitCode};

use anyhow::{Result, bail};
use infergate::clock::VirtualClock;
use infergate::engine::fake::FakeScript;
use infergate::engine::{Engine, FakeEngine, LoadRequest};
use infergate::worker;

fn script(model: &str) -> Result<FakeScript> {
    let mut script = FakeScript { jitter_ns: vec![0, 150_000, 40_000, 90_000, 10_000], ..FakeScript::default() };
    for word in model.split(':').skip(1) {
        match word {
            "slow" => script.step_ns *= 2,
            "other-output" => script.output_salt = 1,
            "unrepeatable" => script.unrepeatable = true,
            "fails" => script.fails_at_step = Some(30),
            "dies" => process::exit(9),
            _ => bail!(
                "unknown fake '{word}'; try fake:slow, fake:other-output, fake:unrepeatable, fake:fails or fake:dies"
            ),
        }
    }
    Ok(script)
}

fn main() -> ExitCode {
    let model = std::env::var("INFERGATE_MODEL").unwrap_or_default();
    if model.contains("garbage") {
        println!("Loading weights... 100%");
    }
    if model.contains("new-protocol") {
        println!(r#"{{"ok":{{"protocol":99,"tool":"9.0.0","machine":{{}},"build":{{}}}}}}"#);
    }
    let _ = io::stdout().flush();
    let clock = VirtualClock::default();
    let engine_clock = clock.clone();
    let load = move |request: &LoadRequest| -> Result<Box<dyn Engine + Send>> {
        engine_clock.advance_ns(1_000_000_000);
        Ok(Box::new(FakeEngine::new(script(&request.model)?, engine_clock.clone())))
    };
    match worker::serve(&load, &clock, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
