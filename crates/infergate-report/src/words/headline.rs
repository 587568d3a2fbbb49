//! What happened, in one line: the first of a comment, the last of a terminal, `headline` in the verdict file. It is made of the
//! verdict's rows and notes alone: the worst row of each kind, or what a pass rests on.

use std::collections::{BTreeMap, HashSet};

use infergate_core::printable::printable;

use crate::{units, words};
use infergate_receipts::{
    Against, Evidence, MemoryMeasure, Note, Outcome, OutputComparison, Reason, Shown, Statistic, Subject, TimeEvidence,
    Verdict, VerdictRow,
};

/// `3 of 5 regressed: decode/p128 +9.5 % (28.3 → 31.0 ms)`, fit for a terminal.
pub fn line(verdict: &Verdict) -> String {
    format!("{}: {}", outcome(verdict), of(verdict))
}

/// How it ended, and of how many cases: `3 of 5 regressed`.
pub fn outcome(verdict: &Verdict) -> String {
    let words = verdict.verdict.words();
    let so = subjects(cases(verdict).filter(|row| row.outcome == verdict.verdict));
    let all = subjects(cases(verdict));
    let is_of_cases = verdict.verdict.exit_code() != 0 && so > 0 && all > 1 && whole_run(verdict).is_none();
    match is_of_cases {
        false => words,
        // `output changed in 2 of 5`, `2 of 5 regressed`.
        true if words.contains(' ') => format!("{words} in {so} of {all}"),
        true => format!("{so} of {all} {words}"),
    }
}

/// The rest of the line.
pub fn of(verdict: &Verdict) -> String {
    let mut parts = whole_run(verdict).map_or_else(|| clauses(&shown(verdict)), |why| vec![why]);
    parts.extend(fails_otherwise(verdict));
    if verdict.verdict.exit_code() == 0 {
        parts.extend(rests_on(verdict));
    } else if parts.is_empty() {
        parts.extend(verdict.notes.last().map(words::note));
    }
    if verdict.passes_undecided() {
        parts.push("inconclusive = \"warn\" allows it".into());
    }
    let line = if parts.is_empty() { "nothing was compared".into() } else { parts.join("; ") };
    printable(&line).into_owned()
}

/// The rows that it names: what fails as the verdict says; else what is open; else what a pass has that somebody has to know. By the kind
/// of evidence, and the largest change first.
fn shown(verdict: &Verdict) -> Vec<&VerdictRow> {
    let exit_code = verdict.verdict.exit_code();
    let is_shown = |row: &&VerdictRow| match exit_code {
        0 => matches!(row.outcome, Outcome::Accepted | Outcome::Improved),
        1 => row.outcome == verdict.verdict,
        _ => row.outcome.severity() == verdict.verdict.severity(),
    };
    let mut rows: Vec<&VerdictRow> = verdict.rows.iter().filter(is_shown).collect();
    rows.sort_by(|a, b| kind(a).cmp(&kind(b)).then_with(|| size(b).total_cmp(&size(a))));
    rows
}

fn kind(row: &VerdictRow) -> u8 {
    match row.evidence {
        Evidence::Time(_) => 0,
        Evidence::Output(_) => 1,
        Evidence::Memory(_) => 2,
        Evidence::Counter(_) => 3,
        Evidence::Target(_) => 4,
    }
}

/// How much a row moved among those of its kind.
pub fn size(row: &VerdictRow) -> f64 {
    match &row.evidence {
        Evidence::Time(time) => time.ratio.map_or(0.0, |ratio| ratio.ln().abs()),
        // Which is counted exactly.
        Evidence::Memory(memory) => f64::from(memory.measure == MemoryMeasure::Heap),
        Evidence::Counter(counter) => {
            counter.rise().zip(counter.base).map_or(0.0, |(rise, base)| rise as f64 / base.max as f64)
        }
        // Another token says more than other numbers.
        Evidence::Output(output) => f64::from(output.position.is_some()),
        Evidence::Target(_) => 0.0,
    }
}

