//! Which of two targets is faster, by the length of the answer: decided once, for the terminal, for pages and for pictures.

use std::fmt::Write as _;

use infergate_core::printable::printable;

use super::digest::{Pair, Point};
use super::view::View;
use crate::load::crossing::Faster;
use crate::load::judge::load;
use crate::receipt::Metric;
use crate::report::words::load as words;

/// What is shown of two targets: nothing where the intervals of their medians touch, whatever the medians are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Winners {
    /// For short answers, by TTFT: whether it is the first target; `None` where neither is shown to be.
    pub short: Option<bool>,
    /// For long answers, by TPOT; likewise.
    pub long: Option<bool>,
    /// Where the winner changes: tokens of answer, and the 95 % interval by resampling requests. `None` where the same one wins at
    /// every length, where one of both winners is not shown, and where resamples do not agree that the two cross.
    pub crossing: Option<(f64, (f64, f64))>,
}

impl Winners {
    /// Of two points whose medians compare as `faster`.
    pub fn of(first: &Point, second: &Point, faster: Faster) -> Self {
        let apart = |metric| {
            let (one, other) = (first.spread(metric).p50_within?, second.spread(metric).p50_within?);
            (one.1 < other.0).then_some(true).or((other.1 < one.0).then_some(false))
        };
        let (short, long) = (apart(Metric::Ttft), apart(Metric::Tpot));
        match faster {
            // Lines that cross before the first token: who leads there leads nowhere.
            Faster::Always(wins) => Self {
                short: short.filter(|short| *short == wins),
                long: long.filter(|long| *long == wins),
                crossing: None,
            },
            Faster::UpTo { tokens, interval, .. } => {
                let both = short.zip(long).is_some_and(|(short, long)| short != long);
                Self { short, long, crossing: interval.filter(|_| both).map(|interval| (tokens, interval)) }
            }
        }
    }
}

/// Both points of a pair.
pub fn points<'a>(view: &View<'a>, pair: &Pair) -> Option<(&'a Point, &'a Point)> {
    Some((view.digest.points.get(pair.points.0)?, view.digest.points.get(pair.points.1)?))
}

/// What a pair shows, in one sentence.
pub fn sentence(view: &View<'_>, pair: &Pair) -> Option<String> {
    let (first, second) = points(view, pair)?;
    let name = |point: &Point| point.target.map_or_else(String::new, |target| view.target(target));
    Some(words::winners(&pair.winners, &name(first), &name(second)))
}

/// A line each two targets of a level of the scenario.
pub fn text(view: &View<'_>, scenario: usize) -> String {
    let mut text = String::new();
    for pair in &view.digest.pairs {
        let Some((first, _)) = points(view, pair).filter(|(first, _)| first.scenario == scenario) else { continue };
        let Some(said) = sentence(view, pair) else { continue };
        let _ = writeln!(text, "{}: {}", load(&first.arrivals), printable(&said));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What is said of the pairs that were left out.
pub fn left_out(view: &View<'_>) -> String {
    match view.digest.pairs_left_out {
        0 => String::new(),
        more => format!("\n{}\n", words::more_pairs(more)),
    }
}
