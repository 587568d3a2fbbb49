//! The axes of a chart: where a value lies in the picture, and the lines and labels around it.

use std::fmt::Write as _;

use super::ticks::{Tick, ticks_of, unit_words};
use super::{MARGIN, WIDTH, fitting, px, text, width_of};
use crate::model::{Axis, Chart, Layer};

/// Height of the part with data, px, where the axis up has numbers.
const PLOT_HEIGHT: f64 = 250.0;
/// Height of one named line, px.
const LANE_HEIGHT: f64 = 42.0;
/// Size of the labels of axes, px.
const LABEL_SIZE: f64 = 15.0;
/// The widest part that names of lanes take.
const MOST_NAMES: f64 = 0.42;

#[derive(Debug, Clone)]
pub struct Frame {
    /// Height of the picture, px.
    pub height: f64,
    /// Edges of the part with data, px.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    x: Scale,
    y: Scale,
}

#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// Around all values, and never without any length.
    fn of(axis: &Axis, values: &[f64]) -> Self {
        if !axis.logarithmic || !axis.names.is_empty() {
            let (low, high) = range(axis, values);
            return Self { low, high, logarithmic: false };
        }
        let logs: Vec<f64> =
            values.iter().chain(&axis.includes).filter(|value| **value > 0.0).map(|v| v.ln()).collect();
        let even = Axis { includes: None, from_zero: false, ..axis.clone() };
        let (low, high) = range(&even, &logs);
        Self { low: low.exp(), high: high.exp(), logarithmic: true }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end.
    fn share(self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(-0.1, 1.1)
    }
}

impl Frame {
    /// Room for the axes and layers of `chart`, below a legend of `legend_height` px.
    pub fn of(chart: &Chart, legend_height: f64) -> Self {
        let (xs, ys) = values(chart);
        let (x, y) = (Scale::of(&chart.x, &xs), Scale::of(&chart.y, &ys));
        let labels: Vec<String> = match chart.y.names.is_empty() {
            true => ticks_of(&chart.y, y.low, y.high).into_iter().map(|tick| tick.label).collect(),
            false => chart.y.names.clone(),
        };
        let widest = labels.iter().map(|label| width_of(label, LABEL_SIZE)).fold(0.0, f64::max);
        // The label stands beside numbers, and above names.
        let (beside, above) = match (chart.y.label.is_empty(), chart.y.names.is_empty()) {
            (true, _) => (0.0, 0.0),
            (false, true) => (26.0, 0.0),
            (false, false) => (0.0, 16.0),
        };
        let left = (widest + beside + MARGIN + 8.0).clamp(60.0, WIDTH * MOST_NAMES);
        let top = 44.0 + legend_height + above;
        let lanes = chart.y.names.len() as f64 * LANE_HEIGHT;
        let bottom = top + if chart.y.names.is_empty() { PLOT_HEIGHT } else { lanes };
        Self { height: bottom + 62.0, left, right: WIDTH - MARGIN - 6.0, top, bottom, x, y }
    }

    /// Where `x` lies, px from the left.
    pub fn x(&self, x: f64) -> f64 {
        self.left + self.x.share(x) * (self.right - self.left)
    }

    /// Where `y` lies, px from the top.
    pub fn y(&self, y: f64) -> f64 {
        self.bottom - self.y.share(y) * (self.bottom - self.top)
    }

    /// `y` at the nearest place within the part with data, px from the top.
    pub fn y_within(&self, y: f64) -> f64 {
        self.y(y).clamp(self.top, self.bottom)
    }

    /// What is labelled of the axis across: where labels would touch, the later one is left out.
    fn across(&self, chart: &Chart) -> Vec<Tick> {
        let mut free = f64::NEG_INFINITY;
        let mut shown = ticks_of(&chart.x, self.x.low, self.x.high);
        shown.retain(|tick| {
            let (x, half) = (self.x(tick.at), width_of(&tick.label, LABEL_SIZE) / 2.0);
            let fits = x - half >= free;
            if fits {
                free = x + half + 6.0;
            }
            fits
        });
        shown
    }