/// The first row of each kind.
fn clauses(rows: &[&VerdictRow]) -> Vec<String> {
    let firsts = rows.chunk_by(|a, b| kind(a) == kind(b)).filter_map(|rows| rows.first());
    // Where it is slower, why that is meant, and what to do about a failure stand below.
    let clause = |row: &VerdictRow| {
        let mut row = row.clone();
        let fails = row.outcome.exit_code() == 1;
        let is_change = fails && words::changed(&row).is_some();
        row.reasons.retain(|reason| !is_change && !matches!(reason, Reason::Accepted { .. }));
        row.remedy.take_if(|_| fails);
        words::decided(&row) + if row.outcome == Outcome::Accepted { ", intended" } else { "" }
    };
    firsts.map(|row| clause(row)).collect()
}

/// `also counter regressed in 5 cases`: what fails in another way than the verdict says.
fn fails_otherwise(verdict: &Verdict) -> Option<String> {
    let mut cases: BTreeMap<String, HashSet<&Subject>> = BTreeMap::new();
    for row in verdict.rows.iter().filter(|row| row.outcome.exit_code() == 1 && row.outcome != verdict.verdict) {
        cases.entry(row.outcome.words()).or_default().insert(&row.subject);
    }
    let other = |(words, cases): (&String, &HashSet<_>)| format!("{words} in {}", units::many(cases.len(), "case"));
    (!cases.is_empty()).then(|| format!("also {}", units::listed(cases.iter().map(other))))
}

/// How many subjects rows are of.
fn subjects<'a>(rows: impl Iterator<Item = &'a VerdictRow>) -> usize {
    rows.map(|row| &row.subject).collect::<HashSet<_>>().len()
}

/// What leaves nothing of the run to be judged.
fn whole_run(verdict: &Verdict) -> Option<String> {
    let of_outcome = |note: &&Note| match note {
        Note::Broken { .. } => verdict.verdict == Outcome::Invalid,
        Note::CutShort { base } => verdict.verdict == Outcome::Partial && !base,
        Note::NotRun { .. } => verdict.verdict == Outcome::NotComparable,
        _ => false,
    };
    let mut notes = verdict.notes.iter().filter(of_outcome);
    let first = match notes.next()? {
        Note::Broken { what } => what.clone(),
        note => words::note(note),
    };
    let more = notes.count();
    Some(if more > 0 { format!("{first} ({})", units::many(more, "more reason")) } else { first })
}

/// The rows of cases and of levels under load. The memory phase follows a generation of its own, which is no case of the suite.
fn cases(verdict: &Verdict) -> impl Iterator<Item = &VerdictRow> {
    let is_case = |row: &&VerdictRow| matches!(row.subject, Subject::Case(_) | Subject::Load(_));
    verdict.rows.iter().filter(is_case).filter(|row| row.memory().is_none())
}

/// `5 cases with the same output, none slower (a slowdown of 2.6 % would show), no leak in 100 runs (1 B in each run would show)`.
fn rests_on(verdict: &Verdict) -> Option<String> {
    // What only has targets was compared with nothing.
    let count = subjects(cases(verdict).filter(|row| !matches!(row.evidence, Evidence::Target(_))));
    let is_load = cases(verdict).all(|row| matches!(row.subject, Subject::Load(_)));
    let noun = if is_load { "load level" } else { "case" };
    let cases = (count > 0).then(|| units::many(count, noun) + &outputs(verdict));
    let mut parts: Vec<String> = cases.into_iter().chain(times(verdict)).chain(memory(verdict)).collect();
    let is_met = |row: &&VerdictRow| matches!(row.evidence, Evidence::Target(_)) && row.outcome == Outcome::Pass;
    let met = verdict.rows.iter().filter(is_met).count();
    parts.extend((met > 0).then(|| format!("{} met", units::many(met, "target"))));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// ` with the same output`, or how many outputs compare in which way.
fn outputs(verdict: &Verdict) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in cases(verdict) {
        if let Evidence::Output(output) = &row.evidence
            && output.comparison != OutputComparison::NotGiven
        {
            *counts.entry(words::output(row, output)).or_default() += 1;
        }
    }
    if counts.keys().all(|words| *words == "same") {
        return if counts.is_empty() { String::new() } else { " with the same output".into() };
    }
    format!(" (output: {})", units::listed(counts.iter().map(|(words, count)| format!("{count} {words}"))))
}

