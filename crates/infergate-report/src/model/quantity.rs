//! A number with its unit: kept as it is, shown in one way everywhere.

use crate::units;
use infergate_receipts::{Metric, TargetMetric};

/// A number of any type, or none.
pub trait Amount {
    fn amount(self) -> Option<f64>;
}

macro_rules! amounts {
    ($($number:ty)*) => {
        $(impl Amount for $number {
            fn amount(self) -> Option<f64> {
                Some(self as f64)
            }
        })*
    };
}

amounts! { f64 u64 u32 usize i64 i32 }

impl<A: Amount> Amount for Option<A> {
    fn amount(self) -> Option<f64> {
        self.and_then(Amount::amount)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    Ns,
    /// Nanoseconds with so many more digits than usual.
    PreciseNs(usize),
    TokensPerS,
    Bytes,
    BytesMore,
    BytesPerRun,
    Tokens,
    Count,
    Many,
    CountMore,
    Plain,
    /// A change as a fraction of base: 0.02 is 2 % more.
    Change,
    /// A part of a whole: 0.02 is 2 %.
    Fraction,
    Times,
    BytesPerS,
    PerS,
    FlopsPerS,
    RequestsPerS,
    /// Money, in whatever unit the prices were given.
    Price,
}

impl Unit {
    pub fn of(metric: Metric) -> Self {
        if metric.is_rate() { Self::TokensPerS } else { Self::Ns }
    }

    /// That of a target's metric, and how many of it are one of the metric's own.
    pub fn of_target(metric: TargetMetric) -> (Self, f64) {
        match metric {
            TargetMetric::Of(metric) => (Self::of(metric), if metric.is_rate() { 1.0 } else { 1e6 }),
            TargetMetric::CvPercent | TargetMetric::FailedPercent => (Self::Fraction, 0.01),
            TargetMetric::AllocationsPerToken => (Self::Count, 1.0),
            TargetMetric::PeakLiveBytes => (Self::Bytes, 1.0),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ns | Self::PreciseNs(_) => "ns",
            Self::TokensPerS => "tokens/s",
            Self::Bytes | Self::BytesMore => "bytes",
            Self::BytesPerRun => "bytes/run",
            Self::Tokens => "tokens",
            Self::Count | Self::CountMore | Self::Many => "count",
            Self::Plain => "number",
            Self::Change | Self::Fraction => "fraction",
            Self::Times => "times",
            Self::BytesPerS => "bytes/s",
            Self::PerS => "1/s",
            Self::FlopsPerS => "flop/s",
            Self::RequestsPerS => "requests/s",
            Self::Price => "price",
        }
    }

    /// `value` as a person reads it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Ns => units::duration(value),
            Self::PreciseNs(more) => units::precise_duration(value, more),
            Self::TokensPerS => units::tokens_per_s(value),
            Self::BytesMore if value > 0.0 => format!("+{}", units::bytes(value)),
            Self::Bytes | Self::BytesMore => units::bytes(value),
            Self::CountMore => format!("{value:+.0}"),
            Self::BytesPerRun => format!("{} a run", units::bytes(value)),
            Self::Many if value >= 1e6 => units::scaled(value / 1e6, &["million", "billion"], 0),
            Self::Tokens | Self::Count | Self::Many => format!("{value:.0}"),
            Self::Plain => units::number(value),
            Self::Change => units::change(value),
            Self::Fraction => units::percent(value),
            Self::Times => units::times(value),
            Self::BytesPerS => format!("{}/s", units::bytes(value)),
            Self::PerS => units::scaled(value, &["/s", "k/s", "M/s", "G/s"], 0),
            Self::FlopsPerS => units::scaled(value / 1e6, &["MFLOP/s", "GFLOP/s", "TFLOP/s"], 0),
            Self::RequestsPerS => format!("{} requests/s", units::number(value)),
            Self::Price => units::price(value),
        }
    }
}

/// A number with its unit, and where it lies if that is known.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    pub value: f64,
    pub unit: Unit,
    /// The ends of its interval, in the same unit.
    pub interval: Option<(f64, f64)>,
}

impl Quantity {
    /// A number. `None` for one that is none: such a number does not exist.
    pub fn new(value: f64, unit: Unit) -> Option<Self> {
        value.is_finite().then_some(Self { value, unit, interval: None })
    }

    /// The same with an interval, where both ends are numbers.
    pub fn within(self, ends: Option<(f64, f64)>) -> Self {
        Self { interval: ends.filter(|(low, high)| low.is_finite() && high.is_finite()), ..self }
    }

    /// As a person reads it: `121 ms`, `+1.7 % (+0.2 % to +3.1 %)`.
    pub fn shown(&self) -> String {
        let show = |value| self.unit.show(value);
        let value = show(self.value);
        match self.interval.map(|(low, high)| units::from_to(show, low, high)) {
            // Ends that differ behind the digits shown say nothing.
            Some(interval) if interval != value => format!("{value} ({interval})"),
            _ => value,
        }
    }
}
