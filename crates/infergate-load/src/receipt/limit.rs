//! Limits on latency that a load run was asked to keep.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use infergate_core::metric::Metric;
use infergate_core::serde_as_text;

/// One limit: of a percentile over a level's requests, or of each request. In files it is a text: `ttft_p95=500ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// What is limited.
    pub metric: Metric,
    /// 0.95 for p95; `None`: each request by itself.
    pub percentile: Option<f64>,
    /// The largest value that meets it, nanoseconds.
    pub limit_ns: u64,
}

impl FromStr for Limit {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, time) = text.split_once('=').with_context(|| format!("{text}: write for example ttft_p95=500ms"))?;
        let (metric, percentile) = name.split_once("_p").map_or((name, None), |(metric, p)| (metric, Some(p)));
        let metric = Metric::LIMITED
            .into_iter()
            .find(|limited| limited.key() == metric)
            .with_context(|| format!("{text}: limits are of ttft, itl, tpot or e2e"))?;
        let number = |text: &str| text.parse::<f64>().ok().context("a percentile is a number, for example ttft_p95");
        let percentile = percentile.map(number).transpose()?.map(|number| number / 100.0);
        ensure!(percentile.is_none_or(|p| p > 0.0 && p < 1.0), "{text}: a percentile is above 0 and below 100");
        let time =
            humantime::parse_duration(time).ok().with_context(|| format!("{text}: write a time as 500ms or 2s"))?;
        Ok(Self { metric, percentile, limit_ns: u64::try_from(time.as_nanos()).context("this time is too long")? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.key())?;
        if let Some(percentile) = self.percentile {
            // As it was written: 0.55 times 100 is a little more than 55.
            write!(f, "_p{}", (percentile * 1e11).round() / 1e9)?;
        }
        write!(f, "={}", humantime::format_duration(Duration::from_nanos(self.limit_ns)))
    }
}

serde_as_text!(Limit, Limit::to_string);
