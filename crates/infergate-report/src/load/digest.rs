//! What a report says of a load run, derived once: raw times are many, and every section and picture needs the same few numbers
//! of them.

use super::point::Point;
use infergate_load::summary::crossing::{Faster, compare};
use infergate_receipts::{LoadReceipt, Metric};

/// Pairs of targets that are compared: each takes thousands of resamples, and a file may name many targets and levels.
const MOST_PAIRS: usize = 200;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Digest {
    /// By scenario, closed loops before open ones, the lowest load first.
    pub points: Vec<Point>,
    /// Each two targets of a level.
    pub pairs: Vec<Pair>,
    pub pairs_left_out: usize,
}

impl Digest {
    pub fn of(receipt: &LoadReceipt) -> Self {
        let targets = receipt.targets.len();
        let mut digest = Self::default();
        for (index, level) in receipt.levels.iter().enumerate() {
            let mut of = |target| digest.points.push(Point::of((index, level), target));
            if targets < 2 { of(None) } else { (0..targets).for_each(|target| of(Some(target))) }
        }
        digest.points.sort_by(|a, b| {
            let place = |point: &Point| (point.series.scenario, point.users().is_none());
            place(a).cmp(&place(b)).then(a.load().total_cmp(&b.load()))
        });
        for one in 0..digest.points.len() {
            for other in one + 1..digest.points.len() {
                digest.compare(receipt.seed, one, other);
            }
        }
        digest
    }

    fn compare(&mut self, seed: u64, one: usize, other: usize) {
        let (first, second) = (&self.points[one], &self.points[other]);
        if first.level != second.level {
            return;
        }
        if self.pairs.len() >= MOST_PAIRS {
            self.pairs_left_out += 1;
        } else if let Some(faster) = compare(&first.summary, &second.summary, seed) {
            self.pairs.push(Pair { points: (one, other), winners: Winners::of(first, second, faster) });
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub points: (usize, usize),
    pub winners: Winners,
}

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
    fn of(first: &Point, second: &Point, faster: Faster) -> Self {
        let apart = |metric| {
            let (one, other) = (first.spread(metric).p50_within?, second.spread(metric).p50_within?);
            (one.1 < other.0).then_some(true).or((other.1 < one.0).then_some(false))
        };
        let (short, long) = (apart(Metric::Ttft), apart(Metric::Tpot));
        match faster {
            // Lines that cross before the first token: who leads there leads nowhere.
            Faster::Always(wins) => {
                let its = |winner: &bool| *winner == wins;
                Self { short: short.filter(its), long: long.filter(its), crossing: None }
            }
            Faster::UpTo { tokens, interval, .. } => {
                let both = short.zip(long).is_some_and(|(short, long)| short != long);
                Self { short, long, crossing: interval.filter(|_| both).map(|interval| (tokens, interval)) }
            }
        }
    }
}
