//! Load runs on the stored channel: medians and throughput of each level against the sessions of a baseline, by the limit that
//! the cases of a suite have.
//!
//! Requests that fail and answers of a wrong length are judged from the first session on (`requests`). Levels and set-ups that only
//! one side has are named; they are not comparable where a baseline is required.
//!
//! The suite's level alpha is shared among all times of the run, and once more among all counts of requests.

mod requests;

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::{Context, Result};

use super::stored::{About, Ending, Stored};
use super::{Policy, against_one_run, decide, differences::other_sessions, stretches};
use infergate_receipts::{
    Against, Evidence, LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, Name, Note, Outcome, Reason, Remedy,
    Subject, TimeEvidence, Verdict, VerdictRow,
};

/// Judges a run against the baseline of its machine class, or against none.
pub fn judge(head: &LoadReceipt, base: Option<&LoadBaseline>, policy: &Policy) -> Result<Verdict> {
    head.ensure_whole()?;
    let run = LoadBaseline::from_receipt(head);
    let levels: Vec<&LoadSessionLevel> = run.sessions.iter().flat_map(|session| &session.levels).collect();
    let mut notes = match base {
        Some(base) => differences(base, &run),
        None => vec![Note::NoBaseline { machine_class: head.machine.class.clone() }],
    };
    if head.partial {
        notes.push(Note::CutShort { base: false });
    }
    let missing = missing(base, &levels);
    let is_missing = !missing.is_empty();
    if is_missing {
        notes.push(Note::NotRun { subjects: missing });
    }
    let judged = Run::new(head, base, &run, policy);
    let of_levels = levels.iter().zip(head.requests_of_levels());
    let requests = of_levels.flat_map(|(level, requests)| judged.requests(level, &requests));
    let times = levels.iter().flat_map(|level| judged.times(level));
    let rows = requests.chain(times).collect();
    let verdict = decide((&head.invalid, head.partial), head.levels.is_empty(), rows, notes);
    if is_missing && policy.require_baseline && verdict.exit_code == 0 {
        return Ok(verdict.at_best(Outcome::NotComparable));
    }
    Ok(verdict)
}

/// Compares two runs. One session is no spread: time is advisory.
pub fn compare(base: &LoadReceipt, head: &LoadReceipt, policy: &Policy) -> Result<Verdict> {
    base.ensure_whole().context("the base run")?;
    let verdict = judge(head, Some(&LoadBaseline::from_receipt(base)), policy)?;
    Ok(against_one_run(verdict, base.partial, &base.invalid))
}

/// The levels of one run on the stored channel.
struct Run<'a> {
    head: &'a LoadReceipt,
    base: Option<&'a LoadBaseline>,
    stored: Stored<'a>,
    /// The sessions' levels, by their keys.
    known: HashMap<String, Vec<Known<'a>>>,
    /// Why nothing of the run can be compared.
    other_setup: Vec<Reason>,
    /// Counts that are judged together.
    counts: usize,
}

/// A level of load of a session, when that session began, and in which stretch between steps.
#[derive(Clone, Copy)]
struct Known<'a> {
    created: &'a str,
    stretch: usize,
    level: &'a LoadSessionLevel,
}

impl<'a> Run<'a> {
    fn new(head: &'a LoadReceipt, base: Option<&'a LoadBaseline>, run: &LoadBaseline, policy: &'a Policy) -> Self {
        let mut known: HashMap<String, Vec<Known>> = HashMap::new();
        let sessions = || base.into_iter().flat_map(|base| &base.sessions);
        for (stretch, session) in stretches(sessions().map(|session| session.step)).zip(sessions()) {
            for level in &session.levels {
                known.entry(level.key()).or_default().push(Known { created: &session.created, stretch, level });
            }
        }
        let other_setup = base.into_iter().flat_map(|base| base.differing_setup(&run.setup));
        let other_load = |(what, base, head)| Reason::OtherLoad { what, base, head };
        let levels = || run.sessions.iter().flat_map(|session| &session.levels);
        let stored = Stored {
            policy,
            has_base: base.is_some(),
            is_elsewhere: base.is_some_and(|base| base.machine.class != head.machine.class),
            tests: levels().flat_map(LoadSessionLevel::times_ns).filter(|(_, ns)| ns.is_some()).count(),
        };
        Self {
            head,
            base,
            stored,
            known,
            other_setup: other_setup.map(other_load).collect(),
            counts: requests::COUNTS.len() * levels().count(),
        }
    }

