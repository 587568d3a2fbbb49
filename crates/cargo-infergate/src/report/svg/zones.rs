//! Zones of the axis up: below the lines of the axes and everything else.

use std::fmt::Write as _;

use super::frame::Frame;
use super::{px, text, width_of};
use crate::report::model::{Chart, Layer};

/// Size of the names, px.
const SIZE: f64 = 14.0;
/// Height that a name takes, px.
const ROOM: f64 = 18.0;

/// All zones of a chart, each with its name at the right where it does not touch another one's.
pub fn draw(chart: &Chart, frame: &Frame) -> String {
    let mut svg = String::new();
    let mut named: Vec<f64> = Vec::new();
    for layer in &chart.layers {
        let Layer::Zone { name, from, to, look } = layer else { continue };
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
        // In the zone, or above one that is too low for it.
        let place = if bottom - top >= ROOM { top + 14.0 } else { top - 4.0 };
        let is_free = named.iter().all(|other| (other - place).abs() >= ROOM);
        if is_free && place > frame.top + 10.0 && !is_hidden(top, bottom, *from, *to) {
            let x = frame.right - 6.0;
            let _ = writeln!(
                svg,
                "<text class=\"ig-legend ig-end\" x=\"{}\" y=\"{}\">{}</text>",
                px(x.max(frame.left + width_of(name, SIZE))),
                px(place),
                text(name)
            );
            named.push(place);
        }
    }
    svg
}

/// Whether all of a zone lies beyond the chart.
fn is_hidden(top: f64, bottom: f64, from: f64, to: f64) -> bool {
    bottom - top < 0.5 && from != to
}
