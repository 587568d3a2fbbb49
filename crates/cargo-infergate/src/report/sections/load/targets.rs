//! Several targets side by side, each median with the interval it lies in.

use super::found;
use crate::receipt::Metric;
use crate::receipt::TargetRecord;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::{View, median_cell};
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// Answers whose mean lengths differ by more than this part are not compared by E2E without a word.
const SAME_LENGTH: f64 = 0.05;

/// A line a target of each level.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(View::has_targets)?;
    let own = vec![
        Column::numbers("measured", "requests"),
        Column::numbers("failed", "failed").about("of the requests that were not given up when the run ended"),
        Column::numbers("output_tokens", "answer").about("output tokens, in the mean"),
        Column::numbers("ttft", "TTFT P50").about("with the 95 % interval of the median"),
        Column::numbers("decode_speed", "decode speed P50").about("1 / TPOT of each request"),
        Column::numbers("e2e", "E2E P50"),
    ];
    let mut table = Table::new("targets", "", [view.columns(), own].concat());
    for point in &view.digest.points {
        let why = if point.window.is_none() { Missing::NoWindow } else { Missing::NotMeasured };
        let mut cells = view.cells(point);
        cells.extend([
            Cell::count(point.measured),
            failed_cell(point),
            Cell::number(point.output_tokens, Unit::Plain, why),
            median_cell(point, Metric::Ttft),
            median_cell(point, Metric::DecodeSpeed),
            median_cell(point, Metric::E2e),
        ]);
        table.row(cells);
    }
    let section =
        Section::new("load_targets", "Targets side by side").with(Block::Said(words::ABOUT_TARGETS.into())).with(table);
    let findings: Vec<Finding> = view.scenarios().filter_map(|(scenario, _)| lengths(&view, scenario)).collect();
    Some(if findings.is_empty() { section } else { section.with(Block::Findings(findings)) })
}

/// The part of requests that failed.
pub fn failed_cell(point: &Point) -> Cell {
    let ended = point.issued.saturating_sub(point.cancelled);
    let share = (ended > 0).then(|| point.failed() as f64 / ended as f64);
    let tone = if point.failed() > 0 { Tone::Bad } else { Tone::Plain };
    Cell::number(share, Unit::Fraction, Missing::NotMeasured).toned(tone)
}

/// What has to be known before targets are compared.
pub fn caveats(view: &View<'_>) -> Vec<Finding> {
    if view.has_targets() { unequal(view).into_iter().chain(shared(view)).collect() } else { Vec::new() }
}

/// Targets that serve models of different names: their weights can be others, or of another format.
fn unequal(view: &View<'_>) -> Option<Finding> {
    let names = view.receipt.targets.iter().map(|target| match target {
        TargetRecord::Endpoint { model, .. } => model.as_str(),
        TargetRecord::Local { engine, .. } => engine.model.as_str(),
    });
    let mut models: Vec<&str> = names.collect();
    models.sort_unstable();
    models.dedup();
    let figures = [("models".to_owned(), models.len() as f64, Unit::Count)];
    if models.len() < 2 { None } else { found(Tone::Warn, words::unequal(&models), &figures) }
}

/// Targets on the client's machine: they slow each other.
fn shared(view: &View<'_>) -> Option<Finding> {
    let targets = view.receipt.targets.iter();
    let here = targets.filter(|target| match target {
        TargetRecord::Endpoint { url, .. } => is_of_this_machine(url),
        TargetRecord::Local { .. } => true,
    });
    let (here, cores) = (here.count(), view.receipt.machine.logical_cores);
    let figures = [("targets".to_owned(), here as f64, Unit::Count), ("cores".to_owned(), cores as f64, Unit::Count)];
    if here < 2 || cores == 0 { None } else { found(Tone::Warn, words::shared(here, cores), &figures) }
}

/// Whether an address leads back to where it is asked from.
fn is_of_this_machine(url: &str) -> bool {
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = place.split(['/', '?', '#']).next().unwrap_or_default();
    ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own))
}

/// Targets whose answers have different lengths, in the first level where they do.
fn lengths(view: &View<'_>, scenario: usize) -> Option<Finding> {
    let of_scenario = || view.digest.points.iter().filter(|point| point.scenario == scenario);
    let levels: Vec<usize> = of_scenario().map(|point| point.level).collect();
    levels.into_iter().find_map(|level| {
        let points: Vec<&Point> = of_scenario().filter(|point| point.level == level).collect();
        let [(short, least), (long, most)] = super::ends(&points, |point| point.output_tokens)?;
        if most <= least * (1.0 + SAME_LENGTH) {
            return None;
        }
        let (short, long) = (view.place_name(short), view.place_name(long));
        let said = words::lengths((&long, most), (&short, least));
        let name = |place: &str| format!("output tokens of {place}");
        found(Tone::Warn, said, &[(name(&long), most, Unit::Plain), (name(&short), least, Unit::Plain)])
    })
}
