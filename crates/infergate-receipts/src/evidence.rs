//! What a row of a verdict rests on: numbers, each in a field of its own. `report` turns them into words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counter, MemoryEvidence, Metric, Target, TargetMetric, Throughput};

/// What was compared, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// What the model said.
    Output(OutputEvidence),
    /// How long it took.
    Time(TimeEvidence),
    /// An exact counter: allocations, bytes.
    Counter(CounterEvidence),
    /// An absolute limit of the team's own.
    Target(TargetEvidence),
    /// Memory over many runs of one process.
    Memory(MemoryEvidence),
}

/// How head's output relates to base's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputComparison {
    /// Bit for bit, as far as both are known.
    Same,
    /// Other numbers, within the tolerance for rounding.
    Drifted,
    /// Other tokens, or numbers beyond the tolerance.
    Changed,
    /// There is nothing to compare with.
    #[default]
    Unknown,
    /// Neither side says what it computed: a bench without `b.output`.
    NotGiven,
}

/// What the model said on both sides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputEvidence {
    /// How the two outputs relate.
    pub comparison: OutputComparison,
    /// The first output token that differs, the first of all being 0; `null` where none does.
    pub position: Option<usize>,
    /// Base's token id there; `null` where base had ended.
    pub base_id: Option<u32>,
    /// Head's token id there; `null` where head had ended.
    pub head_id: Option<u32>,
    /// Distance of base's two best logits there; `null` where the engine did not say.
    pub base_margin: Option<f32>,
    /// Positions at which numbers, or where there are none tokens, were compared: at least 16, fewer where the context ends or
    /// where both had said different things.
    pub positions: Option<usize>,
    /// Positions that both reached over the same tokens and of which base alone gives logits.
    pub lost_positions: usize,
    /// Root mean square of the distances of head's logits from base's, each as a fraction of base's largest logit at its
    /// position: what the tolerance limits. `null` where the engine gives no logits.
    pub relative_drift: Option<f64>,
    /// The largest `relative_drift` that is called rounding; `null` where the engine gives no logits.
    pub drift_tolerance: Option<f64>,
    /// The same of all logits, not only the best, estimated from 16 signed sums of them: limited by three times the tolerance.
    /// `null` where a side has no such sums.
    pub vocabulary_drift: Option<f64>,
    /// Logits a position of base and of head where they are not as many; `null` where they are, or it is not known.
    pub other_logits: Option<(usize, usize)>,
    /// Largest distance of a logit of head from the same logit of base; `null` where the engine gives no logits.
    pub max_abs_logit_delta: Option<f64>,
}

/// What a time is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The sessions of a committed baseline: the stored channel.
    Baseline,
    /// A git revision on the same machine in the same run: the paired channel.
    Base,
}

/// A difference shown at the suite's level, whether or not it reaches the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Head takes longer.
    Slower,
    /// Head takes less.
    Faster,
}

/// Which number of a block is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The median: what a usual sample takes.
    #[default]
    Median,
    /// The mean, which few samples that take much longer move, too.
    Mean,
}

/// An interval of the ratio head / base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Chance that an interval made this way, wherever the looking stopped, holds the true ratio: at least 0.95. On the stored channel, that it holds
    /// the ratio of one more session of an unchanged program.
    pub level: f64,
}

impl Interval {
    /// From the natural logarithms of its ends. `None` where an end is no number.
    pub fn of_logs(low: f64, high: f64, level: f64) -> Option<Self> {
        let (low, high) = (low.exp(), high.exp());
        (low.is_finite() && high.is_finite()).then_some(Self { low, high, level })
    }
}

