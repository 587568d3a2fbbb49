//! Which of two targets is faster by the length of the answer, and where the two cross.

use crate::load::{Metric, Pair, Point, View, Winners, median_cell};
use crate::model::{Axis, Cell, Chart, Layer, Look, Marks, Missing, Place, Rows, Section, Unit};

const ABOUT: &str = "An answer of n tokens takes TTFT + (n - 1) x TPOT. Of two targets one can be the faster for short answers and the other \
                     for long ones; where they cross, both take the same time.";
/// No target is shown to be faster.
const NEITHER: &str = "neither: intervals overlap";
/// Levels with a picture: more would be scrolled past.
const MOST_LEVELS: usize = 8;
/// A crossing so many times beyond the longest answer is not drawn.
const FARTHEST: f64 = 8.0;

/// Two targets of a level.
struct Compared<'a> {
    winners: &'a Winners,
    one: &'a Point,
    other: &'a Point,
}

impl<'a> Compared<'a> {
    fn of(view: &View<'a>, pair: &'a Pair) -> Self {
        let points = &view.digest.points;
        Self { winners: &pair.winners, one: &points[pair.points.0], other: &points[pair.points.1] }
    }

    /// The one whose medians stand first: who is faster for short answers.
    fn ordered(&self) -> (&'a Point, &'a Point) {
        let is_first = self.winners.short.or(self.winners.long).unwrap_or(true);
        if is_first { (self.one, self.other) } else { (self.other, self.one) }
    }

    fn name(&self, view: &View<'_>, is_first: bool) -> String {
        view.target_name(if is_first { self.one } else { self.other })
    }
}

/// A line each two targets of a level, and a chart a level in which two of them cross.
pub fn topic(view: &View<'_>) -> Option<Section> {
    let winner = |pair: &Compared, wins: Option<bool>| match wins {
        Some(wins) => Cell::foreign(&pair.name(view, wins)),
        None => Cell::text(NEITHER),
    };
    let pairs = view.digest.pairs.iter().map(|pair| Compared::of(view, pair));
    let mut table = view
        .lead(Rows::of("pairs", "", pairs), |pair| pair.one)
        .words("short", "faster for short answers", |pair| winner(pair, pair.winners.short))
        .numbers("tokens", "up to", |pair| {
            let Winners { short, long, crossing } = *pair.winners;
            let why = if short.is_some() && short == long { Missing::NoCrossing } else { Missing::NotAgreed };
            let tokens = Cell::number(crossing.map(|(tokens, _)| tokens), Unit::Tokens, why);
            tokens.within(crossing.map(|(_, ends)| ends))
        })
        .about("output tokens, with the 95 % interval by resampling stretches of the run")
        .words("long", "faster beyond", |pair| winner(pair, pair.winners.long))
        .numbers("short_ttft", "TTFT P50 of the first", |pair| median_cell(pair.ordered().0, Metric::Ttft))
        .detail()
        .numbers("long_ttft", "of the second", |pair| median_cell(pair.ordered().1, Metric::Ttft))
        .detail()
        .numbers("short_tpot", "TPOT P50 of the first", |pair| median_cell(pair.ordered().0, Metric::Tpot))
        .detail()
        .numbers("long_tpot", "of the second", |pair| median_cell(pair.ordered().1, Metric::Tpot))
        .detail()
        .table()
        .on_terminal();
    if view.digest.pairs_left_out > 0 {
        table = table.noted(format!("{} more pairs of targets were not compared.", view.digest.pairs_left_out));
    }
    let charts = view.levels().filter_map(|points| chart(view, points)).take(MOST_LEVELS);
    Some(Section::new("load_winners", "Who is faster at which length").with([ABOUT]).with([table]).with(charts))
}

