//! Times GPT-2 124M with seeded weights, one command a line on stdin, nanoseconds on stdout; driven by
//! `scripts/compare_pytorch.py`.
//!
//! `prefill P`: reads a prompt of P tokens into an empty cache. `decode P`: one step behind P tokens.
//! `generate P N`: prefill and N tokens, greedily.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_core::DType;
use infergate_candle::decoder::Decoder;
use infergate_candle::gpt2::{Gpt2, Gpt2Config};
use infergate_candle::{parallel, synthetic};
use infergate_core::process::ensure_environment;
use infergate_core::prompt::seeded_ids;

fn main() -> Result<()> {
    let threads: usize = std::env::args().nth(1).context("how many threads?")?.parse().context("threads: a number")?;
    ensure_environment(&parallel::environment_for_team())?;
    let started = Instant::now();
    let mut model = Gpt2::load(&Gpt2Config::gpt2(), synthetic::var_builder(1, DType::F32), threads)?;
    println!("loaded {}", started.elapsed().as_nanos());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let count = |i: usize| words.get(i).context("a number is missing")?.parse::<usize>().context("a number");
        let ns = match words[..] {
            ["prefill", _] => generate(&mut model, count(1)?, 1)?,
            ["decode", _] => decode(&mut model, count(1)?)?,
            ["generate", _, _] => generate(&mut model, count(1)?, count(2)?)?,
            _ => bail!("unknown command: {line}"),
        };
        println!("{ns}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn argmax(logits: &candle_core::Tensor) -> Result<u32> {
    Ok(logits.argmax(0)?.to_scalar()?)
}

/// The median of eight steps, each behind the same prompt, which is read anew only when the cache does not hold it.
fn decode(model: &mut Gpt2, prompt: usize) -> Result<u128> {
    if model.cached_tokens() < prompt {
        generate(model, prompt, 1)?;
    }
    let mut steps = Vec::new();
    for token in 0..8 {
        model.truncate(prompt)?;
        let started = Instant::now();
        argmax(&model.forward(&[token])?)?;
        steps.push(started.elapsed().as_nanos());
    }
    steps.sort_unstable();
    Ok(steps[4])
}

fn generate(model: &mut Gpt2, prompt: usize, new: usize) -> Result<u128> {
    let ids = seeded_ids(prompt, 1, 50257);
    model.reset()?;
    let started = Instant::now();
    let mut token = argmax(&model.forward(&ids)?)?;
    for _ in 1..new {
        token = argmax(&model.forward(&[token])?)?;
    }
    Ok(started.elapsed().as_nanos())
}
