//! The JSON that `vllm bench serve --save-result --save-detailed` writes, a file a level. Field names, units and definitions are
//! vLLM's (`vllm/benchmarks/serve.py`), but for three: the numbers are of the measured requests, what is not known is `null` and
//! never 0, and prompts and answers are in no file.

use anyhow::Result;
use infergate_core::load::{Arrivals, RequestRecord, Spacing};
use infergate_core::printable::printable_within;
use serde_json::{Map, Value, json};

use super::File;
use super::load_levels::{Run, deviation, runs};
use crate::receipt::{LoadReceipt, Metric, to_json};
use crate::report::inputs::Inputs;
use crate::report::model::{MAX_WORD_CHARS, Report};
use infergate_core::stats::mean;
use infergate_load::summary::values::Values;

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let Some(receipt) = &inputs.load else { return Ok(Vec::new()) };
    let file = |run: &Run<'_>| -> Result<File> {
        Ok(File::text(run.file_name("vllm", receipt), to_json(&document(receipt, run))?))
    };
    runs(receipt).iter().map(file).collect()
}

fn document(receipt: &LoadReceipt, run: &Run<'_>) -> Map<String, Value> {
    let seconds = run.seconds();
    let completed: Vec<&RequestRecord> = run.completed().collect();
    let count = completed.len() as f64;
    let sum = |tokens: Vec<u64>| tokens.into_iter().fold(0, u64::saturating_add);
    let input: Option<Vec<u64>> = completed.iter().map(|record| record.input_tokens).collect();
    let (input, output) = (input.map(sum), sum(completed.iter().map(|record| record.tokens()).collect()));
    let total =
        input.zip(run.completed_per_s()).map(|(input, per_s)| input.saturating_add(output) as f64 / count * per_s);
    let (rate, burstiness, users) = match run.level.arrivals {
        Arrivals::Closed { users } => (json!("inf"), json!(1.0), json!(users)),
        Arrivals::Open { requests_per_s, spacing } => {
            let burstiness = match spacing {
                Spacing::Poisson => json!(1.0),
                Spacing::Gamma { shape } => json!(shape),
                // Gaps without any spread, which is no gamma distribution.
                Spacing::Constant => Value::Null,
            };
            (json!(requests_per_s), burstiness, Value::Null)
        }
    };
    let word = |text: &str| printable_within(text, MAX_WORD_CHARS).into_owned();
    let each = |value: &dyn Fn(&RequestRecord) -> Value| -> Value {
        run.requests.iter().map(|record| value(record)).collect()
    };
    let seconds_of = |ns: Option<f64>| ns.map(|ns| ns / 1e9);
    let unless_failed =
        |record: &RequestRecord, ns: Option<f64>| json!(seconds_of(ns.filter(|_| record.failure.is_none())));
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("date", json!(word(&receipt.created)));
    set("backend", json!("infergate"));
    set("model_id", json!(word(run.model())));
    set("num_prompts", json!(run.requests.len()));
    set("request_rate", rate);
    set("burstiness", burstiness);
    set("max_concurrency", users);
    set("duration", json!(seconds));
    set("completed", json!(completed.len()));
    set("failed", json!(run.requests.len() - completed.len()));
    set("total_input_tokens", json!(input));
    set("total_output_tokens", json!(output));
    set("request_throughput", json!(run.completed_per_s()));
    set("output_throughput", json!(run.summary.system_tokens_per_s));
    set("total_token_throughput", json!(total));
    set("input_lens", each(&|record| json!(record.input_tokens)));
    set("output_lens", each(&|record| json!(if record.failure.is_none() { record.tokens() } else { 0 })));
    set("ttfts", each(&|record| unless_failed(record, Metric::Ttft.value(record))));
    set(
        "itls",
        each(&|record| if record.failure.is_none() { json!(in_seconds(&Metric::Itl.of(record))) } else { json!([]) }),
    );
    set("latencies", each(&|record| unless_failed(record, Metric::E2e.value(record))));
    let from_ns = run.window.from_ns;
    set("start_times", each(&|record| json!(record.scheduled_ns.saturating_sub(from_ns) as f64 / 1e9)));
    let error = |record: &RequestRecord| record.failure.as_ref().map_or(String::new(), |failure| word(&failure.detail));
    set("errors", each(&|record| json!(error(record))));
    let summary = &run.summary;
    for (name, values) in
        [("ttft", &summary.ttft_ns), ("tpot", &summary.tpot_ns), ("itl", &summary.itl_ns), ("e2el", &summary.e2e_ns)]
    {
        for (statistic, ns) in statistics(values) {
            set(&format!("{statistic}_{name}_ms"), json!(ns.map(|ns| ns / 1e6)));
        }
    }
    fields
}

/// Those that its file has by default. A percentile of too few requests is none.
fn statistics(values: &Values) -> [(&'static str, Option<f64>); 4] {
    [
        ("mean", mean(&values.values)),
        ("median", values.at(0.5)),
        ("std", deviation(&values.values)),
        ("p99", values.at(0.99)),
    ]
}

fn in_seconds(gaps_ns: &[f64]) -> Vec<f64> {
    gaps_ns.iter().map(|ns| ns / 1e9).collect()
}
