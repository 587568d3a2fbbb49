//! The whole report as one page that needs nothing else: no network, and no script, and no colour to be read.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::templates;
use crate::inputs::Inputs;
use crate::model::{Report, Tone};
use crate::svg;

const STYLE: &str = include_str!("../../templates/page.css");

pub fn export(inputs: &Inputs, report: &Report) -> Result<String> {
    // SVG of this program's own making, every text in it escaped.
    let charts: BTreeMap<&str, String> = report.charts().map(|chart| (chart.id.as_str(), svg::inline(chart))).collect();
    let style = format!("{STYLE}{}", svg::STYLE);
    let outcome = report.headline.as_ref().map(|headline| headline.outcome);
    let sides = inputs.paired.iter().flat_map(|run| [("base", &run.base.build), ("head", &run.head.build)]);
    let commits = sides.filter_map(|(name, build)| Some((name, inputs.commit_link(build)?)));
    let values = json!({
        "commits": commits.collect::<Vec<_>>(),
        "report": report.for_pages(),
        "tone": outcome.map(Tone::of),
        "charts": charts,
        "style": style,
    });
    templates::render("page.html.jinja", include_str!("../../templates/page.html.jinja"), values)
}
