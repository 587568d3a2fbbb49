//! The JSON that AIPerf writes of a profile (`profile_export_aiperf.json`, its schema 1.1), a file a level. Names, units and
//! definitions are AIPerf's: its `inter_token_latency` is a request's mean, which is TPOT here, and its `inter_chunk_latency` is
//! each gap. What is not known is `null`; the numbers are of the measured requests.

use anyhow::Result;
use infergate_core::load::RequestRecord;
use infergate_core::printable::printable_within;
use serde_json::{Map, Value, json};

use super::File;
use super::load_levels::{Run, runs};
use crate::receipt::{LoadReceipt, to_json};
use crate::report::inputs::Inputs;
use crate::report::model::{MAX_WORD_CHARS, Report};
use infergate_core::stats::{mean, quantile, sample_std};
use infergate_load::summary::values::Values;

/// The version of its schema whose fields these are.
const VERSION: &str = "1.1";
/// The percentiles of a distribution.
const PERCENTILES: [(&str, f64); 9] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
];

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let Some(receipt) = &inputs.load else { return Ok(Vec::new()) };
    let file = |run: &Run<'_>| -> Result<File> {
        Ok(File::text(run.file_name("aiperf", receipt), to_json(&document(receipt, run))?))
    };
    runs(receipt).iter().map(file).collect()
}

fn document(receipt: &LoadReceipt, run: &Run<'_>) -> Map<String, Value> {
    let (summary, seconds) = (&run.summary, run.seconds());
    let completed: Vec<&RequestRecord> = run.completed().collect();
    let failed = run.requests.len() - completed.len();
    let lengths = |of: fn(&RequestRecord) -> Option<u64>| {
        let values: Vec<f64> = completed.iter().filter_map(|record| of(record)).map(|tokens| tokens as f64).collect();
        Values::of_completed(values)
    };
    let (input, output) = (lengths(|record| record.input_tokens), lengths(|record| Some(record.tokens())));
    let sum = |values: &Values| (values.requests == completed.len()).then(|| values.values.iter().sum::<f64>());
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("schema_version", json!(VERSION));
    set("start_time", json!(printable_within(&receipt.created, MAX_WORD_CHARS)));
    set("was_cancelled", json!(receipt.partial));
    let single = |unit: &str, value: Option<f64>| json!({ "unit": unit, "avg": value });
    set("request_count", single("requests", Some(completed.len() as f64)));
    set("error_request_count", single("requests", Some(failed as f64)));
    set("benchmark_duration", single("sec", Some(seconds)));
    set("request_throughput", single("requests/sec", run.completed_per_s()));
    set("output_token_throughput", single("tokens/sec", summary.system_tokens_per_s));
    set("total_osl", single("tokens", sum(&output)));
    set("total_isl", single("tokens", sum(&input)));
    set("time_to_first_token", distribution("ms", &summary.ttft_ns, 1e6));
    set("inter_token_latency", distribution("ms", &summary.tpot_ns, 1e6));
    set("inter_chunk_latency", distribution("ms", &summary.itl_ns, 1e6));
    set("request_latency", distribution("ms", &summary.e2e_ns, 1e6));
    set("output_token_throughput_per_user", distribution("tokens/sec/user", &summary.decode_tokens_per_s, 1.0));
    set("output_sequence_length", distribution("tokens", &output, 1.0));
    set("input_sequence_length", distribution("tokens", &input, 1.0));
    fields
}

/// A metric that each request has. A percentile of too few requests is none.
fn distribution(unit: &str, values: &Values, scale: f64) -> Value {
    let scaled = |value: Option<f64>| json!(value.map(|value| value / scale));
    let mut block = Map::new();
    let mut set = |name: &str, value: Value| drop(block.insert(name.to_owned(), value));
    set("unit", json!(unit));
    set("avg", scaled(mean(&values.values)));
    set("min", scaled(quantile(&values.values, 0.0)));
    set("max", scaled(quantile(&values.values, 1.0)));
    for (name, p) in PERCENTILES {
        set(name, scaled(values.at(p)));
    }
    set("std", scaled(sample_std(&values.values)));
    set("count", json!(values.requests));
    Value::Object(block)
}
