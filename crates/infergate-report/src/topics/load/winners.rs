//! Which of two targets is faster by the length of the answer, and where the two cross.

use super::MOST_SERIES;
use crate::inputs::Inputs;
use crate::load::{Metric, Pair, Point, View, Winners, median_cell};
use crate::model::{Axis, Cell, Chart, Column, Layer, Look, Missing, Place, Row, Section, Table, Unit};

const ABOUT: &str = "An answer of n tokens takes TTFT + (n - 1) x TPOT. Of two targets one can be the faster for short answers and the other \
                     for long ones; where they cross, both take the same time.";
/// No target is shown to be faster.
const NEITHER: &str = "neither: intervals overlap";
/// Levels with a picture: more would be scrolled past.
const MOST_LEVELS: usize = 8;
/// A crossing so many times beyond the longest answer is not drawn.
const FARTHEST: f64 = 8.0;

/// A line each two targets of a level, and a chart a level in which two of them cross.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(|view| !view.digest.pairs.is_empty())?;
    let own = vec![
        Column::words("short", "faster for short answers"),
        Column::numbers("tokens", "up to")
            .about("output tokens, with the 95 % interval by resampling stretches of the run"),
        Column::words("long", "faster beyond"),
        Column::numbers("short_ttft", "TTFT P50 of the first").detail(),
        Column::numbers("long_ttft", "of the second").detail(),
        Column::numbers("short_tpot", "TPOT P50 of the first").detail(),
        Column::numbers("long_tpot", "of the second").detail(),
    ];
    let mut table = Table::new("pairs", "", [view.level_columns(), own].concat()).on_terminal();
    for pair in &view.digest.pairs {
        table.rows.extend(points(&view, pair).map(|points| row(&view, &pair.winners, points)));
    }
    let levels = view.digest.points.chunk_by(|one, other| one.level == other.level);
    let charts = levels.filter_map(|points| chart(&view, points)).take(MOST_LEVELS);
    if view.digest.pairs_left_out > 0 {
        table = table.noted(format!("{} more pairs of targets were not compared.", view.digest.pairs_left_out));
    }
    Some(Section::new("load_winners", "Who is faster at which length").with([ABOUT]).with([table]).with(charts))
}

pub fn points<'a>(view: &View<'a>, pair: &Pair) -> Option<(&'a Point, &'a Point)> {
    Some((view.digest.points.get(pair.points.0)?, view.digest.points.get(pair.points.1)?))
}

fn row(view: &View<'_>, winners: &Winners, (one, other): (&Point, &Point)) -> Row {
    let Winners { short: wins_short, long: wins_long, crossing } = *winners;
    // Its medians stand first.
    let (short, long) = if wins_short.or(wins_long).unwrap_or(true) { (one, other) } else { (other, one) };
    let name = |first: Option<bool>| match first {
        Some(first) => Cell::foreign(&view.target_name(if first { one } else { other })),
        None => Cell::text(NEITHER),
    };
    let is_alike = wins_short.is_some() && wins_short == wins_long;
    let no_crossing = if is_alike { Missing::NoCrossing } else { Missing::NotAgreed };
    let tokens = Cell::number(crossing.map(|(tokens, _)| tokens), Unit::Tokens, no_crossing);
    let own = vec![
        name(wins_short),
        tokens.within(crossing.map(|(_, ends)| ends)),
        name(wins_long),
        median_cell(short, Metric::Ttft),
        median_cell(long, Metric::Ttft),
        median_cell(short, Metric::Tpot),
        median_cell(long, Metric::Tpot),
    ];
    let cells = [view.level_cells(short.scenario, &short.arrivals), own].concat();
    Row { cells, notable: false }
}

