//! Which of two targets is faster by the length of the answer, and where the two cross.

use infergate_load::summary::crossing::{Faster, compare};

use crate::load::{Metric, Point, Series, View};
use crate::model::{Cell, Rows, Section, Unit};

const ABOUT: &str = "An answer of n tokens takes TTFT + (n - 1) x TPOT.";
/// No target is shown to be faster.
const NEITHER: &str = "not shown to differ";
/// A median has no interval.
const UNKNOWN: &str = "not known: too few independent requests";

/// Whether the first of two targets is shown to be faster than the second, or the other way round; else why nothing is shown.
type Shown = Result<bool, &'static str>;

/// Two targets of a level, and what is shown of them: nothing where the intervals of their medians touch, whatever the medians are.
struct Pair<'a> {
    one: &'a Point,
    other: &'a Point,
    /// For short answers, by TTFT.
    short: Shown,
    /// For long answers, by TPOT.
    long: Shown,
    /// Where the winner changes: tokens of answer, and the 95 % interval by resampling requests. `None` where the same one wins at
    /// every length, where one of both winners is not shown, and where resamples do not agree that the two cross.
    crossing: Option<(f64, (f64, f64))>,
}

impl<'a> Pair<'a> {
    /// `None` where one of both has no median.
    fn of(view: &View, one: &'a Point, other: &'a Point) -> Option<Self> {
        let apart = |metric| -> Shown {
            let both = one.spread(metric).p50_within.zip(other.spread(metric).p50_within);
            match both.ok_or(UNKNOWN)? {
                (first, second) if first.1 < second.0 => Ok(true),
                (first, second) if second.1 < first.0 => Ok(false),
                _ => Err(NEITHER),
            }
        };
        let (short, long) = (apart(Metric::Ttft), apart(Metric::Tpot));
        Some(match compare(&one.summary, &other.summary, view.receipt.seed)? {
            // Lines that cross before the first token: who leads there leads nowhere.
            Faster::Always(wins) => {
                let its = |shown: Shown| if shown == Ok(!wins) { Err(NEITHER) } else { shown };
                Self { one, other, short: its(short), long: its(long), crossing: None }
            }
            Faster::UpTo { tokens, interval, .. } => {
                let both = short.is_ok() && long.is_ok() && short != long;
                let crossing = interval.filter(|_| both).map(|interval| (tokens, interval));
                Self { one, other, short, long, crossing }
            }
        })
    }

    /// `None` where neither is shown to begin earlier.
    fn head_start(&self) -> Option<f64> {
        let (early, late) = if self.short.ok()? { (self.one, self.other) } else { (self.other, self.one) };
        Some((late.p50(Metric::Ttft)? - early.p50(Metric::Ttft)?) / early.p50(Metric::Tpot)?)
    }

    fn name(&self, view: &View, is_first: bool) -> String {
        view.target_name(if is_first { self.one } else { self.other })
    }

    /// Which one is faster, as far as it is shown.
    fn sentence(&self, view: &View) -> String {
        let name = |is_first| self.name(view, is_first);
        let faster = |wins, answers| format!("{} is faster than {} for {answers}", name(wins), name(!wins));
        let sentence = match (self.short, self.long, self.crossing) {
            (Err(_), Err(_), _) => format!("neither {} nor {} is shown to be faster", name(true), name(false)),
            (Ok(short), Ok(long), _) if short == long => faster(short, "every length of answer"),
            (Ok(short), Ok(long), Some((tokens, (low, high)))) => format!(
                "{} is faster up to {tokens:.0} tokens of answer (95 % interval {low:.0} to {high:.0}), {} beyond",
                name(short),
                name(long)
            ),
            (Ok(short), Ok(_), None) => faster(short, "short answers") + ", slower for long ones",
            (Ok(short), Err(_), _) => faster(short, "short answers") + "; for long ones no difference is shown",
            (Err(_), Ok(long), _) => faster(long, "long answers") + "; for short ones no difference is shown",
        };
        format!("At {} {sentence}", self.one.arrivals.name())
    }
}

/// Each two targets of each level, the fastest ones first.
fn pairs(view: &View) -> impl Iterator<Item = Pair<'_>> {
    view.levels().flat_map(move |points| {
        let mut points: Vec<&Point> = points.iter().collect();
        points.sort_by_key(|point| point.p50(Metric::E2e).map_or(u64::MAX, |ns| ns as u64));
        let mut pairs = Vec::new();
        for (at, one) in points.iter().enumerate() {
            pairs.extend(points[at + 1..].iter().filter_map(|other| Pair::of(view, one, other)));
        }
        pairs
    })
}

/// A line each two targets of a level.
pub fn topic(view: &View) -> Option<Section> {
    let winner = |pair: &Pair, shown: Shown| match shown {
        Ok(wins) => Cell::foreign(&pair.name(view, wins)),
        Err(why) => Cell::text(why),
    };
    let table = view
        .lead(Rows::of("pairs", "", pairs(view)), |pair| pair.one)
        .titled_words("pair", "targets", |pair| {
            Cell::foreign(&format!("{}, {}", pair.name(view, true), pair.name(view, false)))
        })
        .titled_words("short", "faster for short answers", |pair| winner(pair, pair.short))
        .titled_numbers("tokens", "up to", |pair| {
            let tokens = Cell::known(pair.crossing.map(|(tokens, _)| tokens), Unit::Tokens);
            tokens.within(pair.crossing.map(|(_, ends)| ends))
        })
        .about("output tokens, with the 95 % interval by resampling stretches of the run; blank where the two are not shown to cross")
        .titled_words("long", "faster beyond", |pair| winner(pair, pair.long))
        .titled_numbers("head_start", "head start, tokens", |pair| Cell::known(pair.head_start(), Unit::Tokens))
        .about("what the earlier one has written when the other's first token comes")
        .table()
        .on_terminal();
    Some(Section::new("load_winners", "Who is faster at which length").with([ABOUT]).with([table]))
}

/// Which of the two fastest targets of the first level is faster.
pub fn sentence(view: &View) -> Option<String> {
    pairs(view).next().map(|pair| pair.sentence(view))
}

/// Which of two targets is faster, at the first level where both have medians.
pub fn between(view: &View, two: [Series; 2]) -> Option<String> {
    let is_of = |point: &Point| two.contains(&point.series);
    pairs(view).find(|pair| is_of(pair.one) && is_of(pair.other)).map(|pair| pair.sentence(view))
}
