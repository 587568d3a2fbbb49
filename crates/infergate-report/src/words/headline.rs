//! What happened, in one sentence: the first line of a comment, the last of a terminal, `headline` in the verdict file. It is made
//! of the verdict's rows and notes alone, so that it is the same wherever it stands, and says nothing that they do not.

mod failed;
mod open;
mod passed;

use std::collections::HashMap;

use infergate_core::case::Phase;
use infergate_core::printable::printable;

use crate::units;
use crate::words::observed;
use infergate_receipts::{Evidence, Outcome, Subject, Verdict, VerdictRow};

/// The sentence, on one line and fit for a terminal.
pub fn of(verdict: &Verdict) -> String {
    let said = match verdict.verdict.exit_code() {
        0 => passed::sentence(verdict),
        1 => failed::sentence(verdict),
        _ => open::sentence(verdict),
    };
    printable(&said).into_owned()
}

/// The outcomes that the sentence is about: of a verdict that fails each one that fails, in the order of the sentence.
pub fn outcomes(verdict: &Verdict) -> Vec<Outcome> {
    let mut failed: Vec<&VerdictRow> = verdict.rows.iter().filter(|row| row.outcome.exit_code() == 1).collect();
    failed.sort_by_key(|row| place(&row.evidence));
    let mut outcomes: Vec<Outcome> = Vec::new();
    for row in failed.iter().filter(|_| verdict.verdict.exit_code() == 1) {
        if !outcomes.contains(&row.outcome) {
            outcomes.push(row.outcome);
        }
    }
    if outcomes.is_empty() { vec![verdict.verdict] } else { outcomes }
}

/// Where a kind of evidence stands in the sentence.
fn place(evidence: &Evidence) -> u8 {
    match evidence {
        Evidence::Time(_) => 0,
        Evidence::Output(_) => 1,
        Evidence::Memory(_) => 2,
        Evidence::Counter(_) => 3,
        Evidence::Target(_) => 4,
    }
}

/// What people call a subject: `decode` for `decode/p128` where no other case of that phase was compared, a level or a bench
/// without the word that says where its name comes from.
fn name(verdict: &Verdict, subject: &Subject) -> String {
    match subject {
        Subject::Case(case) if case.phase() != Phase::Bench => {
            let mut compared =
                verdict.rows.iter().filter(|row| !is_of_memory(row)).filter_map(|row| row.subject.case());
            let is_alone = compared.all(|other| other == *case || other.phase() != case.phase());
            if is_alone { case.phase().name().into() } else { case.to_string() }
        }
        Subject::Named(name) => name.name().into(),
        other => other.to_string(),
    }
}

/// The memory phase follows a generation of its own, which is no case of the suite.
fn is_of_memory(row: &VerdictRow) -> bool {
    matches!(row.evidence, Evidence::Memory(_))
}

/// The rows of cases and of levels under load: what belongs to the model and the memory phase is none.
fn cases(verdict: &Verdict) -> impl Iterator<Item = &VerdictRow> {
    let is_named = |row: &&VerdictRow| matches!(row.subject, Subject::Case(_) | Subject::Named(_));
    verdict.rows.iter().filter(is_named).filter(|row| !is_of_memory(row))
}

fn noun(verdict: &Verdict) -> &'static str {
    let is_level = |row: &VerdictRow| matches!(&row.subject, Subject::Named(name) if name.source() == "load");
    if cases(verdict).all(is_level) { "load level" } else { "case" }
}

/// How the cases ended that the sentence says nothing of.
struct Others {
    passed: usize,
    open: usize,
    /// The memory phase, which is no case, is open.
    memory_open: bool,
}

impl Others {
    fn of(verdict: &Verdict) -> Self {
        let mut ends: HashMap<&Subject, (u8, bool)> = HashMap::new();
        for row in cases(verdict) {
            let (worst, is_judged) = ends.entry(&row.subject).or_default();
            *worst = (*worst).max(row.outcome.severity());
            *is_judged |= row.outcome != Outcome::Advisory;
        }
        let is_open =
            |worst: u8| worst == Outcome::Inconclusive.severity() || worst == Outcome::NotComparable.severity();
        Self {
            passed: ends.values().filter(|(worst, is_judged)| *worst == 0 && *is_judged).count(),
            open: ends.values().filter(|(worst, _)| is_open(*worst)).count(),
            memory_open: verdict.rows.iter().any(|row| is_of_memory(row) && is_open(row.outcome.severity())),
        }
    }

    /// `said` with a sentence behind it: `3 other cases pass, 1 is not decided`.
    fn behind(&self, said: String, verdict: &Verdict) -> String {
        let others = |count: usize, one: &str, more: &str| {
            let verb = if count == 1 { one } else { more };
            (count > 0).then(|| format!("{} {verb}", units::many(count, &format!("other {}", noun(verdict)))))
        };
        let (passed, open) =
            (others(self.passed, "passes", "pass"), others(self.open, "is not decided", "are not decided"));
        let memory = if self.memory_open { "; whether memory leaks is not decided" } else { "" };
        let parts: Vec<String> = passed.into_iter().chain(open).collect();
        let others = if parts.is_empty() { String::new() } else { format!(". {}", parts.join(", ")) };
        format!("{said}{memory}{others}")
    }
}

/// ` and 3 more`, or nothing.
fn and_more(count: usize) -> String {
    if count > 0 { format!(" and {count} more") } else { String::new() }
}
