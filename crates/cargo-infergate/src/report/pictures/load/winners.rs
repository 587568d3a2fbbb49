//! How long answers of each length take from each target, and where two of them cross.

use super::MOST_SERIES;
use crate::load::judge::load;
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::{Pair, Point};
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::words::load as words;

/// Levels with a picture: more would be scrolled past.
const MOST_LEVELS: usize = 8;
/// A crossing so many times beyond the longest answer is not drawn.
const FARTHEST: f64 = 8.0;

/// A chart a level in which two targets cross; the table says who is faster where none do.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs).filter(View::has_targets) else { return Vec::new() };
    let levels = view.digest.points.chunk_by(|one, other| one.level == other.level);
    levels.filter_map(|points| chart(&view, points)).take(MOST_LEVELS).collect()
}

/// A target's line: its value at no token, and its slope.
fn line(point: &Point) -> Option<(f64, f64)> {
    Some((point.spread(Metric::Ttft).p50?, point.spread(Metric::Tpot).p50?))
}

fn chart(view: &View<'_>, points: &[Point]) -> Option<Chart> {
    let first = points.first()?;
    let longest = f64::from(view.receipt.scenarios.get(first.scenario)?.output_tokens);
    let crossings: Vec<(&Pair, f64, (f64, f64))> =
        view.digest.pairs.iter().filter_map(|pair| crossing(view, pair, first)).collect();
    let near =
        crossings.iter().map(|(_, tokens, (_, high))| tokens.max(*high)).filter(|end| *end <= FARTHEST * longest);
    let reach = near.fold(longest, |reach: f64, end| reach.max(1.1 * end));
    let known = points.iter().enumerate().filter_map(|(n, point)| Some((n, point, line(point)?)));
    let lines: Vec<Layer> = known
        .take(MOST_SERIES)
        .map(|(n, point, (start, slope))| {
            let name = point.target.map_or_else(String::new, |target| view.target(target));
            let at = |tokens: f64| {
                let y = start + tokens * slope;
                let hover = format!("{name}, {tokens:.0} tokens: {}", Unit::Ns.show(y));
                Place { x: tokens, y, hover }
            };
            let ends = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| at((share * reach).round()));
            Layer::Line { name: name.clone(), points: ends.into(), look: Look::nth(n), marked: true }
        })
        .collect();
    if lines.len() < 2 || crossings.is_empty() {
        return None;
    }
    let mut layers = lines;
    for (pair, tokens, (from, to)) in crossings {
        if tokens <= reach {
            let (name, hover) = ("same time for both".to_owned(), words::crossing(tokens, (from, to)));
            let y = view
                .digest
                .points
                .get(pair.points.0)
                .and_then(line)
                .map_or(0.0, |(start, slope)| start + tokens * slope);
            let look = Look::ink();
            layers.push(Layer::Limit { name, x: tokens, y: None, hover: hover.clone(), look });
            let name = "95 % interval".to_owned();
            layers.push(Layer::Interval { name, from, to: to.min(reach), y, hover, look });
        }
    }
    let scenario = if view.has_scenarios() { format!("{}, ", view.scenario(first.scenario)) } else { String::new() };
    let place = format!("{scenario}{}", load(&first.arrivals));
    Some(Chart {
        id: format!("load-winners-{}-{}", view.scenario_id(first.scenario), first.level + 1),
        title: format!("Time of an answer by its length: {place}"),
        caption: "TTFT + n x TPOT of the medians. The lower line is the faster target; where two cross, both take the same time.".into(),
        x: Axis::new("answer", Unit::Tokens).zero(),
        y: Axis::new("time", Unit::Ns).zero(),
        layers,
    })
}

/// Where two targets of the level of `first` cross, if they are sure to.
fn crossing<'a>(view: &View<'a>, pair: &'a Pair, first: &Point) -> Option<(&'a Pair, f64, (f64, f64))> {
    let point = view.digest.points.get(pair.points.0)?;
    let (tokens, ends) = pair.winners.crossing.filter(|_| point.level == first.level)?;
    Some((pair, tokens, ends))
}
