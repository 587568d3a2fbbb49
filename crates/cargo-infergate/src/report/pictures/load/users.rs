//! Each figure over the number of users, a line a scenario and target; and all figures of the only one together.

use super::{itl, left_out, lines, quartiles};
use crate::load::judge::load;
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::load::users::SHOWN;
use crate::report::words::load as words;
use crate::report::words::pages::capital;

/// Series whose bands can be told apart in one picture.
const MOST_BANDS: usize = 2;

/// A chart a figure, and one of all figures.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let each = SHOWN.iter().filter_map(|metric| match metric {
        Metric::Itl => itl::chart(&view),
        metric => of_metric(&view, *metric),
    });
    each.chain(together(&view)).collect()
}

fn of_metric(view: &View<'_>, metric: Metric) -> Option<Chart> {
    let lines = lines(view, Unit::of(metric), |point| point.spread(metric).p50);
    let series = view.series();
    let (mut layers, mut band) = (Vec::new(), "");
    if series.len() <= MOST_BANDS && !lines.is_empty() {
        band = ", the band reaches from P25 to P75";
        for (n, series) in series.into_iter().enumerate() {
            let name = format!("{}P25 to P75", view.own_name(series));
            layers.extend(quartiles(view, series, metric, name, Look::nth(n)));
        }
    }
    layers.extend(lines);
    let drawn = layers.iter().any(|layer| matches!(layer, Layer::Line { .. }));
    drawn.then(|| Chart {
        id: format!("load-{}", metric.key().replace('_', "-")),
        title: capital(metric.long()),
        caption: format!("The line joins medians{band}. {}{}", words::direction(metric), left_out(view)),
        x: view.axis(),
        y: Axis::new(metric.short(), Unit::of(metric)).zero(),
        layers,
    })
}

/// All figures of the only series, each against its value at the lowest load.
fn together(view: &View<'_>) -> Option<Chart> {
    let [series] = view.series()[..] else { return None };
    let line = view.line(series);
    let first = *line.first()?;
    let layers = SHOWN.iter().enumerate().filter_map(|(n, metric)| {
        let base = first.spread(*metric).p50.filter(|base| *base > 0.0)?;
        let points = line.iter().filter_map(|point| {
            let value = point.spread(*metric).p50.filter(|value| *value > 0.0)?;
            let hover = format!(
                "{} at {}: {}, {} that at {}",
                metric.short(),
                load(&point.arrivals),
                Unit::of(*metric).show(value),
                Unit::Times.show(value / base),
                load(&first.arrivals)
            );
            Some(Place { x: point.load(), y: value / base, hover })
        });
        let points: Vec<Place> = points.collect();
        (points.len() > 1).then(|| Layer::Line {
            name: metric.short().into(),
            points,
            look: Look::nth(n),
            marked: true,
        })
    });
    let layers: Vec<Layer> = layers.collect();
    (!layers.is_empty()).then(|| Chart {
        id: "load-all".into(),
        title: "All figures together".into(),
        caption: words::together(&load(&first.arrivals)),
        x: view.axis(),
        y: Axis::new(format!("against {}", load(&first.arrivals)), Unit::Times).logarithmic(),
        layers,
    })
}
