//! The layers of a chart.

use std::fmt::Write as _;

use super::frame::Frame;
use super::{px, text, width_of};
use crate::model::{Chart, Layer, Look, Place, Shape, Stretch};

/// Size of the words on a span, px.
const SPAN_SIZE: f64 = 14.0;
/// Half the height of a span, px.
const HALF_SPAN: f64 = 13.0;

pub fn draw(layer: &Layer, chart: &Chart, frame: &Frame) -> String {
    match layer {
        Layer::Line { points, look, marked, .. } => line(points, *look, *marked, frame),
        Layer::Points { points, look, .. } if are_dots(points) => dots(points, *look, frame),
        Layer::Points { points, look, .. } => {
            // Many points are drawn smaller, so that they do not hide each other.
            let size = if points.len() > 100 { 2.6 } else { 4.5 };
            points.iter().map(|point| mark(point, *look, size, frame)).collect()
        }
        Layer::Interval { from, to, y, hover, look, .. } => {
            let (from, to, y) = (frame.x(*from), frame.x(*to), frame.y(*y));
            let path =
                format!("M{0} {1}V{2}M{0} {y}H{3}M{3} {1}V{2}", px(from), px(y - 8.0), px(y + 8.0), px(to), y = px(y));
            format!("<path class=\"ig-interval ig-s{}\" d=\"{path}\">{}</path>\n", look.colour, title(hover))
        }
        Layer::Span { label, from, to, y, hover, look, .. } => {
            // Behind a span of several, its label would seem to be the last one's.
            let room = if is_alone(chart, *y) { frame.right } else { 0.0 };
            span(label, (frame.x(*from), frame.x(*to)), frame.y(*y), hover, *look, room)
        }
        Layer::Area { name, stretches, look } => area(name, stretches, *look, frame),
        // They lie below the axes.
        Layer::Zone { .. } => String::new(),
        Layer::Limit { x, y, hover, look, .. } => {
            let x = frame.x(*x);
            let (top, bottom) = y.map_or((frame.top, frame.bottom), |y| (frame.y(y) - 15.0, frame.y(y) + 15.0));
            format!(
                "<line class=\"ig-limit ig-s{}\" x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\">{}</line>\n",
                look.colour,
                px(top),
                px(bottom),
                title(hover),
                x = px(x)
            )
        }
    }
}

/// Whether nothing is said of any point.
pub fn are_dots(points: &[Place]) -> bool {
    points.iter().all(|point| point.hover.is_empty())
}

/// How such points look: what is no disc is a square.
pub fn dots_class(look: Look) -> String {
    let square = if look.shape == Shape::Circle { "" } else { " ig-square" };
    format!("ig-dots{square} ig-s{}", look.colour)
}

/// One path of lines so short that their ends are all that is seen: a file of a tenth of the size.
fn dots(points: &[Place], look: Look, frame: &Frame) -> String {
    let mut path = String::new();
    for point in points {
        let _ = write!(path, "M{} {}h.1", px(frame.x(point.x)), px(frame.y(point.y)));
    }
    format!("<path class=\"{}\" d=\"{path}\"/>\n", dots_class(look))
}

fn is_alone(chart: &Chart, lane: f64) -> bool {
    chart.layers.iter().filter(|layer| matches!(layer, Layer::Span { y, .. } if *y == lane)).count() == 1
}

fn line(points: &[Place], look: Look, marked: bool, frame: &Frame) -> String {
    let mut path = String::new();
    for (at, point) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if at == 0 { "M" } else { "L" }, px(frame.x(point.x)), px(frame.y(point.y)));
    }
    let dashed = if look.dashed { " ig-dashed" } else { "" };
    let mut svg = format!("<path class=\"ig-line ig-s{}{dashed}\" d=\"{path}\"/>\n", look.colour);
    if marked {
        // Many points are drawn smaller, so that the line is still seen.
        let size = if points.len() > 60 { 2.8 } else { 4.5 };
        svg.extend(points.iter().map(|point| mark(point, look, size, frame)));
    }
    svg
}