/// A time of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeEvidence {
    /// What was timed.
    pub metric: Metric,
    /// Paired channel: which number of each block was compared.
    pub statistic: Statistic,
    /// What head's time is compared with.
    pub against: Against,
    /// Whether it is one of the suite's tests. Further metrics of a case are shown and decide nothing.
    pub counted: bool,
    /// Base's time, nanoseconds: the Hodges-Lehmann estimate over its processes, as `ratio` is, of each one's median (or mean, by
    /// `statistic`), or the geometric mean over the baseline's days, since its last step, of the newest session of each.
    pub base_ns: Option<f64>,
    /// Head's time, nanoseconds: of a paired run base's times `ratio`; of a run that is judged by a baseline the median over its processes.
    pub head_ns: Option<f64>,
    /// head / base; `null` where either is missing.
    pub ratio: Option<f64>,
    /// Where the true ratio lies; `null` where that is not known.
    pub interval: Option<Interval>,
    /// Whether head was shown to be slower or faster at the suite's level; `null` where neither was.
    pub shown: Option<Shown>,
    /// p value of "slower", or of "faster" where that was shown, adjusted for the number of tests.
    pub p_adjusted: Option<f64>,
    /// The ratio from which on (paired) or above which (stored) it is regressed.
    pub threshold: Option<f64>,
    /// Coefficient of variation of head's process medians.
    pub cv: Option<f64>,
    /// Fraction of the hardware's limit that head reaches; `null` when not known. Above 1 the work or a probe is wrong.
    pub limit_fraction: Option<f64>,
    /// Stored channel: sessions of the baseline that measured it, since its last step.
    pub sessions: Option<usize>,
    /// Stored channel: days, in UTC, that these sessions are of; the limit is from their spread.
    pub days: Option<usize>,
    /// Stored channel, where there is a step: days, before it and since, whose spread the limit is from.
    pub spread_days: Option<usize>,
    /// Paired channel: fresh processes of each side.
    pub blocks: Option<usize>,
    /// Paired channel: the smallest slowdown (a ratio above 1) that a run with this noise calls in 19 of 20 runs; `null` when
    /// none up to a doubling is.
    pub smallest_slowdown: Option<f64>,
    /// What an iteration of head gets through, where a criterion bench says so.
    pub throughput: Option<Throughput>,
}

impl TimeEvidence {
    /// Whether all of its interval is above the limit.
    pub fn is_above_limit(&self) -> bool {
        self.interval.zip(self.threshold).is_some_and(|(interval, limit)| interval.low > limit)
    }

    /// A time without numbers; fill in what there is.
    pub fn new(metric: Metric, against: Against) -> Self {
        Self {
            metric,
            statistic: Statistic::Median,
            against,
            counted: true,
            base_ns: None,
            head_ns: None,
            ratio: None,
            interval: None,
            shown: None,
            p_adjusted: None,
            threshold: None,
            cv: None,
            limit_fraction: None,
            sessions: None,
            days: None,
            spread_days: None,
            blocks: None,
            smallest_slowdown: None,
            throughput: None,
        }
    }
}

/// The counter that is the model's longest context, of which less is worse.
pub const CONTEXT_TOKENS: &str = "context_tokens";
/// The counter that is the size of the model's vocabulary, of which any other is worse.
pub const VOCAB_TOKENS: &str = "vocab_tokens";

/// What a counter counts, from its name: one with `bytes` in it counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Whole things: allocations.
    Number,
}

impl Unit {
    /// The unit of the counter `name`.
    pub fn of(name: &str) -> Self {
        if name.split('_').any(|word| word == "bytes") { Self::Bytes } else { Self::Number }
    }
}

/// An exact counter of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterEvidence {
    /// Name of the counter: `allocations_per_token`, `weight_bytes`.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// What base counted; `null` where it did not.
    pub base: Option<Counter>,
    /// What head counted; `null` where it did not.
    pub head: Option<Counter>,
    /// What two repeats of each of head's processes reach, where all that base counted is less and head's best is not more.
    pub head_twice: Option<u64>,
    /// A rise by up to this fraction of base, of 1 where base has 0, passes.
    pub tolerance: f64,
}

impl CounterEvidence {
    /// By how much head's best is above base's worst or worse than it, or what head reaches in some repeats of each process: what was
    /// seen once is no rise. `None` where a side was not counted.
    pub fn rise(&self) -> Option<u64> {
        let (base, head) = self.base.zip(self.head)?;
        Some(match self.name.as_str() {
            CONTEXT_TOKENS => base.min.saturating_sub(head.max),
            VOCAB_TOKENS => base.min.abs_diff(head.max),
            _ => self.least_of_head()?.saturating_sub(base.max),
        })
    }

    /// What head is judged by where it may be worse.
    pub fn least_of_head(&self) -> Option<u64> {
        Some(self.head?.min.max(self.head_twice.unwrap_or(0)))
    }

    /// Whether it rises by more than the tolerance.
    pub fn rises(&self) -> bool {
        let base = self.base.map_or(0.0, |base| base.max.max(1) as f64);
        self.rise().is_some_and(|rise| rise > 0 && rise as f64 > self.tolerance * base)
    }
}

/// What an absolute limit was compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetEvidence {
    /// As it was given: `decode/* itl_ms < 50`.
    #[schemars(with = "String")]
    pub target: Target,
    /// The metric that it limits.
    #[schemars(with = "String")]
    pub metric: TargetMetric,
    /// The limit, in the unit of that metric.
    pub limit: f64,
    /// What was measured, in the unit of the target's metric; `null` where it was not.
    pub value: Option<f64>,
}
