//! Every picture as PNG, drawn from its SVG with the font that comes with this program: no font or renderer of the system.

use anyhow::{Context, Result};
use resvg::{tiny_skia, usvg};

use super::svg::chart_name;
use super::{File, PICTURES};
use crate::report::inputs::Inputs;
use crate::report::model::{Chart, Report};
use crate::report::svg;

/// DejaVu Sans, the letters and signs that pictures use. See the licence beside it.
const REGULAR: &[u8] = include_bytes!("../../../assets/DejaVuSans-subset.ttf");
const BOLD: &[u8] = include_bytes!("../../../assets/DejaVuSans-Bold-subset.ttf");

/// Pixels for each px, for screens with fine dots.
const SCALE: f32 = 2.0;

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    let mut options = usvg::Options { font_family: "DejaVu Sans".into(), ..usvg::Options::default() };
    options.fontdb_mut().load_font_data(REGULAR.to_vec());
    options.fontdb_mut().load_font_data(BOLD.to_vec());
    report.charts().map(|chart| file(chart, &options)).collect()
}

fn file(chart: &Chart, options: &usvg::Options<'_>) -> Result<File> {
    let name = format!("{PICTURES}/{}.png", chart_name(chart));
    let cannot = || format!("{name}: the picture cannot be drawn; use --format svg");
    let tree = usvg::Tree::from_str(&svg::file(chart), options).with_context(cannot)?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    let mut pixels = tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32).with_context(cannot)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    let bytes = pixels.encode_png().with_context(cannot)?;
    Ok(File { name, bytes })
}
