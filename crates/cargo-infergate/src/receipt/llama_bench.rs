//! llama-bench's JSON (`llama-bench -o json`), read leniently: its fields drift from version to version, so only the tokens and
//! the rate of a test are asked for.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use infergate_core::json;
use infergate_core::receipt::RULES;
use infergate_core::receipt::limits::{MAX_CASES, MAX_NUMBER, at_most, in_range, sound};
use infergate_core::text_file::read_text;
use serde::Deserialize;

/// Its files hold a few kilobytes a test.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// One test.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LlamaBenchTest {
    /// The model's file, with whatever folder it was given by.
    #[serde(default)]
    pub model_filename: String,
    /// Architecture, size and type of the weights: `gpt2 124M F32`.
    #[serde(default)]
    pub model_type: String,
    /// Prompt tokens that were timed.
    pub n_prompt: u64,
    /// Output tokens that were timed.
    pub n_gen: u64,
    /// Tokens in the cache before.
    #[serde(default)]
    pub n_depth: u64,
    /// Mean rate of prompt and output tokens together, tokens a second.
    pub avg_ts: f64,
    /// Its sample deviation.
    #[serde(default)]
    pub stddev_ts: Option<f64>,
}

impl LlamaBenchTest {
    /// As llama-bench's own table names it: `pp512`, `tg128 @ d512`, `pp128+tg64`.
    pub fn name(&self) -> String {
        let depth = if self.n_depth > 0 { format!(" @ d{}", self.n_depth) } else { String::new() };
        match (self.n_prompt, self.n_gen) {
            (prompt, 0) => format!("pp{prompt}{depth}"),
            (0, output) => format!("tg{output}{depth}"),
            (prompt, output) => format!("pp{prompt}+tg{output}{depth}"),
        }
    }

    /// The model's file without the folder.
    pub fn model(&self) -> &str {
        self.model_filename.rsplit(['/', '\\']).next().unwrap_or_default()
    }
}

/// Reads the tests of a file.
pub fn read_llama_bench(path: &Path) -> Result<Vec<LlamaBenchTest>> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    let read = || -> Result<Vec<LlamaBenchTest>> {
        let tests: Vec<LlamaBenchTest> = json::read(&text, RULES).context(
            "it has no schema of ours and is no list of llama-bench's tests; give another file, or write one with `llama-bench -o json`",
        )?;
        ensure!(!tests.is_empty(), "there are no tests in it; run llama-bench again");
        at_most(tests.len(), MAX_CASES, "tests")?;
        for test in &tests {
            in_range([test.n_prompt, test.n_gen, test.n_depth], "a number of tokens")?;
            sound([test.avg_ts].into_iter().chain(test.stddev_ts), "a rate")?;
            ensure!(test.n_prompt + test.n_gen <= MAX_NUMBER, "a number of tokens is beyond {MAX_NUMBER}");
        }
        Ok(tests)
    };
    read().with_context(|| format!("{}: not a usable file", path.display()))
}
