//! Load runs on the stored channel: medians and throughput of each level against the sessions of a baseline, by the limit that
//! the cases of a suite have.
//!
//! Requests that fail and answers of a wrong length are judged from the first session on (`requests`). Levels and set-ups that only
//! one side has are named; they are not comparable where a baseline is required.
//!
//! The suite's level alpha is shared among all times of the run, and once more among all counts of requests.

mod requests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Context, Result};
use infergate_core::load::{Arrivals, Spacing};
use infergate_core::printable::{printable, printable_within};

use super::stored::{geometric_mean, stored_limit, too_few};
use super::{Policy, against_one_run, decide, newest_of_each_day};
use crate::receipt::Scenario;
use crate::receipt::{
    Against, Evidence, LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, Name, Note, Outcome, Reason, Remedy,
    Subject, TimeEvidence, Verdict, VerdictRow,
};

/// Bytes of a level's name; a [`Name`] takes no more.
const MAX_NAME_BYTES: usize = 200;
/// Characters of what a file says about itself, in each row.
const MAX_SAID_CHARS: usize = 200;
/// Differing parts of a set-up that each row names.
const MOST_REASONS: usize = 3;
/// Differing conditions that a verdict names.
const MOST_DIFFERENCES: usize = 100;

/// Judges a run against the baseline of its machine class, or against none.
///
/// # Errors
/// A policy out of range; the receipt of one shard.
pub fn judge(head: &LoadReceipt, base: Option<&LoadBaseline>, policy: &Policy) -> Result<Verdict> {
    policy.validate()?;
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
    let stored = Stored::new(head, base, &run, policy);
    let of_levels = levels.iter().zip(head.requests_of_levels());
    let requests = of_levels.flat_map(|(level, requests)| stored.requests(level, &requests));
    let times = levels.iter().flat_map(|level| stored.times(level));
    let rows = requests.chain(times).collect();
    let verdict = decide((&head.invalid, head.partial), head.levels.is_empty(), rows, notes);
    if is_missing && policy.require_baseline && verdict.exit_code == 0 {
        return Ok(verdict.at_best(Outcome::NotComparable));
    }
    Ok(verdict)
}

/// Compares two runs. One session is no spread: time is advisory.
///
/// # Errors
/// As [`judge`].
pub fn compare(base: &LoadReceipt, head: &LoadReceipt, policy: &Policy) -> Result<Verdict> {
    base.ensure_whole().context("the base run")?;
    let verdict = judge(head, Some(&LoadBaseline::from_receipt(base)), policy)?;
    Ok(against_one_run(verdict, base.partial, &base.invalid))
}

/// The stored channel for one load run.
struct Stored<'a> {
    head: &'a LoadReceipt,
    base: Option<&'a LoadBaseline>,
    policy: &'a Policy,
    /// The sessions' levels, by their keys.
    known: HashMap<String, Vec<Known<'a>>>,
    /// Why nothing of the run can be compared.
    other_setup: Vec<Reason>,
    /// Times that are judged together, and counts.
    times: usize,
    counts: usize,
}

/// A level of a session, and when that session began.
#[derive(Clone, Copy)]
struct Known<'a> {
    created: &'a str,
    level: &'a LoadSessionLevel,
}

/// How a row ends, and why.
#[derive(Clone)]
struct Ending {
    outcome: Outcome,
    reasons: Vec<Reason>,
    remedy: Option<Remedy>,
}

impl Ending {
    fn new(outcome: Outcome, reasons: Vec<Reason>) -> Self {
        Self { outcome, reasons, remedy: None }
    }

