//! Every picture as an SVG file.

use anyhow::Result;

use super::{File, PICTURES};
use crate::report::inputs::Inputs;
use crate::report::model::{Chart, Report};
use crate::report::svg;

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    Ok(pictures(report))
}

pub fn pictures(report: &Report) -> Vec<File> {
    let file = |chart| File::text(format!("{PICTURES}/{}.svg", chart_name(chart)), svg::file(chart));
    report.charts().map(file).collect()
}

pub fn chart_name(chart: &Chart) -> String {
    infergate_core::receipt::file_word(&chart.id)
}