    pub fn draw(&self, chart: &Chart) -> String {
        let mut svg = String::new();
        // Words stand on the spans of a timeline: a line through them would strike them out.
        let top = if has_spans(chart) { self.bottom - 6.0 } else { self.top };
        for tick in self.across(chart) {
            let x = px(self.x(tick.at));
            let line = if tick.at == 0.0 && chart.x.names.is_empty() { "ig-zero" } else { "ig-grid" };
            let _ = writeln!(
                svg,
                "<line class=\"{line}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"/><text class=\"ig-tick ig-middle\" x=\"{x}\" \
                 y=\"{}\">{}</text>",
                px(top),
                px(self.bottom),
                px(self.bottom + 21.0),
                text(&tick.label)
            );
        }
        svg += &self.up(chart);
        let _ = writeln!(
            svg,
            "<line class=\"ig-axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>",
            px(self.left),
            px(self.right),
            px(self.bottom)
        );
        let label = labelled(&chart.x, self.x);
        let middle = px((self.left + self.right) / 2.0);
        let _ = writeln!(
            svg,
            "<text class=\"ig-label ig-middle\" x=\"{middle}\" y=\"{}\">{}</text>",
            px(self.bottom + 48.0),
            text(&label)
        );
        svg
    }

    fn up(&self, chart: &Chart) -> String {
        let mut svg = String::new();
        let spans = has_spans(chart);
        let named = chart.y.names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
        let numbers = ticks_of(&chart.y, self.y.low, self.y.high).into_iter().map(|tick| (tick.at, tick.label));
        let lines: Vec<(f64, String)> = if chart.y.names.is_empty() { numbers.collect() } else { named.collect() };
        for (at, label) in lines {
            let y = self.y(at);
            if !spans {
                let (left, right, y) = (px(self.left), px(self.right), px(y));
                let _ = write!(svg, "<line class=\"ig-grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>");
            }
            let (x, y) = (px(self.left - 8.0), px(y + 5.0));
            let label = fitting(&label, self.left - 8.0, LABEL_SIZE);
            let _ = writeln!(svg, "<text class=\"ig-tick ig-end\" x=\"{x}\" y=\"{y}\">{label}</text>");
        }
        let label = labelled(&chart.y, self.y);
        if !chart.y.names.is_empty() {
            let (x, y) = (px(self.left - 8.0), px(self.top - 3.0));
            let _ = writeln!(svg, "<text class=\"ig-label ig-end\" x=\"{x}\" y=\"{y}\">{}</text>", text(&label));
        } else if !label.is_empty() {
            let y = px((self.top + self.bottom) / 2.0);
            let _ = writeln!(
                svg,
                "<text class=\"ig-label ig-middle\" transform=\"rotate(-90 20 {y})\" x=\"20\" y=\"{y}\">{}</text>",
                text(&label)
            );
        }
        svg
    }
}

fn has_spans(chart: &Chart) -> bool {
    chart.layers.iter().any(|layer| matches!(layer, Layer::Span { .. }))
}

/// What an axis shows, with its unit and scale: `ITL, ms`, `users, log scale`.
fn labelled(axis: &Axis, scale: Scale) -> String {
    if !axis.names.is_empty() {
        return axis.label.clone();
    }
    let unit = unit_words(axis.unit, scale.low, scale.high);
    let kind = if scale.logarithmic { "log scale" } else { "" };
    [axis.label.as_str(), unit, kind].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn values(chart: &Chart) -> (Vec<f64>, Vec<f64>) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for layer in &chart.layers {
        match layer {
            Layer::Line { points, .. } | Layer::Points { points, .. } => {
                xs.extend(points.iter().map(|point| point.x));
                ys.extend(points.iter().map(|point| point.y));
            }
            Layer::Interval { from, to, y, .. } | Layer::Span { from, to, y, .. } => {
                xs.extend([*from, *to]);
                ys.push(*y);
            }
            Layer::Limit { x, y, .. } => {
                xs.push(*x);
                ys.extend(*y);
            }
            Layer::Area { stretches, .. } => {
                xs.extend(stretches.iter().map(|stretch| stretch.x));
                ys.extend(stretches.iter().flat_map(|stretch| [stretch.low, stretch.high]));
            }
            Layer::Zone { .. } => {}
        }
    }
    (xs, ys)
}

/// The ends of an axis: around all values, and never without any length.
fn range(axis: &Axis, values: &[f64]) -> (f64, f64) {
    if !axis.names.is_empty() {
        return (-0.5, axis.names.len() as f64 - 0.5);
    }
    let finite = || values.iter().chain(&axis.includes).copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return (0.0, 1.0);
    }
    let (low, high) = if axis.from_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
    let length = high - low;
    let margin = if length > 0.0 { length * 0.05 } else { high.abs().max(1.0) * 0.1 };
    let below = if axis.from_zero && low >= 0.0 { 0.0 } else { low - margin };
    let above = if axis.from_zero && high <= 0.0 && length > 0.0 { 0.0 } else { high + margin };
    (below, above)
}
