//! llama-bench's JSON: an entry a case, with its samples; and its Markdown table.

use std::fmt::Write as _;

use anyhow::Result;
use infergate_core::case::Case;
use infergate_core::printable::printable_within;
use serde::Serialize;

use super::File;
use super::markup::code;
use crate::receipt::{CaseRecord, Receipt, to_json};
use crate::report::figures::token_rates;
use crate::report::inputs::Inputs;
use crate::report::model::{MAX_WORD_CHARS, Report, Unit};
use crate::report::units::MISSING;
use infergate_core::stats::{mean, sample_std};

/// One case, in llama-bench's names. Rates count prompt and output tokens, as it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub build_commit: Option<String>,
    pub cpu_info: String,
    pub backends: String,
    pub model_filename: String,
    pub model_type: String,
    /// Bytes of the weights; `null` where the engine does not say.
    pub model_size: Option<u64>,
    /// Number of weights; `null` likewise.
    pub model_n_params: Option<u64>,
    pub n_threads: usize,
    pub n_prompt: usize,
    pub n_gen: usize,
    pub n_depth: usize,
    pub test_time: String,
    pub avg_ns: f64,
    /// Its sample deviation; `null` below two samples.
    pub stddev_ns: Option<f64>,
    pub avg_ts: f64,
    pub stddev_ts: Option<f64>,
    pub samples_ns: Vec<f64>,
    pub samples_ts: Vec<f64>,
}

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    Ok(vec![File::text("llama-bench.json", to_json(&entries(inputs))?)])
}

pub fn entries(inputs: &Inputs) -> Vec<Entry> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    receipt.cases.iter().filter_map(|case| entry(receipt, case)).collect()
}

fn entry(receipt: &Receipt, case: &CaseRecord) -> Option<Entry> {
    let word = |text: &str| printable_within(text, MAX_WORD_CHARS).into_owned();
    let (n_prompt, n_gen, n_depth) = match case.id {
        Case::Prefill { prompt_tokens } => (prompt_tokens, 0, 0),
        Case::Decode { prompt_tokens } => (0, 1, prompt_tokens),
        Case::Generate { prompt_tokens, output_tokens } => (prompt_tokens, output_tokens, 0),
        // A bench has no tokens.
        Case::Bench(_) => return None,
    };
    let samples_ns: Vec<f64> = case.processes.iter().flat_map(|process| process.times_ns()).collect();
    let samples_ts = token_rates(case);
    let engine = &receipt.engine;
    Some(Entry {
        build_commit: receipt.build.commit.as_deref().map(word),
        cpu_info: word(&receipt.machine.cpu_model),
        backends: word(&engine.name),
        model_filename: word(&engine.model),
        model_type: word(format!("{} {}", engine.architecture.as_deref().unwrap_or_default(), engine.dtype).trim()),
        model_size: engine.weight_bytes,
        model_n_params: engine.parameters,
        n_threads: receipt.threads,
        n_prompt,
        n_gen,
        n_depth,
        test_time: word(&receipt.created),
        avg_ns: mean(&samples_ns)?,
        stddev_ns: sample_std(&samples_ns),
        avg_ts: mean(&samples_ts)?,
        stddev_ts: sample_std(&samples_ts),
        samples_ns,
        samples_ts,
    })
}

pub fn export_table(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let mut text = String::from(
        "| model | size | params | backend | threads | test | t/s |\n| --- | ---: | ---: | --- | ---: | ---: | ---: |\n",
    );
    for entry in entries(inputs) {
        let size = entry.model_size.map_or_else(|| MISSING.into(), |bytes| Unit::Bytes.show(bytes as f64));
        let params =
            entry.model_n_params.map_or_else(|| MISSING.into(), |count| format!("{:.2} M", count as f64 / 1e6));
        let deviation = entry.stddev_ts.map_or_else(String::new, |std| format!(" ± {std:.2}"));
        let _ = writeln!(
            text,
            "| {} | {size} | {params} | {} | {} | {} | {:.2}{deviation} |",
            code(&entry.model_filename, true),
            code(&entry.backends, true),
            entry.n_threads,
            test(&entry),
            entry.avg_ts
        );
    }
    Ok(vec![File::text("llama-bench.md", text)])
}

/// As llama-bench names it: `pp512`, `tg1 @ d128`, `pp128+tg64`.
fn test(entry: &Entry) -> String {
    let depth = if entry.n_depth > 0 { format!(" @ d{}", entry.n_depth) } else { String::new() };
    match (entry.n_prompt, entry.n_gen) {
        (prompt, 0) => format!("pp{prompt}{depth}"),
        (0, output) => format!("tg{output}{depth}"),
        (prompt, output) => format!("pp{prompt}+tg{output}{depth}"),
    }
}