/// How slow a case could be unseen, and what was not judged.
fn times(verdict: &Verdict) -> Vec<String> {
    // A mean is no case of its own where its median failed, or was accepted.
    let is_timed = |row: &&VerdictRow| {
        row.time().is_some_and(|time| time.counted) && !row.reasons.contains(&Reason::MedianRegressed)
    };
    let timed = || verdict.rows.iter().filter(is_timed);
    let of = |outcome: Outcome| timed().filter(move |row| row.outcome == outcome);
    let is_slower = |row: &&VerdictRow| row.time().and_then(words::tendency) == Some(Shown::Slower);
    let mut slower: Vec<&VerdictRow> = of(Outcome::WithinLimit).filter(is_slower).collect();
    slower.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut parts: Vec<String> = clauses(&slower).iter().map(|slower| format!("{slower}, within the limit")).collect();
    let judged = timed().filter(|row| matches!(row.outcome, Outcome::Pass | Outcome::WithinLimit | Outcome::Improved));
    let judged: Vec<&TimeEvidence> = judged.filter_map(VerdictRow::time).collect();
    if parts.is_empty() && !judged.is_empty() {
        let none = if of(Outcome::Accepted).count() > 0 { "no other" } else { "none" };
        parts.push(format!("{none} slower{}", would_show(&judged)));
    }
    for outcome in [Outcome::SameCode, Outcome::Layout, Outcome::Advisory] {
        let Some(first) = of(outcome).next() else { continue };
        if outcome == Outcome::SameCode && verdict.notes.contains(&Note::SameCode) {
            parts.push("not timed: both sides are the same machine code".into());
            continue;
        }
        let why = words::sentence(first).map_or_else(String::new, |why| format!(": {why}"));
        parts.push(format!("{} {}{why}", subjects(of(outcome)), outcome.words()));
    }
    parts
}

/// The largest slowdown that a case could have had unseen; of a baseline's sessions the largest limit.
fn would_show(judged: &[&TimeEvidence]) -> String {
    let medians = || judged.iter().filter(|time| time.statistic == Statistic::Median);
    let largest =
        |ratios: Option<Vec<f64>>| ratios?.into_iter().reduce(f64::max).map(|ratio| units::percent(ratio - 1.0));
    if medians().all(|time| time.against == Against::Baseline) {
        let limit = largest(medians().map(|time| time.threshold).collect());
        return limit.map_or_else(String::new, |limit| format!(" by more than {limit}"));
    }
    let smallest = largest(medians().map(|time| time.smallest_slowdown).collect());
    smallest.map_or_else(|| " beyond its limit".into(), |smallest| format!(" (a slowdown of {smallest} would show)"))
}

/// `no leak in 100 runs (1 B in each run would show)`: by the heap, which is counted, or by what is resident. How far a plateau is one
/// stands in its own words.
fn memory(verdict: &Verdict) -> Option<String> {
    let followed = verdict.rows.iter().filter(|row| matches!(row.outcome, Outcome::Pass | Outcome::Plateau));
    let followed = followed.filter_map(|row| Some((row, row.memory()?)));
    let (row, memory) = followed.min_by_key(|(_, memory)| memory.measure != MemoryMeasure::Heap)?;
    if row.outcome == Outcome::Plateau {
        return words::sentence(row);
    }
    let runs = memory.runs.map_or_else(String::new, |runs| format!(" in {}", units::many(runs, "run")));
    let what = if memory.measure == MemoryMeasure::Heap { "" } else { " of resident memory" };
    let seen = memory.smallest_leak_bytes.map(|leak| format!(" ({}{what} in each run would show)", units::bytes(leak)));
    Some(format!("no leak{runs}{}", seen.unwrap_or_default()))
}
