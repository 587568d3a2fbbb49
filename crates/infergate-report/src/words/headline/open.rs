//! What is not decided, why, and what to do about it.

use std::collections::HashSet;

use super::{Others, and_more, name};
use crate::{units, words};
use infergate_receipts::{Note, Outcome, Reason, Subject, TimeEvidence, Verdict, VerdictRow};

/// Why there is no decision: of the run as a whole, or of the row that it stopped at.
pub fn sentence(verdict: &Verdict) -> String {
    let is_missing = |note: &&Note| matches!(note, Note::NotRun { .. });
    let note = || verdict.notes.iter().find(is_missing).or(verdict.notes.last()).map(words::note);
    let said = whole_run(verdict).or_else(|| row(verdict)).or_else(note);
    said.unwrap_or_else(|| "nothing was compared".into())
}

/// What leaves nothing of the run to be judged.
fn whole_run(verdict: &Verdict) -> Option<String> {
    let mut notes = verdict.notes.iter();
    match verdict.verdict {
        Outcome::Invalid => {
            let broken = |note: &Note| if let Note::Broken { what } = note { Some(what.clone()) } else { None };
            let mut broken = notes.filter_map(broken);
            let first = broken.next()?;
            let is_judged = |row: &VerdictRow| row.time().is_some() && row.outcome != Outcome::Invalid;
            let what = if verdict.rows.iter().any(is_judged) { "not all" } else { "nothing" };
            Some(format!("{what} is judged: {first}{}", and_more(broken.count())))
        }
        Outcome::Partial => notes.find(|note| matches!(note, Note::CutShort { base: false })).map(words::note),
        _ => None,
    }
}

/// `decode and 2 more are not decided (+1.2 %; 95 %: -0.5 to +3.0 %): too noisy to judge in 24 blocks`.
fn row(verdict: &Verdict) -> Option<String> {
    let row = verdict.deciding()?;
    let mut open: HashSet<&Subject> =
        verdict.rows.iter().filter(|row| row.outcome.exit_code() != 0).map(|row| &row.subject).collect();
    open.remove(&row.subject);
    let verb = if open.is_empty() { "is" } else { "are" };
    let ending = match row.outcome {
        Outcome::Unstable | Outcome::Inconclusive => "not decided",
        Outcome::Invalid => "not judged",
        Outcome::Partial => "not measured to the end",
        Outcome::Failed => "not measured",
        other => other.words(),
    };
    let size = row.time().filter(|_| row.outcome.is_undecided()).map_or_else(String::new, size);
    let why = words::sentence(row).map_or_else(String::new, |why| format!(": {why}"));
    let name = name(verdict, &row.subject);
    let warned = if verdict.passes_undecided() { "; undecided = \"warn\" lets it pass" } else { "" };
    let said = format!("{name}{} {verb} {ending}{size}{why}{}{warned}", and_more(open.len()), advice(row));
    Some(Others { open: 0, memory_open: false, ..Others::of(verdict) }.behind(said, verdict))
}

/// Where the change lies, as far as that is known.
fn size(time: &TimeEvidence) -> String {
    let Some(ratio) = time.ratio else { return String::new() };
    let ends = time.interval.map_or_else(String::new, |ends| {
        format!("; {}: {}", units::level(ends.level), units::signed_range(ends.low - 1.0, ends.high - 1.0))
    });
    format!(" ({}{ends})", units::signed_percent(ratio - 1.0))
}

/// What to do where the row does not say it.
fn advice(row: &VerdictRow) -> &'static str {
    let is_noisy = row.reasons.iter().any(|reason| matches!(reason, Reason::TooNoisy { .. } | Reason::Noisy { .. }));
    let has_few = row.reasons.iter().any(|reason| matches!(reason, Reason::TooFewBlocks { .. }));
    match (&row.remedy, row.is_undecided()) {
        (None, true) if is_noisy => "; measure again on a quieter machine",
        (None, true) if has_few => "; measure again",
        _ => "",
    }
}
