//! Greedy text from any model infergate can measure, so that one sees the model is real.
//!
//! `cargo run --release --example generate -- --model SPEC --prompt "The capital of France is" --max-new 8`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use infergate::engine::{Engine, EngineFactory, LoadRequest, TokenId, ensure_fits};
use infergate_candle::Candle;
use infergate_core::printable::{print_error, printable_report};
use infergate_core::process::ensure_environment;
use serde::Serialize;

/// Continues a prompt greedily; end-of-sequence is ignored.
#[derive(Debug, Parser)]
struct Args {
    /// synthetic:gpt2, a .gguf file, a directory with safetensors, or hf:ORG/NAME[@REVISION][/FILE.gguf]
    #[arg(long, default_value = "synthetic:gpt2")]
    model: String,
    /// Text to continue
    #[arg(long, required_unless_present = "prompt_ids", conflicts_with = "prompt_ids")]
    prompt: Option<String>,
    /// Token ids to continue, for example 1,2,3
    #[arg(long, value_delimiter = ',')]
    prompt_ids: Option<Vec<TokenId>>,
    /// Tokens to generate
    #[arg(long, default_value_t = 32)]
    max_new: usize,
    /// Compute type, for example f32; without it as the model's file has it
    #[arg(long)]
    dtype: Option<String>,
    /// Threads to compute with
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Seed of synthetic weights
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Print one line of JSON: prompt_ids, output_ids, text
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Line {
    prompt_ids: Vec<TokenId>,
    output_ids: Vec<TokenId>,
    /// `null` where the model has no tokenizer.
    text: Option<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let Args { model, dtype, threads, seed, .. } = args;
    ensure!(*threads > 0, "--threads 0 cannot compute anything; give at least 1");
    ensure!(args.max_new > 0, "--max-new 0 generates nothing; give at least one token");
    let request = LoadRequest {
        model: model.clone(),
        dtype: dtype.clone(),
        threads: *threads,
        seed: *seed,
        ..LoadRequest::default()
    };
    ensure_environment(&Candle.environment(&request))?;
    let mut engine = Candle.load(&request)?;
    let prompt = prompt_ids(args, engine.as_ref())?;
    ensure_fits(prompt.len().saturating_add(args.max_new), engine.info().context_tokens)?;
    let output = generate(args, engine.as_mut(), &prompt)?;
    if args.json {
        let text = engine.detokenize(&output)?;
        let line = serde_json::to_string(&Line { prompt_ids: prompt, output_ids: output, text })?;
        print(&format!("{line}\n"))?;
    }
    Ok(())
}

fn prompt_ids(args: &Args, engine: &dyn Engine) -> Result<Vec<TokenId>> {
    if let Some(ids) = &args.prompt_ids {
        return Ok(ids.clone());
    }
    let ids = engine.tokenize(args.prompt.as_deref().unwrap_or_default())?;
    ids.context("this model has no tokenizer; give --prompt-ids in place of --prompt")
}

/// Generates and, unless JSON is asked for, prints text (or ids where there is no tokenizer) as it comes.
fn generate(args: &Args, engine: &mut dyn Engine, prompt: &[TokenId]) -> Result<Vec<TokenId>> {
    let mut output = Vec::with_capacity(args.max_new);
    let mut shown = String::new();
    while output.len() < args.max_new {
        let token = if output.is_empty() { engine.start(prompt)? } else { engine.next()? };
        output.push(token);
        if args.json {
            continue;
        }
        match engine.detokenize(&output)? {
            // A character can be spread over tokens: it is held back until it is whole.
            Some(text) if text.ends_with('\u{fffd}') && output.len() < args.max_new => {}
            Some(text) => {
                print(&printable_report(text.strip_prefix(shown.as_str()).unwrap_or(&text)))?;
                shown = text;
            }
            None => print(&format!("{}{token}", if output.len() == 1 { "" } else { " " }))?,
        }
    }
    if !args.json {
        print("\n")?;
    }
    Ok(output)
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}
