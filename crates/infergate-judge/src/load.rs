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

use super::stored::{About, Ending, Stored};
use super::{Policy, against_one_run, decide, stretches};
use infergate_receipts::Scenario;
use infergate_receipts::{
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
        let other_setup = base.map_or_else(Vec::new, |base| base.differing_setup(&run.setup));
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
            other_setup: other_setup
                .into_iter()
                .take(MOST_REASONS)
                .map(|(what, base, head)| other_load(&what, &base, &head))
                .collect(),
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
            let ending = Ending::new(self.stored.without_baseline(), vec![Reason::NoBaseline]);
            return Some(ending.mended_by(Remedy::Bless));
        };
        if !self.other_setup.is_empty() {
            return Some(Ending::new(self.stored.without_baseline(), self.other_setup.clone()));
        }
        known
            .is_empty()
            .then(|| Ending::new(self.stored.without_baseline(), unknown_level(base, level)).mended_by(Remedy::Bless))
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
