//! The axes of a chart: where a value lies in the picture, and the lines and labels around it.

use super::{MARGIN, WIDTH, cut, path, px, text, width_of};
use crate::model::{Axis, Chart, Marks, Unit};
use crate::units::{listed, trimmed};

/// Height of the part with data, px, where the axis up has numbers.
const PLOT_HEIGHT: f64 = 250.0;
/// Height of one named lane, px.
const LANE_HEIGHT: f64 = 42.0;
/// Size of the labels of axes, px.
const LABEL_SIZE: f64 = 15.0;
/// The widest part that names of lanes take.
const MOST_NAMES: f64 = 0.42;
/// About this many round numbers fit.
const ABOUT: f64 = 6.0;

pub struct Frame {
    /// Height of the picture, px.
    pub height: f64,
    /// Edges of the part with data, px.
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Scale,
    up: Scale,
}

impl Frame {
    /// Room for the axes and layers of `chart` below `top`, px.
    pub fn of(chart: &Chart, top: f64) -> Self {
        let (xs, ys): (Vec<f64>, Vec<f64>) = chart.layers.iter().flat_map(|layer| corners(&layer.marks)).unzip();
        let (across, up) = (Scale::of(&chart.x, &xs), Scale::of(&chart.y, &ys));
        let widest = up.ticks.iter().map(|(_, label)| width_of(label, LABEL_SIZE)).fold(0.0, f64::max);
        let lanes = chart.y.names.len() as f64;
        // The label stands beside numbers, and above names.
        let (beside, top, height) =
            if lanes > 0.0 { (0.0, top + 16.0, lanes * LANE_HEIGHT) } else { (26.0, top, PLOT_HEIGHT) };
        let left = (widest + beside + MARGIN + 8.0).clamp(60.0, WIDTH * MOST_NAMES);
        let bottom = top + height;
        Self { height: bottom + 62.0, left, right: WIDTH - MARGIN - 6.0, top, bottom, across, up }
    }

    /// Where `x` lies, px from the left.
    pub fn x(&self, x: f64) -> f64 {
        self.left + self.across.share(x) * (self.right - self.left)
    }

    /// Where `y` lies, px from the top.
    pub fn y(&self, y: f64) -> f64 {
        self.bottom - self.up.share(y) * (self.bottom - self.top)
    }

    pub fn draw(&self, chart: &Chart) -> String {
        let Self { left, right, top, bottom, .. } = *self;
        // Words stand on spans: lines through them would strike them out.
        let has_lines = !chart.layers.iter().any(|layer| matches!(layer.marks, Marks::Span { .. }));
        let line = |class: &str, from: (f64, f64), to: (f64, f64)| {
            path(class, &format!("M{} {}L{} {}", px(from.0), px(from.1), px(to.0), px(to.1)), "")
        };
        let mut svg = String::new();
        // Where labels would touch, the later one is left out.
        let mut free = f64::NEG_INFINITY;
        for (at, label) in &self.across.ticks {
            let (x, half) = (self.x(*at), width_of(label, LABEL_SIZE) / 2.0);
            if x - half < free {
                continue;
            }
            free = x + half + 6.0;
            let from = if has_lines { top } else { bottom - 6.0 };
            svg += &line(if *at == 0.0 { "ig-axis" } else { "ig-grid" }, (x, from), (x, bottom));
            svg += &text("ig-tick ig-middle", x, bottom + 21.0, label);
        }
        for (at, label) in &self.up.ticks {
            let y = self.y(*at);
            if has_lines {
                svg += &line("ig-grid", (left, y), (right, y));
            }
            svg += &text("ig-tick ig-end", left - 8.0, y + 5.0, &cut(label, left - 8.0, LABEL_SIZE));
        }
        svg += &line("ig-axis", (left, bottom), (right, bottom));
        svg += &text("ig-label ig-middle", (left + right) / 2.0, bottom + 48.0, &self.across.label);
        if !chart.y.names.is_empty() {
            return svg + &text("ig-label ig-end", left - 8.0, top - 3.0, &self.up.label);
        }
        let label = text("ig-label ig-middle", 0.0, 0.0, &self.up.label);
        svg + &format!("<g transform=\"translate(20 {}) rotate(-90)\">{label}</g>\n", px((top + bottom) / 2.0))
    }
}

