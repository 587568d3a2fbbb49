//! What is derived of each two targets: whether they say the same, and which is faster by the length of the answer.

use std::collections::{BTreeMap, HashMap};

use super::point::Point;
use infergate_load::summary::crossing::Faster;
use infergate_receipts::LoadReceipt;
use infergate_receipts::Metric;

/// Pairs of targets that are compared: each takes thousands of resamples, and a file may name many targets and levels.
pub const MOST_PAIRS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    pub scenario: usize,
    pub targets: (usize, usize),
    pub prompts: u64,
    /// Of these, those to which all answers of both were the same text.
    pub same: u64,
}

/// What a target answered to a prompt: the hash of its answers; `None` where they differ among themselves.
type Answers<'a> = HashMap<u64, Option<&'a str>>;

/// Each two targets that answered a prompt in common, [`MOST_PAIRS`] of them at most. Nothing without a dataset: made-up prompts are
/// sent once.
pub fn agreements(receipt: &LoadReceipt) -> Vec<Agreement> {
    let Some(prompts) = receipt.dataset_prompts.filter(|prompts| *prompts > 0) else { return Vec::new() };
    let mut answers: BTreeMap<(u32, u32), Answers<'_>> = BTreeMap::new();
    for level in &receipt.levels {
        for record in level.requests.iter().filter(|record| record.failure.is_none()) {
            let Some(hash) = record.output_sha256.as_deref() else { continue };
            let of_target = answers.entry((level.scenario, record.target)).or_default();
            let known = of_target.entry(record.request % prompts).or_insert(Some(hash));
            *known = known.filter(|known| *known == hash);
        }
    }
    let mut found = Vec::new();
    for ((scenario, first), one) in &answers {
        for ((_, second), other) in answers.range((*scenario, first.saturating_add(1))..=(*scenario, u32::MAX)) {
            if found.len() >= MOST_PAIRS {
                return found;
            }
            let both = || one.iter().filter_map(|(prompt, one)| Some((one, other.get(prompt)?)));
            let prompts = both().count() as u64;
            if prompts == 0 {
                continue;
            }
            let same = both().filter(|(one, other)| one.is_some() && one == other).count() as u64;
            let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
            found.push(Agreement {
                scenario: index(*scenario),
                targets: (index(*first), index(*second)),
                prompts,
                same,
            });
        }
    }
    found
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
