//! Zones of the axis up: below the lines of the axes and everything else.

use std::fmt::Write as _;

use super::frame::Frame;
use super::px;
use crate::report::model::{Chart, Layer};

/// All zones of a chart. Their names are in the legend: lines would run through them here.
pub fn draw(chart: &Chart, frame: &Frame) -> String {
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
