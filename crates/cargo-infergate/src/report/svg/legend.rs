//! What each kind of mark means, in rows below the heading.

use std::fmt::Write as _;

use super::{MARGIN, WIDTH, fitting, marks, px, width_of};
use crate::report::model::{Chart, Layer, Look};

/// Size of the names, px.
const SIZE: f64 = 14.0;
/// Height of a row, px.
const ROW: f64 = 24.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    Line,
    PlainLine,
    Dots,
    Points,
    Interval,
    Limit,
    Span,
    Area,
    Zone,
    Level,
}

/// The legend and its height, px; nothing where only one series needs no name.
pub fn draw(chart: &Chart) -> (String, f64) {
    let mut entries: Vec<(&str, Sign, Look)> = Vec::new();
    for layer in &chart.layers {
        let (name, sign, look) = match layer {
            Layer::Line { name, look, marked: true, .. } => (name, Sign::Line, *look),
            Layer::Line { name, look, .. } => (name, Sign::PlainLine, *look),
            Layer::Points { name, points, look } if marks::are_dots(points) => (name, Sign::Dots, *look),
            Layer::Points { name, look, .. } => (name, Sign::Points, *look),
            Layer::Interval { name, look, .. } => (name, Sign::Interval, *look),
            Layer::Limit { name, look, .. } => (name, Sign::Limit, *look),
            Layer::Span { name, look, .. } => (name, Sign::Span, *look),
            Layer::Area { name, look, .. } => (name, Sign::Area, *look),
            Layer::Zone { name, from, to, look } if from == to => (name, Sign::Level, *look),
            Layer::Zone { name, look, .. } => (name, Sign::Zone, *look),
        };
        if !name.is_empty() && entries.iter().all(|(known, ..)| known != name) {
            entries.push((name, sign, look));
        }
    }
    if entries.is_empty() {
        return (String::new(), 0.0);
    }
    let (mut x, mut y) = (MARGIN, 54.0);
    let mut svg = String::new();
    for (name, sign, look) in entries {
        let width = width_of(name, SIZE) + 52.0;
        if x + width > WIDTH && x > MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        svg += &symbol(sign, look, x, y - 5.0);
        let name = fitting(name, WIDTH - 2.0 * MARGIN - 32.0, SIZE);
        let _ = writeln!(svg, "<text class=\"ig-legend\" x=\"{}\" y=\"{}\">{name}</text>", px(x + 32.0), px(y));
        x += width;
    }
    (svg, y - 54.0 + ROW)
}

fn symbol(sign: Sign, look: Look, x: f64, y: f64) -> String {
    let line = |class: &str| {
        let dashed = if look.dashed && matches!(sign, Sign::Line | Sign::PlainLine) { " ig-dashed" } else { "" };
        let (from, to, y) = (px(x), px(x + 24.0), px(y));
        format!("<path class=\"{class} ig-s{}{dashed}\" d=\"M{from} {y}H{to}\"/>", look.colour)
    };
    let mark = || {
        let outline = marks::shape(look.shape, x + 12.0, y, 4.5);
        format!("<path class=\"ig-mark ig-f{}\" d=\"{outline}\"/>", look.colour)
    };
    match sign {
        Sign::Line => line("ig-line") + &mark(),
        Sign::PlainLine => line("ig-line"),
        Sign::Points => mark(),
        Sign::Dots => format!("<path class=\"{}\" d=\"M{} {}h.1\"/>", marks::dots_class(look), px(x + 12.0), px(y)),
        Sign::Interval => line("ig-interval"),
        Sign::Level => line("ig-zone-end"),
        Sign::Span | Sign::Area | Sign::Zone => {
            let class = match sign {
                Sign::Area => "ig-area",
                Sign::Zone => "ig-zone",
                _ => "ig-span",
            };
            let (left, top) = (px(x), px(y - 7.0));
            format!("<rect class=\"{class} ig-b{}\" x=\"{left}\" y=\"{top}\" width=\"24\" height=\"14\"/>", look.colour)
        }
        Sign::Limit => {
            let (middle, top, bottom) = (px(x + 12.0), px(y - 8.0), px(y + 8.0));
            format!("<path class=\"ig-limit ig-s{}\" d=\"M{middle} {top}V{bottom}\"/>", look.colour)
        }
    }
}
