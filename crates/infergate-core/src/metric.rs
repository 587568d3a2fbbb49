//! What is measured: one name for each number in code, files and reports. Pure.

use serde::{Deserialize, Serialize};

use crate::case::{Case, Phase};
use crate::trace::{Times, per_second};

/// A time or a speed. In files it is named with its unit behind it, nanoseconds, where it is gated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum Metric {
    /// Time to first token, ns: prefill.
    #[serde(rename = "ttft_ns")]
    Ttft,
    /// Inter-token latency of one step, ns: decode.
    #[serde(rename = "itl_ns")]
    Itl,
    /// Time per output token of a request, ns.
    #[serde(skip)]
    Tpot,
    /// 1 / TPOT of a request, tokens a second.
    #[serde(skip)]
    DecodeSpeed,
    /// End-to-end latency, ns: generate.
    #[serde(rename = "e2e_ns")]
    E2e,
    /// Tokens / E2E of a request, tokens a second.
    #[serde(skip)]
    OutputThroughput,
    /// Time of an iteration, ns: a criterion bench.
    #[serde(rename = "time_ns")]
    Time,
    /// Time per output token of all users together, ns, 1 / system output throughput: a level of a load run.
    #[serde(rename = "system_token_ns")]
    SystemToken,
    /// P90 of the time to first token, ns, of the requests of a window of load.
    #[serde(rename = "ttft_p90_ns")]
    TtftP90,
    /// P90 of the inter-token latency, ns, of all gaps of a window of load.
    #[serde(rename = "itl_p90_ns")]
    ItlP90,
    /// P90, over the users of a window of load, of each one's longest gap, ns.
    #[serde(rename = "longest_gap_ns")]
    LongestGap,
}

impl Metric {
    /// Those that one request has. Reports index by their order, which is that of the variants.
    pub const OF_REQUESTS: [Self; 6] =
        [Self::Ttft, Self::Itl, Self::Tpot, Self::DecodeSpeed, Self::E2e, Self::OutputThroughput];
    /// Those that can be limited for the requests of a load.
    pub const LIMITED: [Self; 4] = [Self::Ttft, Self::Itl, Self::Tpot, Self::E2e];

    /// The one that a case is gated by.
    pub fn gated(case: Case) -> Self {
        match case.phase() {
            Phase::Prefill => Self::Ttft,
            Phase::Decode => Self::Itl,
            Phase::Generate => Self::E2e,
            Phase::Bench => Self::Time,
        }
    }

    /// Its name in files and flags, where the unit is known.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Itl => "itl",
            Self::Tpot => "tpot",
            Self::DecodeSpeed => "decode_speed",
            Self::E2e => "e2e",
            Self::OutputThroughput => "output_throughput",
            Self::Time => "time",
            Self::SystemToken => "system_token",
            Self::TtftP90 => "ttft_p90",
            Self::ItlP90 => "itl_p90",
            Self::LongestGap => "longest_gap",
        }
    }

    /// Its name in files that says its unit: `ttft_ns` for `ns`, `tokens_per_s` for any.
    pub fn key_in(self, unit: &str) -> String {
        match self {
            Self::DecodeSpeed => "tokens_per_s".into(),
            Self::OutputThroughput => "output_tokens_per_s".into(),
            time => format!("{}_{unit}", time.key()),
        }
    }

    /// As a person reads it where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Itl => "ITL",
            Self::Tpot => "TPOT",
            Self::DecodeSpeed => "decode speed",
            Self::E2e => "E2E",
            Self::OutputThroughput => "output throughput",
            Self::Time => "time",
            Self::SystemToken => "system time per token",
            Self::TtftP90 => "TTFT P90",
            Self::ItlP90 => "ITL P90",
            Self::LongestGap => "longest gap",
        }
    }

    /// As a person reads it.
    pub fn long(self) -> &'static str {
        match self {
            Self::Ttft => "time to first token",
            Self::Itl => "inter-token latency",
            Self::Tpot => "time per output token",
            Self::DecodeSpeed => "decode speed of a user",
            Self::E2e => "end-to-end latency",
            Self::OutputThroughput => "output throughput of a request",
            other => other.short(),
        }
    }

    /// Whether it is tokens a second, of which more is better, and not nanoseconds.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::DecodeSpeed | Self::OutputThroughput)
    }

    /// Its value of one request, nanoseconds or tokens a second. `None` where it is undefined, for ITL, and for what is of many requests.
    pub fn value<'a>(self, request: impl Into<Times<'a>>) -> Option<f64> {
        let times = request.into();
        match self {
            Self::Ttft => times.ttft_ns(),
            Self::Tpot => times.tpot_ns(),
            Self::DecodeSpeed => per_second(1.0, times.tpot_ns()?),
            Self::E2e => times.e2e_ns(),
            Self::OutputThroughput => per_second(times.tokens as f64, times.e2e_ns()?),
            _ => None,
        }
    }

    /// All its values of one request: each gap, or the one that there is.
    pub fn of<'a>(self, request: impl Into<Times<'a>>) -> Vec<f64> {
        let times = request.into();
        if self == Self::Itl { times.gaps_ns().collect() } else { self.value(times).into_iter().collect() }
    }

    /// A decode sample is one gap: no first token and no request, so no TTFT and no E2E.
    pub fn of_step(self, step_ns: f64) -> Option<f64> {
        match self {
            Self::Itl | Self::Tpot => Some(step_ns),
            Self::DecodeSpeed => per_second(1.0, step_ns),
            _ => None,
        }
    }
}