    fn mended_by(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    fn row(self, level: &LoadSessionLevel, evidence: Evidence) -> VerdictRow {
        let Self { outcome, reasons, remedy } = self;
        VerdictRow { reasons, remedy, ..VerdictRow::new(subject(level), outcome, evidence) }
    }
}

impl<'a> Stored<'a> {
    fn new(head: &'a LoadReceipt, base: Option<&'a LoadBaseline>, run: &LoadBaseline, policy: &'a Policy) -> Self {
        let mut known: HashMap<String, Vec<Known>> = HashMap::new();
        for session in base.into_iter().flat_map(|base| &base.sessions) {
            for level in &session.levels {
                known.entry(level.key()).or_default().push(Known { created: &session.created, level });
            }
        }
        let other_setup = base.map_or_else(Vec::new, |base| base.differing_setup(&run.setup));
        let levels = || run.sessions.iter().flat_map(|session| &session.levels);
        Self {
            head,
            base,
            policy,
            known,
            other_setup: other_setup
                .into_iter()
                .take(MOST_REASONS)
                .map(|(what, base, head)| other_load(&what, &base, &head))
                .collect(),
            times: levels().flat_map(LoadSessionLevel::times_ns).filter(|(_, ns)| ns.is_some()).count(),
            counts: requests::COUNTS.len() * levels().count(),
        }
    }

