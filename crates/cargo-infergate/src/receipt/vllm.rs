//! The result of `vllm bench serve --save-result`, read leniently: which figures it holds depends on its version and its flags, so
//! only the length of the run and the requests that completed are asked for.

use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::receipt::limits::{in_range, sound};
use infergate_core::text_file::read_text;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// With `--save-detailed` it holds every gap and every answer.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// One run of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct VllmResult {
    /// The model.
    #[serde(default)]
    pub model_id: String,
    /// Requests in flight, at most; `None` where it set no limit.
    #[serde(default)]
    pub max_concurrency: Option<u32>,
    /// Requests a second; `None` where the file has no number but the text `inf`: all were sent at once.
    #[serde(default, deserialize_with = "number")]
    pub request_rate: Option<f64>,
    /// Length of the run, seconds.
    pub duration: f64,
    /// Requests that completed.
    pub completed: u64,
    /// Requests that failed; `None` in older files.
    #[serde(default)]
    pub failed: Option<u64>,
    /// Output tokens a second of the whole run.
    #[serde(default)]
    pub output_throughput: Option<f64>,
    /// Median time to first token, milliseconds; so are those that follow.
    #[serde(default)]
    pub median_ttft_ms: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub p99_ttft_ms: Option<f64>,
    /// Median time per output token.
    #[serde(default)]
    pub median_tpot_ms: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub p99_tpot_ms: Option<f64>,
    /// Median gap.
    #[serde(default)]
    pub median_itl_ms: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub p99_itl_ms: Option<f64>,
    /// Median end-to-end latency; left out unless it was asked for.
    #[serde(default)]
    pub median_e2el_ms: Option<f64>,
    /// 99th percentile of it.
    #[serde(default)]
    pub p99_e2el_ms: Option<f64>,
}

impl VllmResult {
    /// Requests a second; `None` where requests did not follow a rate.
    pub fn requests_per_s(&self) -> Option<f64> {
        self.request_rate.filter(|rate| *rate > 0.0)
    }
}

/// A number; `None` for any other value, of which nothing is kept.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = <&RawValue>::deserialize(deserializer)?.get();
    Ok(text.parse().ok().filter(|number: &f64| number.is_finite()))
}

/// Whether the file is one object, as vLLM's are: llama-bench's are a list, and neither names its format.
pub fn is_vllm(path: &Path) -> Result<bool> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    Ok(text.trim_start().starts_with('{'))
}

/// Reads one.
pub fn read_vllm(path: &Path) -> Result<VllmResult> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    let read = || -> Result<VllmResult> {
        let result: VllmResult = serde_json::from_str(&text).context(
            "it has no schema of ours and is no result of vLLM's; give another file, or write one with `vllm bench serve --save-result`",
        )?;
        in_range([result.completed].into_iter().chain(result.failed), "requests")?;
        let VllmResult { duration, output_throughput, .. } = result;
        sound([duration].into_iter().chain(output_throughput), "a rate or a time")?;
        let VllmResult { median_ttft_ms, p99_ttft_ms, median_tpot_ms, p99_tpot_ms, .. } = result;
        let VllmResult { median_itl_ms, p99_itl_ms, median_e2el_ms, p99_e2el_ms, .. } = result;
        let times = [median_ttft_ms, p99_ttft_ms, median_tpot_ms, p99_tpot_ms, median_itl_ms, p99_itl_ms];
        sound(times.into_iter().chain([median_e2el_ms, p99_e2el_ms]).flatten(), "a latency")?;
        Ok(result)
    };
    read().with_context(|| format!("{}: not a usable file", path.display()))
}
