//! Which of two targets is faster by the length of the answer, and where the two cross.

use infergate_load::summary::crossing::{Faster, compare};

use crate::load::{Metric, Point, View};
use crate::model::{Cell, Missing, Rows, Section, Unit};

const ABOUT: &str = "An answer of n tokens takes TTFT + (n - 1) x TPOT. One target can be faster for short answers, and another for long ones.";
/// No target is shown to be faster.
const NEITHER: &str = "neither: intervals overlap";

/// Two targets of a level, and what is shown of them: nothing where the intervals of their medians touch, whatever the medians are.
struct Pair<'a> {
    one: &'a Point,
    other: &'a Point,
    /// For short answers, by TTFT: whether it is the first target; `None` where neither is shown to be.
    short: Option<bool>,
    /// For long answers, by TPOT; likewise.
    long: Option<bool>,
    /// Where the winner changes: tokens of answer, and the 95 % interval by resampling requests. `None` where the same one wins at
    /// every length, where one of both winners is not shown, and where resamples do not agree that the two cross.
    crossing: Option<(f64, (f64, f64))>,
}

impl<'a> Pair<'a> {
    /// `None` where one of both has no median.
    fn of(view: &View<'_>, one: &'a Point, other: &'a Point) -> Option<Self> {
        let apart = |metric| {
            let (first, second) = (one.spread(metric).p50_within?, other.spread(metric).p50_within?);
            (first.1 < second.0).then_some(true).or((second.1 < first.0).then_some(false))
        };
        let (short, long) = (apart(Metric::Ttft), apart(Metric::Tpot));
        Some(match compare(&one.summary, &other.summary, view.receipt.seed)? {
            // Lines that cross before the first token: who leads there leads nowhere.
            Faster::Always(wins) => {
                let its = |winner: &bool| *winner == wins;
                Self { one, other, short: short.filter(its), long: long.filter(its), crossing: None }
            }
            Faster::UpTo { tokens, interval, .. } => {
                let both = short.zip(long).is_some_and(|(short, long)| short != long);
                let crossing = interval.filter(|_| both).map(|interval| (tokens, interval));
                Self { one, other, short, long, crossing }
            }
        })
    }

    fn name(&self, view: &View<'_>, is_first: bool) -> String {
        view.target_name(if is_first { self.one } else { self.other })
    }
}

/// Each two targets of each level.
fn pairs<'a>(view: &View<'a>) -> impl Iterator<Item = Pair<'a>> {
    let both = view.levels().flat_map(|points| {
        let others = move |(at, one)| points[at + 1..].iter().map(move |other| (one, other));
        points.iter().enumerate().flat_map(others)
    });
    both.filter_map(|(one, other)| Pair::of(view, one, other))
}

/// A line each two targets of a level.
pub fn topic(view: &View<'_>) -> Option<Section> {
    let winner = |pair: &Pair, wins: Option<bool>| match wins {
        Some(wins) => Cell::foreign(&pair.name(view, wins)),
        None => Cell::text(NEITHER),
    };
    let table = view
        .lead(Rows::of("pairs", "", pairs(view)), |pair| pair.one)
        .words("short", "faster for short answers", |pair| winner(pair, pair.short))
        .numbers("tokens", "up to", |pair| {
            let is_same = pair.short.is_some() && pair.short == pair.long;
            let why = if is_same { Missing::NoCrossing } else { Missing::NotAgreed };
            let tokens = Cell::number(pair.crossing.map(|(tokens, _)| tokens), Unit::Tokens, why);
            tokens.within(pair.crossing.map(|(_, ends)| ends))
        })
        .about("output tokens, with the 95 % interval by resampling stretches of the run")
        .words("long", "faster beyond", |pair| winner(pair, pair.long))
        .table()
        .on_terminal();
    Some(Section::new("load_winners", "Who is faster at which length").with([ABOUT]).with([table]))
}

/// What the first pair shows, in one sentence: which of two targets is faster, as far as it is shown.
pub fn sentence(view: &View<'_>) -> Option<String> {
    let pair = pairs(view).next()?;
    let name = |is_first| pair.name(view, is_first);
    let of = |wins: Option<bool>, answers: &str| match wins {
        Some(wins) => format!("{} is faster for {answers} answers", name(wins)),
        None => format!("for {answers} answers {NEITHER}"),
    };
    let sentence = match (pair.short, pair.long, pair.crossing) {
        (None, None, _) => format!("{} and {}: {NEITHER}", name(true), name(false)),
        (Some(short), Some(long), _) if short == long => {
            format!("{} is faster than {} for every length of answer", name(short), name(!short))
        }
        (Some(short), Some(long), Some((tokens, (low, high)))) => format!(
            "{} is faster up to {tokens:.0} tokens of answer (95 % interval {low:.0} to {high:.0}), {} beyond",
            name(short),
            name(long)
        ),
        (short, long, _) => {
            format!("{} and {}: {}, {}", name(true), name(false), of(short, "short"), of(long, "long"))
        }
    };
    Some(format!("{}: {sentence}", pair.one.arrivals.name()))
}
