//! Round numbers along an axis, and the unit they are written in.

use crate::model::{Axis, Unit};

/// A place on an axis, and what is written there.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// In the axis's own unit.
    pub at: f64,
    /// In the unit of [`unit_words`].
    pub label: String,
}

/// About this many fit.
const ABOUT: f64 = 6.0;
/// More labels than this on a logarithmic axis are powers of ten alone.
const MOST_BETWEEN_POWERS: usize = 10;

/// What a value is divided by before it is written, and the name of what it is then in.
fn written_in(unit: Unit, reach: f64) -> (f64, &'static str) {
    let of = |steps: &[(f64, &'static str)]| {
        steps.iter().rev().find(|(size, _)| reach >= *size).or(steps.first()).copied().unwrap_or((1.0, ""))
    };
    match unit {
        Unit::Ns => of(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        Unit::Bytes | Unit::BytesMore => {
            of(&[(1.0, "B"), (1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")])
        }
        Unit::BytesPerRun => (1.0, "B a run"),
        Unit::Change | Unit::Fraction => (0.01, "%"),
        Unit::TokensPerS => (1.0, "tokens/s"),
        Unit::Tokens => (1.0, "tokens"),
        Unit::Times => (1.0, "times"),
        Unit::BytesPerS => (1e9, "GB/s"),
        Unit::FlopsPerS => (1e9, "GFLOP/s"),
        Unit::RequestsPerS => (1.0, "requests/s"),
        Unit::Count | Unit::CountMore | Unit::Many | Unit::Plain | Unit::Price => (1.0, ""),
    }
}

/// The name of the unit of the labels of [`ticks`]; empty for a count.
pub fn unit_words(unit: Unit, low: f64, high: f64) -> &'static str {
    written_in(unit, low.abs().max(high.abs())).1
}

/// What is labelled of an axis from `low` to `high`: its marks, powers of ten and what stands between them, or round numbers.
pub fn ticks_of(axis: &Axis, low: f64, high: f64) -> Vec<Tick> {
    let (size, _) = written_in(axis.unit, low.abs().max(high.abs()));
    let tick = |at: f64| Tick { at, label: short(at / size) };
    if !axis.marks.is_empty() {
        return axis.marks.iter().copied().filter(|at| (low..=high).contains(at)).map(tick).collect();
    }
    if !axis.logarithmic {
        return ticks(axis.unit, low, high);
    }
    let powers = || (-15..=18).map(|power| 10_f64.powi(power) * size);
    let within = |at: &f64| (low..=high).contains(at);
    let many: Vec<f64> = powers().flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * power)).filter(within).collect();
    if many.len() <= MOST_BETWEEN_POWERS {
        return many.into_iter().map(tick).collect();
    }
    powers().filter(within).map(tick).collect()
}

/// As few digits as tell it apart from its neighbours.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 6 };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Round numbers from `low` to `high`.
fn ticks(unit: Unit, low: f64, high: f64) -> Vec<Tick> {
    let (size, _) = written_in(unit, low.abs().max(high.abs()));
    let (from, to) = (low / size, high / size);
    let whole = matches!(unit, Unit::Count | Unit::Tokens);
    let step = round_step((to - from) / ABOUT, whole);
    if !(step.is_finite() && step > 0.0 && from.is_finite() && to.is_finite()) {
        return Vec::new();
    }
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    // 2.5 needs a digit more than its power of ten says.
    let digits = if (step * 10_f64.powi(digits as i32)).fract().abs() > 1e-6 { digits + 1 } else { digits };
    let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
    (first..=last.min(first.saturating_add(40)))
        .map(|n| {
            let value = n as f64 * step;
            let label = format!("{value:.digits$}");
            let zero = label.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
            let plus = if unit == Unit::Change && value > 0.0 { "+" } else { "" };
            Tick { at: value * size, label: if zero { "0".into() } else { format!("{plus}{label}") } }
        })
        .collect()
}

/// The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `rough`.
fn round_step(rough: f64, whole: bool) -> f64 {
    let rough = if whole { rough.max(1.0) } else { rough };
    let power = 10_f64.powf(rough.log10().floor());
    let factors: &[f64] = if whole { &[1.0, 2.0, 5.0, 10.0] } else { &[1.0, 2.0, 2.5, 5.0, 10.0] };
    let found = factors.iter().find(|factor| **factor * power >= rough * 0.999_999);
    found.copied().unwrap_or(10.0) * power
}