/// What a pair shows, in one sentence: which of two targets is faster, as far as it is shown.
pub fn sentence(view: &View<'_>, pair: &Pair) -> Option<String> {
    let points = points(view, pair)?;
    let (first, second) = (view.target_name(points.0), view.target_name(points.1));
    let found = &pair.winners;
    let name = |is_first: bool| if is_first { &first } else { &second };
    let of = |wins: Option<bool>, answers: &str| match wins {
        Some(wins) => format!("{} is faster for {answers} answers", name(wins)),
        None => format!("for {answers} answers {NEITHER}"),
    };
    Some(match (found.short, found.long, found.crossing) {
        (None, None, _) => format!("{first} and {second}: {NEITHER}"),
        (Some(short), Some(long), _) if short == long => {
            format!("{} is faster than {} for every length of answer", name(short), name(!short))
        }
        (Some(short), Some(long), Some((tokens, (low, high)))) => format!(
            "{} is faster up to {tokens:.0} tokens of answer (95 % interval {low:.0} to {high:.0}), {} beyond",
            name(short),
            name(long)
        ),
        (Some(_), Some(_), None) => {
            format!("{}, {}; where they cross is not known", of(found.short, "short"), of(found.long, "long"))
        }
        (short, long, _) => format!("{first} and {second}: {}, {}", of(short, "short"), of(long, "long")),
    })
}

/// A target's line: its value at the first token, and its slope.
fn line(point: &Point) -> Option<(f64, f64)> {
    Some((point.spread(Metric::Ttft).p50?, point.spread(Metric::Tpot).p50?))
}

/// How long answers of each length take from each target of a level in which two cross.
fn chart(view: &View<'_>, points: &[Point]) -> Option<Chart> {
    let first = points.first()?;
    let longest = f64::from(view.receipt.scenarios.get(first.scenario)?.output_tokens);
    let crossings: Vec<(&Pair, f64, (f64, f64))> =
        view.digest.pairs.iter().filter_map(|pair| crossing(view, pair, first)).collect();
    let near =
        crossings.iter().map(|(_, tokens, (_, high))| tokens.max(*high)).filter(|end| *end <= FARTHEST * longest);
    let reach = near.fold(longest, |reach: f64, end| reach.max(1.1 * end));
    let known = points.iter().enumerate().filter_map(|(n, point)| Some((n, point, line(point)?)));
    let lines = known.take(MOST_SERIES).map(|(n, point, (start, slope))| {
        let name = view.target_name(point);
        let at = |tokens: f64| {
            let y = start + (tokens - 1.0) * slope;
            let hover = format!("{name}, {tokens:.0} tokens: {}", Unit::Ns.show(y));
            Place { x: tokens, y, hover }
        };
        let ends = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| at((share * reach).round().max(1.0)));
        Layer::Line { name: name.clone(), points: ends.into(), look: Look::nth(n), marked: true }
    });
    let mut layers: Vec<Layer> = lines.collect();
    if layers.len() < 2 || crossings.is_empty() {
        return None;
    }
    for (pair, tokens, (from, to)) in crossings.into_iter().filter(|(_, tokens, _)| *tokens <= reach) {
        let hover = format!("same time at {tokens:.0} tokens of answer, 95 % interval {from:.0} to {to:.0}");
        let start = view.digest.points.get(pair.points.0).and_then(line);
        let y = start.map_or(0.0, |(start, slope)| start + (tokens - 1.0) * slope);
        let (name, look) = ("same time for both".to_owned(), Look::ink());
        layers.push(Layer::Limit { name, x: tokens, y: None, hover: hover.clone(), look });
        let name = "95 % interval".to_owned();
        layers.push(Layer::Interval { name, from, to: to.min(reach), y, hover, look });
    }
    let scenario = if view.has_scenarios() { format!("{}, ", view.scenario(first.scenario)) } else { String::new() };
    let place = format!("{scenario}{}", first.arrivals.name());
    Some(Chart {
        id: format!("load-winners-{}-{}", view.scenario_id(first.scenario), first.level + 1),
        title: format!("Time of an answer by its length: {place}"),
        caption: "TTFT + (n - 1) x TPOT of the medians. The lower line is the faster target; where two cross, both take the same time.".into(),
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
