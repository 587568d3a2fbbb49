//! How often two targets give the same answer to the same prompt, where a dataset sends its prompts to each of them.

use std::collections::{BTreeMap, HashMap};

use super::digest::MOST_PAIRS;
use crate::receipt::LoadReceipt;

/// Two targets of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Index of the scenario.
    pub scenario: usize,
    /// Indices of both targets.
    pub targets: (usize, usize),
    /// Prompts that both answered.
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
