//! Every picture as an SVG file.

use anyhow::Result;

use super::{Exporter, File, PICTURES};
use crate::report::inputs::Inputs;
use crate::report::model::{Chart, Report};
use crate::report::svg;

/// `pictures/NAME.svg`.
pub struct Svg;

impl Exporter for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn about(&self) -> &'static str {
        "pictures"
    }

    fn is_usual(&self) -> bool {
        true
    }

    fn export(&self, _: &Inputs, report: &Report) -> Result<Vec<File>> {
        Ok(pictures(report))
    }
}

/// A file a chart.
pub fn pictures(report: &Report) -> Vec<File> {
    let file = |chart| File::text(format!("{PICTURES}/{}.svg", chart_name(chart)), svg::file(chart));
    report.charts().map(file).collect()
}

/// The name of a picture's file.
pub fn chart_name(chart: &Chart) -> String {
    infergate_core::receipt::file_word(&chart.id)
}
