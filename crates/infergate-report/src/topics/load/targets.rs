//! Several targets side by side, each median with the interval it lies in.

use infergate_core::printable::first_of;

use super::{MOST_SCENARIOS, ends};
use crate::inputs::Inputs;
use crate::load::{Metric, Point, View, direction, median_cell};
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Place, Section, Tone, Unit};
use infergate_receipts::TargetRecord;

const ABOUT: &str =
    "Requests went to the targets in turn, in the same minutes. Each median stands with its 95 % interval.";
/// Answers whose mean lengths differ by more than this part are not compared by E2E without a word.
const SAME_LENGTH: f64 = 0.05;
/// Models in a sentence.
const MOST_NAMED: usize = 4;
/// Lanes of more targets and loads than this cannot be read.
const MOST_LANES: usize = 24;
/// What pictures compare.
const DRAWN: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(View::has_targets)?;
    let own = vec![
        Column::numbers("measured", "requests"),
        Column::numbers("failed", "failed").about("of the requests that were not given up when the run ended"),
        Column::numbers("output_tokens", "answer").about("output tokens, in the mean"),
        Column::numbers("ttft", "TTFT P50").about("with the 95 % interval of the median"),
        Column::numbers("decode_speed", "decode speed P50").about("1 / TPOT of each request"),
        Column::numbers("e2e", "E2E P50"),
    ];
    let table = view.table("targets", "", own, |point| {
        let why = if point.window.is_none() { Missing::NoWindow } else { Missing::NotMeasured };
        vec![
            Cell::count(point.measured),
            failed(point),
            Cell::number(point.output_tokens, Unit::Plain, why),
            median_cell(point, Metric::Ttft),
            median_cell(point, Metric::DecodeSpeed),
            median_cell(point, Metric::E2e),
        ]
    });
    let findings: Vec<Finding> = view.scenarios().filter_map(|(scenario, _)| lengths(&view, scenario)).collect();
    let section = Section::new("load_targets", "Targets side by side").with([ABOUT]).with([table]);
    Some(section.with([findings]).with(charts(&view)))
}

fn failed(point: &Point) -> Cell {
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
    if models.len() < 2 {
        return None;
    }
    let named = first_of(&models, MOST_NAMED, ", ");
    let said =
        format!("Not the same model everywhere, or not in one format: {named}. Part of each difference is the model's");
    Some(Finding::new(Tone::Warn, said))
}

/// Targets on the client's machine: they slow each other.
fn shared(view: &View<'_>) -> Option<Finding> {
    let targets = view.receipt.targets.iter();
    let here = targets.filter(|target| match target {
        TargetRecord::Endpoint { url, .. } => is_of_this_machine(url),
        TargetRecord::Local { .. } => true,
    });
    let (here, cores) = (here.count(), view.receipt.machine.logical_cores);
    let said = format!(
        "{here} targets and the client shared the {cores} cores of one machine: with more than one user each slowed the others"
    );
    (here >= 2 && cores > 0).then(|| Finding::new(Tone::Warn, said))
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
        let [(short, least), (long, most)] = ends(&points, |point| point.output_tokens)?;
        if most <= least * (1.0 + SAME_LENGTH) {
            return None;
        }
        let (short, long) = (view.place_name(short), view.place_name(long));
        let said = format!(
            "Answers differ in length: {} tokens ({long}) and {} ({short}), so compare E2E by the crossing points and not by itself",
            Unit::Plain.show(most),
            Unit::Plain.show(least)
        );
        Some(Finding::new(Tone::Warn, said))
    })
}

/// A chart a scenario and figure, where there are no lines over several loads that say the same.
fn charts(view: &View<'_>) -> Vec<Chart> {
    if view.series().into_iter().any(|series| view.line(series).len() > 1) {
        return Vec::new();
    }
    let scenarios = view.scenarios().take(MOST_SCENARIOS);
    scenarios.flat_map(|(scenario, _)| DRAWN.iter().filter_map(move |metric| chart(view, scenario, *metric))).collect()
}

fn chart(view: &View<'_>, scenario: usize, metric: Metric) -> Option<Chart> {
    let of_scenario = view.digest.points.iter().filter(|point| point.scenario == scenario);
    let known: Vec<(&Point, f64)> =
        of_scenario.filter_map(|point| Some((point, point.spread(metric).p50?))).take(MOST_LANES).collect();
    if known.len() < 2 {
        return None;
    }
    let name = |point: &Point| format!("{}, {}", view.target_name(point), point.arrivals.name());
    let mut layers = Vec::new();
    let mut points = Vec::new();
    // The first stands on top.
    for (at, (point, p50)) in known.iter().rev().enumerate() {
        let y = at as f64;
        let shown = Unit::of(metric).show(*p50);
        if let Some((from, to)) = point.spread(metric).p50_within {
            let ends = format!("{} to {}", Unit::of(metric).show(from), Unit::of(metric).show(to));
            let hover = format!("{}: {shown} ({ends})", name(point));
            let look = Look::nth(point.target.unwrap_or(0)).dashed(false);
            layers.push(Layer::Interval { name: "95 % interval".into(), from, to, y, hover, look });
        }
        points.push(Place { x: *p50, y, hover: format!("{}: {shown}", name(point)) });
    }
    layers.push(Layer::Points { name: "P50".into(), points, look: Look::ink() });
    let lanes = known.iter().rev().map(|(point, _)| name(point)).collect();
    Some(Chart {
        id: format!("load-targets-{}-{}", view.scenario_id(scenario), metric.key().replace('_', "-")),
        title: view.titled(scenario, metric.long()),
        caption: format!("Medians with their 95 % intervals. {}", direction(metric)),
        x: Axis::new(metric.short(), Unit::of(metric)).zero(),
        y: Axis::named("target and load", lanes),
        layers,
    })
}
