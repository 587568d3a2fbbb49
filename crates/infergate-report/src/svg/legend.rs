//! What each kind of mark means, in rows below the heading.

use std::fmt::Write as _;

use super::{MARGIN, WIDTH, fitting, marks, px, width_of};
use crate::model::{Chart, Layer};

/// Size of the names, px.
const SIZE: f64 = 14.0;
/// Height of a row, px.
const ROW: f64 = 24.0;

/// The legend and its height, px; nothing where only one series needs no name.
pub fn draw(chart: &Chart) -> (String, f64) {
    let mut entries: Vec<(&str, &Layer)> = Vec::new();
    for layer in &chart.layers {
        let (name, _) = layer.named();
        if !name.is_empty() && entries.iter().all(|(known, _)| *known != name) {
            entries.push((name, layer));
        }
    }
    if entries.is_empty() {
        return (String::new(), 0.0);
    }
    let (mut x, mut y) = (MARGIN, 54.0);
    let mut svg = String::new();
    for (name, layer) in entries {
        let width = width_of(name, SIZE) + 52.0;
        if x + width > WIDTH && x > MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        svg += &symbol(layer, x, y - 5.0);
        let name = fitting(name, WIDTH - 2.0 * MARGIN - 32.0, SIZE);
        let _ = writeln!(svg, "<text class=\"ig-legend\" x=\"{}\" y=\"{}\">{name}</text>", px(x + 32.0), px(y));
        x += width;
    }
    (svg, y - 54.0 + ROW)
}

fn symbol(layer: &Layer, x: f64, y: f64) -> String {
    let (_, look) = layer.named();
    let line = |class: &str| {
        let dashed = if look.dashed && matches!(layer, Layer::Line { .. }) { " ig-dashed" } else { "" };
        let (from, to, y) = (px(x), px(x + 24.0), px(y));
        format!("<path class=\"{class} ig-s{}{dashed}\" d=\"M{from} {y}H{to}\"/>", look.colour)
    };
    let mark = || {
        let outline = marks::shape(look.shape, x + 12.0, y, 4.5);
        format!("<path class=\"ig-mark ig-f{}\" d=\"{outline}\"/>", look.colour)
    };
    let filled = |class: &str| {
        let (left, top) = (px(x), px(y - 7.0));
        format!("<rect class=\"{class} ig-b{}\" x=\"{left}\" y=\"{top}\" width=\"24\" height=\"14\"/>", look.colour)
    };
    match layer {
        Layer::Line { marked: true, .. } => line("ig-line") + &mark(),
        Layer::Line { .. } => line("ig-line"),
        Layer::Points { points, .. } if marks::are_dots(points) => {
            format!("<path class=\"{}\" d=\"M{} {}h.1\"/>", marks::dots_class(look), px(x + 12.0), px(y))
        }
        Layer::Points { .. } => mark(),
        Layer::Interval { .. } => line("ig-interval"),
        Layer::Zone { from, to, .. } if from == to => line("ig-zone-end"),
        Layer::Zone { .. } => filled("ig-zone"),
        Layer::Area { .. } => filled("ig-area"),
        Layer::Span { .. } => filled("ig-span"),
        Layer::Limit { .. } => {
            let (middle, top, bottom) = (px(x + 12.0), px(y - 8.0), px(y + 8.0));
            format!("<path class=\"ig-limit ig-s{}\" d=\"M{middle} {top}V{bottom}\"/>", look.colour)
        }
    }
}
