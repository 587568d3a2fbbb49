//! The figures of a request of a load run that are shown as percentiles.

use crate::load::summary::LevelSummary;
use crate::load::values::Values;
use crate::report::model::Unit;

/// Gaps up to this look instant.
pub const INSTANT_NS: f64 = 20e6;
/// Gaps above this look sluggish.
pub const SLUGGISH_NS: f64 = 70e6;
/// A first token up to here seems to be there at once.
const AT_ONCE_NS: f64 = 200e6;
/// Behind this it is waited for.
pub const WAITED_FOR_NS: f64 = 300e6;

/// How a wait for the first token feels.
pub fn wait(ttft_ns: f64) -> &'static str {
    match ttft_ns {
        ns if ns <= AT_ONCE_NS => "at once",
        ns if ns <= WAITED_FOR_NS => "nearly at once",
        _ => "waited for",
    }
}

/// How a stream with this gap feels to its reader.
pub fn smoothness(itl_ns: f64) -> &'static str {
    match itl_ns {
        ns if ns < INSTANT_NS => "instant",
        ns if ns <= SLUGGISH_NS => "acceptable",
        _ => "sluggish",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Ttft,
    Itl,
    Tpot,
    E2e,
    DecodeSpeed,
    OutputThroughput,
}

impl Metric {
    /// All of them, by number.
    pub const ALL: [Self; 6] =
        [Self::Ttft, Self::Itl, Self::Tpot, Self::E2e, Self::DecodeSpeed, Self::OutputThroughput];

    pub fn id(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Itl => "itl",
            Self::Tpot => "tpot",
            Self::E2e => "e2e",
            Self::DecodeSpeed => "decode_speed",
            Self::OutputThroughput => "output_throughput",
        }
    }

    /// Its name where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Itl => "ITL",
            Self::Tpot => "TPOT",
            Self::E2e => "E2E",
            Self::DecodeSpeed => "decode speed",
            Self::OutputThroughput => "output throughput",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "time to first token",
            Self::Itl => "inter-token latency",
            Self::Tpot => "time per output token",
            Self::E2e => "end-to-end latency",
            Self::DecodeSpeed => "decode speed of a user",
            Self::OutputThroughput => "output throughput of a request",
        }
    }

    pub fn unit(self) -> Unit {
        if self.more_is_better() { Unit::TokensPerS } else { Unit::Ns }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Self::DecodeSpeed | Self::OutputThroughput)
    }

    /// Which way is better, in a sentence.
    pub fn direction(self) -> &'static str {
        if self.more_is_better() { "More is better." } else { "Less is better." }
    }

    /// Whether values of one request depend on each other.
    pub fn is_of_gaps(self) -> bool {
        self == Self::Itl
    }

    pub fn values(self, summary: &LevelSummary) -> &Values {
        match self {
            Self::Ttft => &summary.ttft_ns,
            Self::Itl => &summary.itl_ns,
            Self::Tpot => &summary.tpot_ns,
            Self::E2e => &summary.e2e_ns,
            Self::DecodeSpeed => &summary.decode_tokens_per_s,
            Self::OutputThroughput => &summary.output_tokens_per_s,
        }
    }
}
