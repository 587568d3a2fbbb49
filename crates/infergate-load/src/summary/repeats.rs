//! Whether a prompt that is sent again is answered faster, as a server with a prefix cache does: then a run measures the cache.
//! Pure.
//!
//! Prompts are sent one after the other, and neighbours stand in one queue. So what is said of them is the median over prompts, and its
//! interval by batch means, as for every percentile of a load. What all first uses share, such as a busier machine in the first half of
//! a run, is in no interval: this warns, and decides nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use infergate_core::load::RequestRecord;
use infergate_core::stats::median;

use crate::receipt::{LevelRecord, LoadReceipt};
use crate::summary::{by_start, counted_requests, summarise};
use infergate_core::stats::{Queue, Timed, percentile_interval};

/// The whole interval has to lie below this: a tenth is less than any cache that matters saves, and more than noise that the
/// interval does not know of.
const FALLS_BELOW: f64 = 0.9;

/// What later uses of some prompts took, of what their first ones did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// Median over prompts of later TTFT / first TTFT.
    pub ratio: f64,
    /// Its interval of 95 %, by batch means over the prompts in the order in which they were sent.
    pub interval: (f64, f64),
    /// Prompts.
    pub prompts: usize,
    /// The interval lies below `FALLS_BELOW`: it is called.
    pub is_called: bool,
}

/// Compares pairs of a first and a later TTFT, one pair a prompt, in the order in which they were sent. `None` where they are too few
/// for how much they depend on each other, below 20 in any case, or where one is not above 0.
pub fn fall(pairs: &[(f64, f64)], queue: Queue) -> Option<Fall> {
    let ratios: Vec<f64> = pairs.iter().map(|(first, later)| later / first).collect();
    if ratios.iter().any(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
        return None;
    }
    let timed = |(request, value): (usize, &f64)| Timed { value: *value, weight: 1.0, request };
    let interval = percentile_interval(&ratios.iter().enumerate().map(timed).collect::<Vec<_>>(), 0.5, queue)?;
    Some(Fall { ratio: median(&ratios)?, interval, prompts: ratios.len(), is_called: interval.1 < FALLS_BELOW })
}

/// A sentence for each level whose repeated prompts look cached, or are too few to say. Prompts repeat where a dataset has fewer
/// than the level has requests, and from an `earlier` run that had the same ones.
pub fn warnings(receipt: &LoadReceipt, earlier: Option<&LoadReceipt>) -> Vec<String> {
    let mut said = Vec::new();
    for (index, level) in receipt.levels.iter().enumerate() {
        let name = usize::try_from(level.scenario).ok().and_then(|index| receipt.scenarios.get(index));
        let name = format!("{}, {}", name.map_or("", |scenario| &scenario.name), level.arrivals.name());
        if let Some(prompts) = receipt.dataset_prompts {
            said.extend(within(level, prompts).map(|what| format!("{name}: {what}")));
        }
        let before = earlier.and_then(|earlier| earlier.levels.get(index).filter(|other| is_same(level, other)));
        said.extend(before.and_then(|before| between(before, level)).map(|what| format!("{name}: {what}")));
    }
    said
}

/// Of a level that takes `prompts` prompts in turn.
fn within(level: &LevelRecord, prompts: u64) -> Option<String> {
    let counted = counted(level);
    let mut uses: BTreeMap<u64, Vec<&RequestRecord>> = BTreeMap::new();
    for record in &level.requests {
        uses.entry(record.request.checked_rem(prompts)?).or_default().push(record);
    }
    let again = uses.values().filter(|uses| uses.len() > 1).count();
    if again == 0 {
        return None;
    }
    let pairs: Vec<(f64, f64)> = uses.values().filter_map(|uses| pair(uses, &counted)).collect();
    match fall(&pairs, summarise(level).queue()) {
        None => Some(format!(
            "the dataset's {prompts} prompts were sent {} times, and too few of them first among the measured requests to see \
             whether a prefix cache answered; give more prompts than requests",
            level.requests.len()
        )),
        Some(fall) if fall.is_called => Some(format!(
            "{}; give --dataset more prompts than requests, or leave it out",
            words(&fall, "sent again got their first token")
        )),
        Some(_) => None,
    }
}

/// First TTFT of a prompt and the median of its later ones, all of requests that count. A prompt whose first use does not has none.
fn pair(uses: &[&RequestRecord], counted: &HashSet<u64>) -> Option<(f64, f64)> {
    let (first, later) = uses.split_first()?;
    let later: Vec<f64> = later.iter().filter_map(|record| answer_ns(record, counted)).collect();
    Some((answer_ns(first, counted)?, median(&later)?))
}

/// Request by request: the same number had the same prompt.
fn between(before: &LevelRecord, level: &LevelRecord) -> Option<String> {
    let (counted_before, counted) = (counted(before), counted(level));
    let first: HashMap<u64, f64> = before
        .requests
        .iter()
        .filter_map(|record| Some((record.request, answer_ns(record, &counted_before)?)))
        .collect();
    let again = by_start(level, None).into_iter();
    let pair = |record: &RequestRecord| Some((*first.get(&record.request)?, answer_ns(record, &counted)?));
    let pairs: Vec<(f64, f64)> = again.filter_map(pair).collect();
    let fall = fall(&pairs, summarise(level).queue()).filter(|fall| fall.is_called)?;
    let what = words(&fall, "of the earlier run got their first token");
    Some(format!("{what}; leave out --same-prompts, or start the server anew"))
}

/// Whether both are the same load. Their prompts are the same too where they have the same place in their runs.
fn is_same(level: &LevelRecord, other: &LevelRecord) -> bool {
    (level.scenario, level.arrivals, level.ramp_ns) == (other.scenario, other.arrivals, other.ramp_ns)
}

/// What a request waited for its first token, without what a new connection took. `None` of one that failed, was tried again or
/// does not count.
fn answer_ns(record: &RequestRecord, counted: &HashSet<u64>) -> Option<f64> {
    let counts = record.failure.is_none() && record.retries == 0 && counted.contains(&record.request);
    let sent_ns = record.connected_ns.unwrap_or(record.sent_ns);
    let first_ns = *record.chunk_ns.first()?;
    counts.then(|| first_ns.saturating_sub(sent_ns) as f64)
}

/// The numbers of a level's requests that count.
fn counted(level: &LevelRecord) -> HashSet<u64> {
    counted_requests(level, None).into_iter().map(|record| record.request).collect()
}

fn words(fall: &Fall, what: &str) -> String {
    let Fall { ratio, interval: (low, high), prompts, .. } = *fall;
    format!(
        "prompts {what} in {ratio:.2} of the time (median of {prompts}, 95 % interval {low:.2} to {high:.2}), as with a prefix \
         cache"
    )
}
