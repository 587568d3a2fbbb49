//! The verdict file: what the gate decided, and on what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use infergate::outcome::Outcome;

use super::{Metric, VERDICT_SCHEMA};

/// Which evidence a case's verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Outputs and counters: no noise.
    Exact,
    /// Against a git revision on the same machine in the same run.
    Paired,
    /// Against a committed baseline.
    Stored,
    /// Against nothing but itself: memory over many runs of one process.
    Memory,
}

/// One case, on one channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseVerdict {
    /// Case id, for example `decode/p128`; `model` for what belongs to no case.
    pub id: String,
    /// What was compared: `ttft_ns`, `itl_ns`, `e2e_ns` on the stored and paired channel; `output` or a counter's name on
    /// the exact channel; a target's metric, for example `ttft_ms`, where an absolute limit was set.
    pub metric: String,
    /// The evidence.
    pub channel: Channel,
    /// The verdict.
    pub verdict: Outcome,
    /// head / base; `null` where either is missing.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval. On the stored channel from the prediction interval of one more session, each end
    /// at the one-sided level alpha / m.
    pub ci_low: Option<f64>,
    /// Upper end of the ratio's interval.
    pub ci_high: Option<f64>,
    /// p value of "head is slower", adjusted for the number of cases.
    pub p_adjusted: Option<f64>,
    /// Base value, in the metric's unit.
    pub base: Option<f64>,
    /// Head value, in the metric's unit.
    pub head: Option<f64>,
    /// Coefficient of variation of the head's process medians.
    pub cv: Option<f64>,
    /// The ratio above which the case is regressed; for a target, its limit in the metric's unit.
    pub threshold: Option<f64>,
    /// Fraction of the hardware's limit the head reaches, 0 to 1; `null` when not known.
    #[serde(default)]
    pub limit_fraction: Option<f64>,
    /// Paired channel: fresh processes of each side the verdict rests on.
    #[serde(default)]
    pub blocks: Option<usize>,
    /// Paired channel: the smallest slowdown (a ratio above 1) that a run with this noise calls 19 times of 20; `null` when
    /// none up to a doubling is.
    #[serde(default)]
    pub smallest_slowdown: Option<f64>,
    /// Memory channel: the smallest leak this run could have seen, bytes a run.
    #[serde(default)]
    pub smallest_leak_bytes: Option<f64>,
    /// Memory channel, heap: a leak of that size in each k-th run is certain to be called up to this k, and in rarer runs it
    /// depends on which.
    #[serde(default)]
    pub certain_leak_interval: Option<usize>,
    /// One sentence on why, where the numbers do not say it.
    #[serde(default)]
    pub note: Option<String>,
}

impl CaseVerdict {
    /// A verdict without numbers; fill in what there is.
    pub fn new(id: impl ToString, metric: impl Into<String>, channel: Channel, verdict: Outcome) -> Self {
        Self {
            id: id.to_string(),
            metric: metric.into(),
            channel,
            verdict,
            ratio: None,
            ci_low: None,
            ci_high: None,
            p_adjusted: None,
            base: None,
            head: None,
            cv: None,
            threshold: None,
            limit_fraction: None,
            blocks: None,
            smallest_slowdown: None,
            smallest_leak_bytes: None,
            certain_leak_interval: None,
            note: None,
        }
    }

    /// As [`new`](Self::new), for the stored time of a case.
    pub fn time(id: impl ToString, metric: Metric, channel: Channel, verdict: Outcome) -> Self {
        Self::new(id, metric.name(), channel, verdict)
    }
}

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// [`VERDICT_SCHEMA`].
    pub schema: String,
    /// The worst case decides.
    pub verdict: Outcome,
    /// 0 pass, 1 regressed, 2 failed, 3 no verdict, 4 not comparable.
    pub exit_code: i32,
    /// Every case on every channel that looked at it.
    pub cases: Vec<CaseVerdict>,
    /// What holds for the run as a whole: missing baseline, sessions that are missing, builds that differ.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Verdict {
    /// The worst of `cases` decides; none at all is a pass of nothing and therefore [`Outcome::Failed`].
    pub fn of(cases: Vec<CaseVerdict>, notes: Vec<String>) -> Self {
        let worst = cases.iter().map(|case| case.verdict).max_by_key(|verdict| verdict.severity());
        let verdict = match worst {
            None => Outcome::Failed,
            Some(worst) if worst.exit_code() == 0 => Outcome::Pass,
            Some(worst) => worst,
        };
        Self { schema: VERDICT_SCHEMA.into(), verdict, exit_code: verdict.exit_code(), cases, notes }
    }
}
