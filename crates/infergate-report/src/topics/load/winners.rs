//! Which of two targets is faster by the length of the answer, and where the two cross.

use crate::load::{Pair, Point, View, Winners};
use crate::model::{Cell, Missing, Rows, Section, Unit};

const ABOUT: &str = "An answer of n tokens takes TTFT + (n - 1) x TPOT. One target can be faster for short answers, and another for long ones.";
/// No target is shown to be faster.
const NEITHER: &str = "neither: intervals overlap";

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

    fn name(&self, view: &View<'_>, is_first: bool) -> String {
        view.target_name(if is_first { self.one } else { self.other })
    }
}

/// A line each two targets of a level.
pub fn topic(view: &View<'_>) -> Option<Section> {
    let winner = |pair: &Compared, wins: Option<bool>| match wins {
        Some(wins) => Cell::foreign(&pair.name(view, wins)),
        None => Cell::text(NEITHER),
    };
    let pairs = view.digest.pairs.iter().map(|pair| Compared::of(view, pair));
    let table = view
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
        .table()
        .on_terminal();
    Some(Section::new("load_winners", "Who is faster at which length").with([ABOUT]).with([table]))
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
        (short, long, _) => format!("{first} and {second}: {}, {}", of(short, "short"), of(long, "long")),
    };
    Some(format!("{}: {sentence}", pair.one.arrivals.name()))
}