/// Every place that a layer has to have room for.
fn corners(marks: &Marks) -> Vec<(f64, f64)> {
    match marks {
        Marks::Line(places) | Marks::MarkedLine(places) | Marks::Points(places) => {
            places.iter().map(|place| (place.x, place.y)).collect()
        }
        Marks::Area(stretches) => stretches.iter().flat_map(|at| [(at.x, at.low), (at.x, at.high)]).collect(),
        Marks::Span { from, to, y, .. } => vec![(*from, *y), (*to, *y)],
    }
}

struct Scale {
    /// The ends; of a logarithmic axis their logarithms.
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Where something is written at the axis, in its own unit, and what.
    ticks: Vec<(f64, String)>,
    /// What it shows, with its unit and scale: `ITL, ms`, `users, log scale`.
    label: String,
}

impl Scale {
    /// Around all values, and never without any length.
    fn of(axis: &Axis, values: &[f64]) -> Self {
        if !axis.names.is_empty() {
            let ticks = axis.names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect();
            let high = axis.names.len() as f64 - 0.5;
            return Self { low: -0.5, high, logarithmic: false, ticks, label: axis.label.clone() };
        }
        let (low, high) = ends(axis, values);
        let (from, to) = if axis.logarithmic { (low.exp(), high.exp()) } else { (low, high) };
        let (size, unit) = written_in(axis.unit, from.abs().max(to.abs()));
        let kind = if axis.logarithmic { "log scale" } else { "" };
        let parts = [&axis.label, unit, kind].into_iter().filter(|part| !part.is_empty());
        let label = listed(parts);
        let places = match (axis.marks.is_empty(), axis.logarithmic) {
            (false, _) => axis.marks.iter().map(|at| at / size).collect(),
            // 1, 2 and 5 times the powers of ten.
            (_, true) => (-15..=18).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power))).collect(),
            (_, false) => round_numbers(axis.unit, from / size, to / size),
        };
        let ticks = places.into_iter().map(|at| (at * size, short(at, axis.unit)));
        let ticks = ticks.filter(|(at, _)| (from..=to).contains(at)).collect();
        Self { low, high, logarithmic: axis.logarithmic, ticks, label }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end.
    fn share(&self, value: f64) -> f64 {
        let at = if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        ((at - self.low) / (self.high - self.low)).clamp(-0.1, 1.1)
    }
}

/// The ends of an axis around all values, with some room beyond; of a logarithmic one their logarithms.
fn ends(axis: &Axis, values: &[f64]) -> (f64, f64) {
    let zero = axis.from_zero.then_some(0.0);
    let all = values.iter().copied().chain(zero);
    let all = all.map(|value| if axis.logarithmic { value.ln() } else { value }).filter(|value| value.is_finite());
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
    if low > high {
        return (0.0, 1.0);
    }
    let margin = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.1 };
    let (begins, ends) = (axis.from_zero && low == 0.0, axis.from_zero && high == 0.0 && low < high);
    (if begins { 0.0 } else { low - margin }, if ends { 0.0 } else { high + margin })
}

/// What a value is divided by before it is written, and the name of what it is then in.
fn written_in(unit: Unit, reach: f64) -> (f64, &'static str) {
    let of = |steps: &[(f64, &'static str)]| *steps.iter().rfind(|(size, _)| reach >= *size).unwrap_or(&steps[0]);
    match unit {
        Unit::Ns => of(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        Unit::Bytes | Unit::BytesMore => {
            of(&[(1.0, "B"), (1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")])
        }
        Unit::Change | Unit::Fraction => (0.01, "%"),
        Unit::TokensPerS | Unit::Tokens | Unit::Times | Unit::RequestsPerS => (1.0, unit.name()),
        _ => (1.0, ""),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn round_numbers(unit: Unit, from: f64, to: f64) -> Vec<f64> {
    let least = if matches!(unit, Unit::Count | Unit::Tokens) { 1.0 } else { 0.0 };
    let rough = ((to - from) / ABOUT).max(least);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999).unwrap_or(10.0);
    let step = factor * power;
    if !(step.is_finite() && step > 0.0) {
        return Vec::new();
    }
    let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// As few digits as tell it apart from its neighbours.
fn short(value: f64, unit: Unit) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 6 };
    let sign = if unit == Unit::Change && value > 0.0 { "+" } else { "" };
    format!("{sign}{}", trimmed(&format!("{value:.digits$}")))
}
