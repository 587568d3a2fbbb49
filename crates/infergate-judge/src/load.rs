//! Load runs on the stored channel: medians and throughput of each level against the sessions of a baseline, with the limit of
//! the cases of a suite.
//!
//! Requests that fail and answers of a wrong length are judged from the first session on (`requests`). Levels and set-ups that
//! only one side has are named; they are not comparable if a baseline is required.
//!
//! The suite's level alpha is shared among all times of the run, and once more among all counts of requests.

mod requests;

use std::collections::HashSet;

use anyhow::{Context, Result};

use super::exact::other_class;
use super::stored::StoredJudge;
use super::target::{at_best, judge_load};
use super::{Policy, against_one_run, decide, differences, segments};
use infergate_receipts::{
    Against, Evidence, LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, Note, Outcome, Reason, Remedy,
    Subject, Target, TimeEvidence, Verdict, VerdictRow,
};

/// Judges a run against the baseline of its machine class, or against none. The targets of a policy are a suite's.
pub fn judge(head: &LoadReceipt, base: Option<&LoadBaseline>, policy: &Policy) -> Result<Verdict> {
    judge_with(head, base, policy, &[])
}

/// As [`judge`], and by targets of the run's levels.
pub fn judge_with(
    head: &LoadReceipt,
    base: Option<&LoadBaseline>,
    policy: &Policy,
    targets: &[Target],
) -> Result<Verdict> {
    head.ensure_whole()?;
    let run = LoadBaseline::from_receipt(head);
    let levels: Vec<&LoadSessionLevel> = run.sessions.iter().flat_map(|session| &session.levels).collect();
    let no_baseline = || vec![Note::NoBaseline { machine_class: head.machine.class.clone() }];
    let notes = base.map_or_else(no_baseline, |base| differences::of_load(base, &run, missing(base, &levels)));
    let judged = Run::new(head, base, &run, policy);
    let of_levels = levels.iter().zip(head.requests_of_levels());
    let requests = of_levels.flat_map(|(level, requests)| judged.requests(level, &requests));
    let times = levels.iter().flat_map(|level| judged.times(level));
    let rows = requests.chain(times).chain(judge_load(head, &levels, targets)).collect();
    Ok(decide((&head.invalid, head.partial), head.levels.is_empty(), policy, rows, notes))
}

/// Compares two runs. One session has no spread, so time is advisory.
pub fn compare(base: &LoadReceipt, head: &LoadReceipt, policy: &Policy) -> Result<Verdict> {
    base.ensure_whole().context("the base run")?;
    let verdict = judge(head, Some(&LoadBaseline::from_receipt(base)), policy)?;
    Ok(against_one_run(verdict, base.partial, &base.invalid))
}

/// The levels of one run on the stored channel.
struct Run<'a> {
    head: &'a LoadReceipt,
    base: Option<&'a LoadBaseline>,
    stored: StoredJudge<'a>,
    /// Why nothing of the run can be compared.
    other_setup: Vec<Reason>,
    /// Counts that are judged together.
    counts: usize,
}

/// A level of load of a session, the time of creation of that session, and its segment between steps.
#[derive(Clone, Copy)]
struct Known<'a> {
    created: &'a str,
    segment: usize,
    level: &'a LoadSessionLevel,
}

/// Outcome, reasons and remedy of a row.
type Ending = (Outcome, Vec<Reason>, Option<Remedy>);

impl<'a> Run<'a> {
    fn new(head: &'a LoadReceipt, base: Option<&'a LoadBaseline>, run: &LoadBaseline, policy: &'a Policy) -> Self {
        let other_setup = base.into_iter().flat_map(|base| base.differing_setup(&run.setup));
        let levels = || run.sessions.iter().flat_map(|session| &session.levels);
        let stored = StoredJudge {
            policy,
            has_base: base.is_some(),
            elsewhere: base.and_then(|base| other_class(&base.machine, &head.machine)),
            tests: levels().flat_map(LoadSessionLevel::times_ns).filter(|(_, ns)| ns.is_some()).count(),
        };
        Self {
            head,
            base,
            stored,
            other_setup: other_setup.map(|(what, base, head)| Reason::OtherLoad { what, base, head }).collect(),
            counts: requests::COUNTS.len() * levels().count(),
        }
    }

    /// The sessions' records of a level.
    fn known(&self, level: &LoadSessionLevel) -> Vec<Known<'a>> {
        let (sessions, key) = (self.base.map_or(&[][..], |base| &base.sessions), &level.key());
        let of_session = |(segment, session): (usize, &'a LoadSession)| {
            let same = session.levels.iter().filter(move |known| known.key() == *key);
            same.map(move |level| Known { created: &session.created, segment, level })
        };
        segments(sessions.iter().map(|session| session.step)).zip(sessions).flat_map(of_session).collect()
    }

    /// The medians and the throughput.
    fn times(&self, level: &LoadSessionLevel) -> Vec<VerdictRow> {
        let known = self.known(level);
        let unjudged = self.unjudged(&known);
        let mut rows = Vec::new();
        for (at, (metric, head_ns)) in level.times_ns().into_iter().enumerate() {
            let time_of = |known: &Known| known.level.times_ns()[at].1;
            let past = known.iter().filter_map(|known| Some((known.segment, known.created, time_of(known)?)));
            let past: Vec<(usize, &str, f64)> = past.collect();
            let time = TimeEvidence { head_ns, ..TimeEvidence::new(metric, Against::Baseline) };
            let time = if self.base.is_some() { self.stored.with_baseline(time, &past) } else { time };
            // Answers of one token have no gaps on either side.
            if time.head_ns.is_none() && time.base_ns.is_none() {
                continue;
            }
            let row = |(outcome, reasons, remedy): Ending, time| {
                let row = VerdictRow::new(subject(level), outcome, Evidence::Time(time));
                VerdictRow { reasons, remedy, ..row }
            };
            rows.push(match (unjudged.clone(), head_ns) {
                (Some(ending), _) => row(ending, time),
                (None, None) => row((Outcome::Inconclusive, vec![Reason::NotTimed], Some(Remedy::MeasureAgain)), time),
                (None, Some(_)) => self.stored.judge(subject(level), time, &past, None),
            });
        }
        rows
    }

    /// Why no number of a level is judged, given its `known` sessions; `None` if they are judged.
    fn unjudged(&self, known: &[Known]) -> Option<Ending> {
        let head = self.head;
        if let Some((outcome, reason)) = at_best(&head.invalid, head.partial) {
            return Some((outcome, vec![reason], None));
        }
        let outcome = self.stored.without_baseline();
        if self.base.is_none() {
            return Some((outcome, vec![Reason::NoBaseline], Some(Remedy::Bless)));
        }
        if !self.other_setup.is_empty() {
            return Some((outcome, self.other_setup.clone(), None));
        }
        known.is_empty().then(|| (outcome, vec![Reason::NoSession], Some(Remedy::Bless)))
    }
}

/// The name of a level in a verdict: `load:chatbot/8 users`.
fn subject(level: &LoadSessionLevel) -> Subject {
    Subject::Load(level.name())
}

/// Levels of the newest session that were not run.
fn missing(base: &LoadBaseline, levels: &[&LoadSessionLevel]) -> Vec<Subject> {
    let run: HashSet<String> = levels.iter().map(|level| level.key()).collect();
    let newest = base.sessions.last().into_iter().flat_map(|session| &session.levels);
    newest.filter(|level| !run.contains(&level.key())).map(subject).collect()
}
