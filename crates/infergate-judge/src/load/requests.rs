//! Requests that fail, and answers of a wrong length, compared with those of the sessions.
//!
//! *A first failure* is regressed if no session had one. That has no level: it shows that something is new, and a server that
//! fails in each tenth run shows its first failure in some run.
//!
//! *More failures* are regressed if they are more frequent than in any session, and shown to be more frequent than in the
//! sessions together at the suite's level ([`is_more_frequent`]). Requests of one server do not fail independently: if it is full
//! or restarts, all that are in flight fail at once. So the run counts as ten batches and each session as one, and failures
//! within a batch may depend on each other.
//!
//! The level holds for days that differ by chance alone; it was simulated with bursts of up to half a run, and with days whose
//! rate of failures varies (tests/rules/gate/bursts.rs). Failures in one batch alone, however many, are advisory if sessions had
//! failures, too. All further failures are advisory before there are sessions of some days.

use infergate_core::load::{FailureClass, RequestRecord};

use super::{Ending, Run, subject};
use crate::{ALPHA, newest_of_each_day};
use infergate_core::stats::{batches, is_more_frequent};
use infergate_receipts::{Counter, CounterEvidence, Evidence, LoadSessionLevel, Outcome, Reason, Unit, VerdictRow};

pub(super) struct Count {
    name: &'static str,
    of_level: fn(&LoadSessionLevel) -> u64,
    is_one: fn(FailureClass) -> bool,
}

/// The counts of a level, a row for each.
pub(super) const COUNTS: [Count; 2] = [
    Count {
        name: "failed_requests",
        of_level: |level| level.failed,
        is_one: |class| !matches!(class, FailureClass::WrongLength | FailureClass::Cancelled),
    },
    Count {
        name: "wrong_length_requests",
        of_level: |level| level.wrong_length,
        is_one: |class| class == FailureClass::WrongLength,
    },
];

impl Run<'_> {
    /// The rows of a level with these requests.
    pub(super) fn requests(&self, level: &LoadSessionLevel, requests: &[&RequestRecord]) -> Vec<VerdictRow> {
        let known = self.known(level);
        let unjudged = self.unjudged(&known);
        let row = |count: &Count| {
            let head = (count.of_level)(level);
            let of = |known: &LoadSessionLevel| ((count.of_level)(known), known.issued);
            let sessions: Vec<(&str, (u64, u64))> =
                known.iter().map(|known| (known.created, of(known.level))).collect();
            let counts = || sessions.iter().map(|(_, (count, _))| *count);
            let evidence = Evidence::Counter(CounterEvidence {
                name: count.name.into(),
                unit: Unit::Number,
                base: counts().min().zip(counts().max()).map(|(min, max)| Counter { min, max }),
                head: Some(Counter { min: head, max: head }),
                head_twice: None,
                tolerance: 0.0,
            });
            let is_hit = |record: &&RequestRecord| record.failure.as_ref().is_some_and(|why| (count.is_one)(why.class));
            let hits = || requests.iter().map(is_hit).collect::<Vec<bool>>();
            let judged = || self.fails_more((head, level.issued), hits, &sessions);
            let (outcome, reasons, remedy) = unjudged.clone().unwrap_or_else(judged);
            VerdictRow { reasons, remedy, ..VerdictRow::new(subject(level), outcome, evidence) }
        };
        COUNTS.iter().map(row).collect()
    }

    /// Requests of head and of each session, as (failed, sent); `hits` tells which of head's failed.
    fn fails_more(&self, head: (u64, u64), hits: impl Fn() -> Vec<bool>, sessions: &[(&str, (u64, u64))]) -> Ending {
        let share = |(failed, issued): (u64, u64)| failed as f64 / issued.max(1) as f64;
        let most = sessions.iter().map(|(_, session)| share(*session)).fold(0.0, f64::max);
        if share(head) <= most {
            return (Outcome::Pass, Vec::new(), None);
        }
        let more = vec![Reason::MoreFail { failed: head.0, issued: head.1, most_before: most, blocks: None }];
        let days = newest_of_each_day(sessions.iter().copied());
        let level = ALPHA / self.counts.max(1) as f64;
        let is_more = most == 0.0 || is_more_frequent(&batches(&hits()), &days, level);
        (if is_more { Outcome::CounterRegressed } else { Outcome::Advisory }, more, None)
    }
}
