//! The axes of a chart: where a value lies in the picture, and the lines and labels around it.

use std::fmt::Write as _;

use super::ticks::{ticks, unit_words};
use super::{WIDTH, px, text, width_of};
use crate::report::model::{Axis, Chart, Layer};

/// Height of the part with data, px, where the axis up has numbers.
const PLOT_HEIGHT: f64 = 320.0;
/// Height of one named line, px.
const LANE_HEIGHT: f64 = 44.0;
/// Size of the labels of axes, px.
const LABEL_SIZE: f64 = 15.0;

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Height of the picture, px.
    pub height: f64,
    /// Edges of the part with data, px.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    /// Room for the axes and layers of `chart`, below a legend of `legend_height` px.
    pub fn of(chart: &Chart, legend_height: f64) -> Self {
        let (xs, ys) = values(chart);
        let (x, y) = (range(&chart.x, &xs), range(&chart.y, &ys));
        let labels: Vec<String> = match chart.y.names.is_empty() {
            true => ticks(chart.y.unit, y.0, y.1).into_iter().map(|tick| tick.label).collect(),
            false => chart.y.names.clone(),
        };
        let widest = labels.iter().map(|label| width_of(label, LABEL_SIZE)).fold(0.0, f64::max);
        let title = if chart.y.label.is_empty() { 0.0 } else { 26.0 };
        let left = (widest + title + 22.0).clamp(60.0, WIDTH * 0.4);
        let top = 44.0 + legend_height;
        let lanes = chart.y.names.len() as f64 * LANE_HEIGHT;
        let bottom = top + if chart.y.names.is_empty() { PLOT_HEIGHT } else { lanes };
        Self { height: bottom + 62.0, left, right: WIDTH - 24.0, top, bottom, x, y }
    }

    /// Where `x` lies, px from the left.
    pub fn x(&self, x: f64) -> f64 {
        let share = (x - self.x.0) / (self.x.1 - self.x.0);
        self.left + share.clamp(-0.1, 1.1) * (self.right - self.left)
    }

    /// Where `y` lies, px from the top.
    pub fn y(&self, y: f64) -> f64 {
        let share = (y - self.y.0) / (self.y.1 - self.y.0);
        self.bottom - share.clamp(-0.1, 1.1) * (self.bottom - self.top)
    }

    /// Lines, labels and units.
    pub fn draw(&self, chart: &Chart) -> String {
        let mut svg = String::new();
        for tick in ticks(chart.x.unit, self.x.0, self.x.1) {
            let x = px(self.x(tick.at));
            let line = if tick.at == 0.0 && chart.x.names.is_empty() { "ig-zero" } else { "ig-grid" };
            let _ = writeln!(
                svg,
                "<line class=\"{line}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"/><text class=\"ig-tick ig-middle\" x=\"{x}\" \
                 y=\"{}\">{}</text>",
                px(self.top),
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
        // Words stand on the lanes of a timeline: a line through them would strike them out.
        let spans = chart.layers.iter().any(|layer| matches!(layer, Layer::Span { .. }));
        let named = chart.y.names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
        let numbers = ticks(chart.y.unit, self.y.0, self.y.1).into_iter().map(|tick| (tick.at, tick.label));
        let lines: Vec<(f64, String)> = if chart.y.names.is_empty() { numbers.collect() } else { named.collect() };
        for (at, label) in lines {
            let y = self.y(at);
            if !spans {
                let (left, right, y) = (px(self.left), px(self.right), px(y));
                let _ = write!(svg, "<line class=\"ig-grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>");
            }
            let (x, y) = (px(self.left - 8.0), px(y + 5.0));
            let _ = writeln!(svg, "<text class=\"ig-tick ig-end\" x=\"{x}\" y=\"{y}\">{}</text>", text(&label));
        }
        let label = labelled(&chart.y, self.y);
        if !label.is_empty() {
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

/// What an axis shows, with its unit: `ITL, ms`.
fn labelled(axis: &Axis, range: (f64, f64)) -> String {
    if !axis.names.is_empty() {
        return axis.label.clone();
    }
    let unit = unit_words(axis.unit, range.0, range.1);
    if unit.is_empty() { axis.label.clone() } else { format!("{}, {unit}", axis.label) }
}

/// Every value of all layers.
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
        }
    }
    (xs, ys)
}

/// The ends of an axis: around all values, and never without any length.
fn range(axis: &Axis, values: &[f64]) -> (f64, f64) {
    if !axis.names.is_empty() {
        return (-0.5, axis.names.len() as f64 - 0.5);
    }
    let finite = || values.iter().copied().filter(|value| value.is_finite());
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