    fn known(&self, level: &LoadSessionLevel) -> &[Known<'a>] {
        self.known.get(&level.key()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The medians and the throughput.
    fn times(&self, level: &LoadSessionLevel) -> Vec<VerdictRow> {
        let known = self.known(level);
        let unjudged = self.unjudged(known);
        let mut rows = Vec::new();
        for (at, (metric, head_ns)) in level.times_ns().into_iter().enumerate() {
            let time_of = |known: &Known| known.level.times_ns()[at].1;
            let past = known.iter().filter_map(|known| Some((known.stretch, known.created, time_of(known)?)));
            let past: Vec<(usize, &str, f64)> = past.collect();
            let time = TimeEvidence { head_ns, ..TimeEvidence::new(metric, Against::Baseline) };
            let time = if self.base.is_some() { self.stored.beside(time, &past) } else { time };
            // Answers of one token have no gaps on either side.
            if time.head_ns.is_none() && time.base_ns.is_none() {
                continue;
            }
            let (time, ending) = match (unjudged.clone(), head_ns) {
                (Some(ending), _) => (time, ending),
                (None, None) => {
                    let ending = Ending::new(Outcome::Inconclusive, vec![Reason::NotTimed]);
                    (time, ending.mended_by(Remedy::MeasureAgain))
                }
                (None, Some(_)) => {
                    let notes = self.shorter(level).into_iter().collect();
                    self.stored.judge(time, &past, About { notes, ..About::default() })
                }
            };
            rows.push(ending.row(subject(level), Evidence::Time(time)));
        }
        rows
    }

    /// Why nothing of a level is judged that the sessions know as `known`; `None` where it is.
    fn unjudged(&self, known: &[Known]) -> Option<Ending> {
        let head = self.head;
        if let Some(what) = head.invalid.first() {
            return Some(Ending::new(Outcome::Invalid, vec![Reason::Broken { what: what.clone() }]));
        }
        if head.partial {
            return Some(Ending::new(Outcome::Partial, vec![Reason::CutShort]));
        }
        let ending = |reasons| Ending::new(self.stored.without_baseline(), reasons);
        if self.base.is_none() {
            return Some(ending(vec![Reason::NoBaseline]).mended_by(Remedy::Bless));
        }
        if !self.other_setup.is_empty() {
            return Some(ending(self.other_setup.clone()));
        }
        known.is_empty().then(|| ending(vec![Reason::NoSession]).mended_by(Remedy::Bless))
    }

    /// A level of far fewer requests scatters more than those the limit was made from.
    fn shorter(&self, level: &LoadSessionLevel) -> Option<Reason> {
        let usual = self.known(level).iter().map(|known| known.level.measured).min()?;
        let requests = level.measured;
        (requests < usual / 2).then_some(Reason::FewerRequests { requests, usual })
    }
}

/// What a verdict calls a level: `load:chatbot/8 users`.
fn subject(level: &LoadSessionLevel) -> Subject {
    Name::new("load", &level.name()).map_or(Subject::Process, Subject::Named)
}

/// Levels of the newest session that were not run.
fn missing(base: Option<&LoadBaseline>, levels: &[&LoadSessionLevel]) -> Vec<Subject> {
    let run: HashSet<String> = levels.iter().map(|level| level.key()).collect();
    let newest = base.and_then(|base| base.sessions.last()).into_iter().flat_map(|session| &session.levels);
    newest.filter(|level| !run.contains(&level.key())).map(subject).collect()
}

/// What may explain a change.
fn differences(base: &LoadBaseline, run: &LoadBaseline) -> Vec<Note> {
    fn value<'a>(session: &'a LoadSession, key: &str) -> &'a str {
        session.conditions.get(key).map_or("none", String::as_str)
    }
    let mut notes = Vec::new();
    let classes = (&base.machine.class, &run.machine.class);
    if classes.0 != classes.1 {
        notes.push(Note::OtherMachine { base: classes.0.clone(), head: classes.1.clone() });
    }
    let Some(head) = run.sessions.last() else { return notes };
    let newest = base.sessions.last().into_iter().flat_map(|session| session.conditions.keys());
    let keys: BTreeSet<&String> = head.conditions.keys().chain(newest).collect();
    for key in keys {
        notes.extend(other_sessions(key, value(head, key), base.sessions.iter().map(|session| value(session, key))));
    }
    notes
}