    fn known(&self, level: &LoadSessionLevel) -> &[Known<'a>] {
        self.known.get(&level.key()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The medians and the throughput.
    fn times(&self, level: &LoadSessionLevel) -> Vec<VerdictRow> {
        let known = self.known(level);
        let unjudged = self.unjudged(level, known);
        let mut rows = Vec::new();
        for (at, (metric, head_ns)) in level.times_ns().into_iter().enumerate() {
            let past = known.iter().filter_map(|known| Some((known.created, known.level.times_ns()[at].1?)));
            let past: Vec<(&str, f64)> = past.collect();
            let days = newest_of_each_day(past.iter().copied());
            let base_ns = geometric_mean(&days);
            // Answers of one token have no gaps on either side.
            if head_ns.is_none() && base_ns.is_none() {
                continue;
            }
            let time = TimeEvidence {
                base_ns,
                head_ns,
                ratio: head_ns.zip(base_ns).map(|(head, base)| head / base).filter(|ratio| ratio.is_finite()),
                sessions: self.base.map(|_| past.len()),
                days: self.base.map(|_| days.len()),
                ..TimeEvidence::new(metric, Against::Baseline)
            };
            let (time, ending) = match (unjudged.clone(), head_ns) {
                (Some(ending), _) => (time, ending),
                (None, None) => {
                    let ending = Ending::new(Outcome::Inconclusive, vec![Reason::NotTimed]);
                    (time, ending.mended_by(Remedy::MeasureAgain))
                }
                (None, Some(head_ns)) => self.compare(time, level, head_ns, &days),
            };
            rows.push(ending.row(level, Evidence::Time(time)));
        }
        rows
    }

    fn compare(
        &self,
        time: TimeEvidence,
        level: &LoadSessionLevel,
        head_ns: f64,
        days: &[f64],
    ) -> (TimeEvidence, Ending) {
        if days.is_empty() {
            let ending = Ending::new(self.without_baseline(), vec![Reason::NoSession]);
            return (time, ending.mended_by(Remedy::Bless));
        }
        if self.base.is_some_and(|base| base.machine.class != self.head.machine.class) {
            let reason = Reason::OtherMachine { normalised: false };
            return (time, Ending::new(self.without_baseline(), vec![reason]));
        }
        let Some(limit) = stored_limit(days, self.times, self.policy) else {
            let few = too_few(time.sessions.unwrap_or_default(), days.len(), self.policy);
            return (time, Ending::new(Outcome::Advisory, vec![few]));
        };
        let (time, outcome) = limit.weigh(time, head_ns, self.times, self.policy);
        (time, Ending::new(outcome, self.shorter(level).into_iter().collect()))
    }

    /// Why nothing of `level` is judged, which the sessions know as `known`; `None` where it is.
    fn unjudged(&self, level: &LoadSessionLevel, known: &[Known]) -> Option<Ending> {
        let head = self.head;
        if let Some(what) = head.invalid.first() {
            return Some(Ending::new(Outcome::Invalid, vec![Reason::Broken { what: said(what) }]));
        }
        if head.partial {
            return Some(Ending::new(Outcome::Partial, vec![Reason::CutShort]));
        }
        let Some(base) = self.base else {
            let ending = Ending::new(self.without_baseline(), vec![Reason::NoBaseline]);
            return Some(ending.mended_by(Remedy::Bless));
        };
        if !self.other_setup.is_empty() {
            return Some(Ending::new(self.without_baseline(), self.other_setup.clone()));
        }
        known
            .is_empty()
            .then(|| Ending::new(self.without_baseline(), unknown_level(base, level)).mended_by(Remedy::Bless))
    }

    /// How a row ends that has no comparable baseline.
    fn without_baseline(&self) -> Outcome {
        if self.policy.require_baseline { Outcome::NotComparable } else { Outcome::Advisory }
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
    let mut name = String::new();
    for c in printable(&level.name()).chars() {
        if name.len() + c.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        name.push(c);
    }
    Name::new("load", &name).map_or(Subject::Process, Subject::Named)
}

/// Levels of the newest session that were not run.
fn missing(base: Option<&LoadBaseline>, levels: &[&LoadSessionLevel]) -> Vec<Subject> {
    let run: HashSet<String> = levels.iter().map(|level| level.key()).collect();
    let newest = base.and_then(|base| base.sessions.last()).into_iter().flat_map(|session| &session.levels);
    newest.filter(|level| !run.contains(&level.key())).map(subject).collect()
}

/// In what a level differs from those the newest session has.
fn unknown_level(base: &LoadBaseline, level: &LoadSessionLevel) -> Vec<Reason> {
    let newest = || base.sessions.last().into_iter().flat_map(|session| &session.levels);
    let mut same = newest().filter(|known| known.scenario == level.scenario).peekable();
    if same.peek().is_some() {
        let spacing = same.find_map(|known| match (known.arrivals, level.arrivals) {
            (
                Arrivals::Open { requests_per_s: was, spacing },
                Arrivals::Open { requests_per_s: is, spacing: other },
            ) if was == is => Some(other_load("arrivals", &kind(spacing), &kind(other))),
            _ => None,
        });
        return vec![spacing.unwrap_or(Reason::NoSession)];
    }
    let namesake = newest().map(|known| &known.scenario).find(|scenario| scenario.name == level.scenario.name);
    if let Some(namesake) = namesake {
        return other_lengths(namesake, &level.scenario);
    }
    let names: BTreeSet<&str> = newest().map(|known| known.scenario.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().take(MOST_REASONS).collect();
    vec![other_load("scenario", &names.join(", "), &level.scenario.name)]
}

fn other_lengths(base: &Scenario, head: &Scenario) -> Vec<Reason> {
    let lengths = [
        ("input tokens", base.input_tokens, head.input_tokens),
        ("output tokens", base.output_tokens, head.output_tokens),
        ("turns", base.turns, head.turns),
        ("tokens of a further turn", base.turn_tokens, head.turn_tokens),
    ];
    let differ = lengths.into_iter().filter(|(_, base, head)| base != head);
    differ.map(|(what, base, head)| other_load(what, &base.to_string(), &head.to_string())).collect()
}

fn kind(spacing: Spacing) -> String {
    match spacing {
        Spacing::Constant => "constant".into(),
        Spacing::Poisson => "poisson".into(),
        Spacing::Gamma { shape } => format!("gamma:{shape}"),
    }
}

fn other_load(what: &str, base: &str, head: &str) -> Reason {
    Reason::OtherLoad { what: said(what), base: said(base), head: said(head) }
}

fn said(text: &str) -> String {
    printable_within(text, MAX_SAID_CHARS).into_owned()
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
        let is = value(head, key);
        let mut others: BTreeMap<&str, usize> = BTreeMap::new();
        for was in base.sessions.iter().map(|session| value(session, key)).filter(|was| *was != is) {
            *others.entry(was).or_default() += 1;
        }
        notes.extend(others.into_iter().map(|(was, count)| Note::Differs {
            what: key.clone(),
            base: was.into(),
            head: is.into(),
            sessions: Some((count, base.sessions.len())),
            paired: false,
        }));
        notes.truncate(MOST_DIFFERENCES);
    }
    notes
}