/// What the first pair shows, in one sentence: which of two targets is faster, as far as it is shown.
pub fn sentence(view: &View<'_>) -> Option<String> {
    let pair = Compared::of(view, view.digest.pairs.first()?);
    let name = |is_first| pair.name(view, is_first);
    let of = |wins: Option<bool>, answers: &str| match wins {
        Some(wins) => format!("{} is faster for {answers} answers", name(wins)),
        None => format!("for {answers} answers {NEITHER}"),
    };
    let (first, second) = (name(true), name(false));
    let sentence = match (pair.winners.short, pair.winners.long, pair.winners.crossing) {
        (None, None, _) => format!("{first} and {second}: {NEITHER}"),
        (Some(short), Some(long), _) if short == long => {
            format!("{} is faster than {} for every length of answer", name(short), name(!short))
        }
        (Some(short), Some(long), Some((tokens, (low, high)))) => format!(
            "{} is faster up to {tokens:.0} tokens of answer (95 % interval {low:.0} to {high:.0}), {} beyond",
            name(short),
            name(long)
        ),
        (short @ Some(_), long @ Some(_), None) => {
            format!("{}, {}; where they cross is not known", of(short, "short"), of(long, "long"))
        }
        (short, long, _) => format!("{first} and {second}: {}, {}", of(short, "short"), of(long, "long")),
    };
    Some(format!("{}: {sentence}", pair.one.arrivals.name()))
}

/// How long an answer of so many tokens takes, by the medians.
fn time_ns(point: &Point, tokens: f64) -> Option<f64> {
    Some(point.p50(Metric::Ttft)? + (tokens - 1.0) * point.p50(Metric::Tpot)?)
}

/// How long answers of each length take from each target of a level in which two cross.
fn chart(view: &View<'_>, points: &[Point]) -> Option<Chart> {
    let first = points.first()?;
    let longest = f64::from(view.receipt.scenarios.get(first.series.scenario)?.output_tokens);
    let pairs = view.digest.pairs.iter().map(|pair| Compared::of(view, pair));
    let crossings = pairs.filter(|pair| pair.one.level == first.level).filter_map(|pair| {
        let (tokens, ends) = pair.winners.crossing?;
        Some((pair.one, tokens, ends))
    });
    let crossings: Vec<(&Point, f64, (f64, f64))> = crossings.collect();
    let near = crossings.iter().map(|(_, _, (_, high))| *high).filter(|high| *high <= FARTHEST * longest);
    let reach = near.fold(longest, |reach: f64, high| reach.max(1.1 * high));
    let lines = points.iter().enumerate().filter_map(|(n, point)| {
        let name = view.target_name(point);
        let place = |tokens: f64| {
            let ns = time_ns(point, tokens)?;
            Some(Place::new(tokens, ns, format!("{name}: {tokens:.0} tokens in {}", Unit::Ns.show(ns))))
        };
        let ends = vec![place(1.0)?, place(reach)?];
        Some(Layer::new(name.clone(), Look::nth(n), Marks::MarkedLine(ends)))
    });
    let mut layers: Vec<Layer> = lines.collect();
    if layers.len() < 2 || crossings.is_empty() {
        return None;
    }
    for (point, tokens, (from, to)) in crossings.into_iter().filter(|(_, tokens, _)| *tokens <= reach) {
        let hover = format!("same time at {tokens:.0} tokens of answer, 95 % interval {from:.0} to {to:.0}");
        let place = |at: f64| Place::new(at, time_ns(point, tokens).unwrap_or_default(), hover.clone());
        let interval = Marks::Line(vec![place(from), place(to.min(reach))]);
        layers.push(Layer::new("95 % interval", Look::ink(), interval));
        layers.push(Layer::new("same time for both", Look::ink(), Marks::Points(vec![place(tokens)])));
    }
    Some(Chart {
        id: format!("load-winners-{}", first.level + 1),
        title: format!("Time of an answer by its length: {}", place_of_level(view, first)),
        caption: "TTFT + (n - 1) x TPOT of the medians. The lower line is the faster target; where two cross, both take the same time.".into(),
        x: Axis::new("answer", Unit::Tokens).zero(),
        y: Axis::new("time", Unit::Ns).zero(),
        layers,
    })
}

fn place_of_level(view: &View<'_>, point: &Point) -> String {
    let scenario =
        if view.has_scenarios() { format!("{}, ", view.scenario(point.series.scenario)) } else { String::new() };
    format!("{scenario}{}", point.arrivals.name())
}
