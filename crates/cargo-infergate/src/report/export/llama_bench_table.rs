//! llama-bench's Markdown table.

use std::fmt::Write as _;

use anyhow::Result;

use super::File;
use super::llama_bench::{Entry, entries};
use super::markup::code;
use crate::report::inputs::Inputs;
use crate::report::model::{Report, Unit};
use crate::report::units::MISSING;

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
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