/// Along the upper ends, and back along the lower ones.
fn area(name: &str, stretches: &[Stretch], look: Look, frame: &Frame) -> String {
    if stretches.len() < 2 {
        return String::new();
    }
    let upper = stretches.iter().map(|stretch| (stretch.x, stretch.high));
    let lower = stretches.iter().rev().map(|stretch| (stretch.x, stretch.low));
    let mut path = String::new();
    for (at, (x, y)) in upper.chain(lower).enumerate() {
        let _ = write!(path, "{}{} {}", if at == 0 { "M" } else { "L" }, px(frame.x(x)), px(frame.y(y)));
    }
    format!("<path class=\"ig-area ig-b{}\" d=\"{path}Z\">{}</path>\n", look.colour, title(name))
}

fn mark(point: &Place, look: Look, size: f64, frame: &Frame) -> String {
    let (x, y) = (frame.x(point.x), frame.y(point.y));
    format!(
        "<path class=\"ig-mark ig-f{}\" d=\"{}\">{}</path>\n",
        look.colour,
        shape(look.shape, x, y, size),
        title(&point.hover)
    )
}

/// The outline of a shape around a place.
pub fn shape(shape: Shape, x: f64, y: f64, size: f64) -> String {
    let at = |x: f64, y: f64| format!("{} {}", px(x), px(y));
    match shape {
        Shape::Circle => {
            format!("M{}a{s} {s} 0 1 0 {d} 0a{s} {s} 0 1 0 -{d} 0Z", at(x - size, y), s = px(size), d = px(2.0 * size))
        }
        Shape::Square => format!("M{}H{}V{}H{}Z", at(x - size, y - size), px(x + size), px(y + size), px(x - size)),
        Shape::Diamond => {
            let size = size * 1.5;
            format!("M{}L{}L{}L{}Z", at(x, y - size), at(x + size, y), at(x, y + size), at(x - size, y))
        }
        Shape::Triangle => {
            let size = size * 1.2;
            format!("M{}L{}L{}Z", at(x, y - size), at(x + size, y + size), at(x - size, y + size))
        }
    }
}

/// A bar with its label on it, or behind it where there is room up to `room`, or only where it is pointed at.
fn span(label: &str, (from, to): (f64, f64), y: f64, hover: &str, look: Look, room: f64) -> String {
    let width = (to - from).max(1.0);
    let mut svg = format!(
        "<rect class=\"ig-span ig-b{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>\n",
        look.colour,
        px(from),
        px(y - HALF_SPAN),
        px(width),
        px(2.0 * HALF_SPAN),
        title(hover)
    );
    let needed = width_of(label, SPAN_SIZE) + 12.0;
    let place = if needed <= width {
        Some(from + 7.0)
    } else if to + needed <= room {
        Some(to + 7.0)
    } else {
        None
    };
    if let Some(x) = place {
        let _ =
            writeln!(svg, "<text class=\"ig-span-label\" x=\"{}\" y=\"{}\">{}</text>", px(x), px(y + 5.0), text(label));
    }
    svg
}

fn title(hover: &str) -> String {
    if hover.is_empty() { String::new() } else { format!("<title>{}</title>", text(hover)) }
}

/// All zones of a chart. Their names are in the legend: lines would run through them here.
pub fn zones(chart: &Chart, frame: &Frame) -> String {
    let mut svg = String::new();
    for layer in &chart.layers {
        let Layer::Zone { from, to, look, .. } = layer else { continue };
        let (top, bottom) = (frame.y_within(*to), frame.y_within(*from));
        let (left, width) = (px(frame.left), px(frame.right - frame.left));
        if bottom - top >= 0.5 {
            let (y, height) = (px(top), px(bottom - top));
            let _ = writeln!(
                svg,
                "<rect class=\"ig-zone ig-b{}\" x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>",
                look.colour
            );
        }
        for end in [*from, *to] {
            let y = frame.y(end);
            // An end beyond the chart, and the axis itself, are no ends of a zone.
            if end.is_finite() && y > frame.top && y < frame.bottom {
                let (right, y) = (px(frame.right), px(y));
                let _ = writeln!(svg, "<path class=\"ig-zone-end ig-s{}\" d=\"M{left} {y}H{right}\"/>", look.colour);
            }
        }
    }
    svg
}
