//! What a pass rests on: how many cases, their output, the slowdown and the leak that would have shown. Or why less was looked at.

use std::collections::HashSet;

use super::{and_more, failed, name, noun, observed};
use crate::{units, words};
use infergate_receipts::{
    Against, Evidence, MemoryEvidence, Outcome, OutputComparison, OutputEvidence, Reason, Shown, Statistic, Subject,
    TimeEvidence, Verdict, VerdictRow, Witness,
};

type Timed<'a> = (&'a VerdictRow, &'a TimeEvidence);

/// A smaller change looks like none.
const LEAST_CHANGE: f64 = 0.0005;

/// `5 cases with the same output, none slower (a slowdown from 2.6 % on would show), no leak in 100 runs (1 B in each run would show)`;
/// before it what head declares as intended, and what is faster.
pub fn sentence(verdict: &Verdict) -> String {
    let of = |outcome: Outcome| verdict.rows.iter().filter(|row| row.outcome == outcome).collect::<Vec<&VerdictRow>>();
    let accepted = failed::clauses(verdict, &of(Outcome::Accepted));
    let accepted = (!accepted.is_empty()).then(|| format!("head declares as intended: {}", accepted.join("; ")));
    let faster = failed::times(verdict, &of(Outcome::Improved));
    let parts: Vec<String> = [cases(verdict), memory(verdict), targets(verdict)].into_iter().flatten().collect();
    let whole = (!parts.is_empty()).then(|| parts.join(", "));
    let said: Vec<String> = [accepted, faster, whole, of_requests(verdict)].into_iter().flatten().collect();
    if said.is_empty() { "nothing was compared".into() } else { said.join("; ") }
}

/// `30 of 500 requests failed, in 5 blocks (none of base's), which is shown and not judged`.
fn of_requests(verdict: &Verdict) -> Option<String> {
    let is_worse = |reason: &Reason| matches!(reason, Reason::MoreFail { .. } | Reason::OtherLengths { .. });
    let is_shown = |row: &&VerdictRow| row.outcome == Outcome::Advisory && row.reasons.iter().any(is_worse);
    let rows: Vec<&VerdictRow> = verdict.rows.iter().filter(is_shown).collect();
    failed::counters(verdict, &rows).map(|what| format!("{what}, which is shown and not judged"))
}

fn cases(verdict: &Verdict) -> Option<String> {
    let subjects: HashSet<&Subject> = super::cases(verdict).map(|row| &row.subject).collect();
    if subjects.is_empty() {
        return None;
    }
    let counted = units::many(subjects.len(), noun(verdict));
    let (output, time) = (output(verdict, subjects.len()), time(verdict));
    let is_counted = super::cases(verdict).any(|row| matches!(row.evidence, Evidence::Counter(_)));
    let counters = (output.is_none() && time.is_none() && is_counted).then(|| "no counter is worse".to_owned());
    let begin = output.map_or_else(|| counted.clone(), |output| format!("{counted}{output}"));
    Some([Some(begin), time, counters].into_iter().flatten().collect::<Vec<String>>().join(", "))
}

/// ` with the same output`: what is said of the outputs of `cases` cases; `None` where none was given.
fn output(verdict: &Verdict, cases: usize) -> Option<String> {
    let given: Vec<(Outcome, &OutputEvidence)> = super::cases(verdict).filter_map(given).collect();
    let count =
        |comparison: OutputComparison| given.iter().filter(|(_, output)| output.comparison == comparison).count();
    let (unknown, drifted) = (count(OutputComparison::Unknown), count(OutputComparison::Drifted));
    let accepted = given.iter().filter(|(outcome, _)| *outcome == Outcome::Accepted).count();
    let changed = count(OutputComparison::Changed).saturating_sub(accepted);
    let whose = if given.len() == cases { String::new() } else { format!(", {} of them", given.len()) };
    let said: String = match given.len() {
        0 => return None,
        // Said before, as what head declares.
        all if accepted == all => return None,
        all if unknown == all => "without an output to compare with".into(),
        _ if changed > 0 => format!("with another output in {changed}, which is shown and not judged"),
        _ if unknown + accepted > 0 => "with the same output where there is one to compare with".into(),
        _ if drifted > 0 => "with the same output but for rounding".into(),
        _ => "with the same output".into(),
    };
    Some(format!("{whose} {said}"))
}

/// The output of a row, unless it is one of a bench that says nothing of what it computed.
fn given(row: &VerdictRow) -> Option<(Outcome, &OutputEvidence)> {
    let Evidence::Output(output) = &row.evidence else { return None };
    (output.comparison != OutputComparison::NotGiven).then_some((row.outcome, output))
}

/// What is said of the times that count.
fn time(verdict: &Verdict) -> Option<String> {
    let timed = verdict.rows.iter().filter_map(|row| Some((row, row.time()?)));
    let counted: Vec<Timed<'_>> = timed.filter(|(_, time)| time.counted).collect();
    let of = |is: fn(Outcome) -> bool| counted.iter().copied().filter(|(row, _)| is(row.outcome)).collect::<Vec<_>>();
    let unreached = of(|outcome| outcome == Outcome::SameCode);
    let subjects_of = |rows: &[Timed<'_>]| rows.iter().map(|(row, _)| &row.subject).collect::<HashSet<_>>().len();
    let all = subjects_of(&counted);
    let reached = all - subjects_of(&unreached);
    let is_traced =
        |(row, _): &Timed<'_>| row.reasons.iter().any(|reason| matches!(reason, Reason::RunsNothingChanged { .. }));
    if all > 0 && reached == 0 {
        return Some(match unreached.iter().any(is_traced) {
            true => "nothing timed, as no case runs what changed".into(),
            false => "nothing timed, as base and head are the same machine code".into(),
        });
    }
    let reached = (reached < all).then(|| format!("{reached} of {all} cases run what changed"));
    // What head declares was said before.
    let accepted: HashSet<&Subject> =
        of(|outcome| outcome == Outcome::Accepted).iter().map(|(row, _)| &row.subject).collect();
    let mut judged = of(|outcome| matches!(outcome, Outcome::Pass | Outcome::WithinLimit | Outcome::Improved));
    judged.retain(|(row, _)| !accepted.contains(&row.subject));
    let advisory = of(|outcome| outcome == Outcome::Advisory);
    let is_any = counted.iter().any(|(row, _)| row.outcome != Outcome::Advisory);
    let shown = match subjects(&advisory, Statistic::Median) {
        0 => None,
        _ if !is_any => Some(unjudged(verdict, &advisory)),
        some => Some(format!("time of {some} shown and not judged")),
    };
    let none = if accepted.is_empty() { "none" } else { "none of the others" };
    let parts =
        [reached, slower(verdict, &judged, none), layout(verdict, &of(|outcome| outcome == Outcome::Layout)), shown];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `no baseline: time is advisory`; where something moved, what moved most.
fn unjudged(verdict: &Verdict, advisory: &[Timed<'_>]) -> String {
    let why = advisory.iter().find_map(|(row, _)| row.reasons.iter().find_map(|why| words::reason(row, why)));
    let why = why.unwrap_or_else(|| "time is shown and not judged".into());
    let size = |time: &TimeEvidence| time.ratio.map_or(0.0, |ratio| (ratio - 1.0).abs());
    let most = advisory.iter().max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)));
    let most = most.filter(|(_, time)| size(time) >= LEAST_CHANGE);
    let most = most.map(|(row, time)| format!(" (largest change: {})", failed::moved(verdict, row, time)));
    let is_first = advisory.iter().any(|(row, _)| row.subject.case().is_some() && row.reasons == [Reason::NoBaseline]);
    let next = if is_first { "; `gate --against HEAD` compares your next change" } else { "" };
    format!("{why}{}{next}", most.unwrap_or_default())
}

/// Of how many subjects these times are, by the median or the mean.
fn subjects(times: &[Timed<'_>], statistic: Statistic) -> usize {
    let own = times.iter().filter(|(_, time)| time.statistic == statistic);
    own.map(|(row, _)| &row.subject).collect::<HashSet<_>>().len()
}

/// `none slower (a slowdown from 2.6 % on would show)`, or what is, by less than its limit.
fn slower(verdict: &Verdict, judged: &[Timed<'_>], none: &str) -> Option<String> {
    let is_slower =
        |(row, time): &&Timed<'_>| row.outcome == Outcome::WithinLimit && words::tendency(time) == Some(Shown::Slower);
    let slower: Vec<Timed<'_>> = judged.iter().filter(is_slower).copied().collect();
    let ratio = |time: &TimeEvidence| time.ratio.unwrap_or(1.0);
    let largest = slower.iter().max_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    if let Some((row, time)) = largest {
        let all: HashSet<&Subject> = slower.iter().map(|(row, _)| &row.subject).collect();
        let more = and_more(all.len() - 1);
        return Some(format!("{}{more}, within the limit", failed::moved(verdict, row, time)));
    }
    (!judged.is_empty()).then(|| format!("{none} slower{}", would_show(judged)))
}

/// The largest slowdown that a case could have had unseen; of a baseline's sessions the largest limit.
fn would_show(judged: &[Timed<'_>]) -> String {
    let medians = || judged.iter().map(|(_, time)| time).filter(|time| time.statistic == Statistic::Median);
    let largest = |ratios: Option<Vec<f64>>| ratios?.into_iter().reduce(f64::max);
    if medians().all(|time| time.against == Against::Baseline) {
        let limit = largest(medians().map(|time| time.threshold).collect());
        return limit.map_or_else(String::new, |limit| format!(" by more than {}", units::percent(Some(limit - 1.0))));
    }
    match largest(medians().map(|time| time.smallest_slowdown).collect()) {
        Some(ratio) => format!(" (a slowdown from {} on would show)", units::percent(Some(ratio - 1.0))),
        None => " beyond its limit".into(),
    }
}

/// Cases that are slower at some placements of what changed alone.
fn layout(verdict: &Verdict, times: &[Timed<'_>]) -> Option<String> {
    let ((row, _), _) = times.split_first()?;
    let all: HashSet<&Subject> = times.iter().map(|(row, _)| &row.subject).collect();
    let is = if all.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{}{} {is} slower at some placements of the changed code alone",
        name(verdict, &row.subject),
        and_more(all.len() - 1)
    ))
}

/// `no leak in 100 runs (1 B a run would show)`: by the heap, which is counted, or by what is resident.
fn memory(verdict: &Verdict) -> Option<String> {
    let followed = verdict.rows.iter().filter(|row| matches!(row.outcome, Outcome::Pass | Outcome::Plateau));
    let followed: Vec<(&VerdictRow, &MemoryEvidence)> = followed
        .filter_map(|row| if let Evidence::Memory(memory) = &row.evidence { Some((row, memory)) } else { None })
        .collect();
    let (row, memory) = followed.iter().find(|(_, memory)| memory.witness == Witness::Heap).or(followed.first())?;
    // How far a plateau is one stands in its own words.
    let plateau = || observed(row).unwrap_or_else(|| "memory grew, and no leak shows".into());
    Some(if row.outcome == Outcome::Plateau { plateau() } else { unleaked(memory) })
}

fn unleaked(memory: &MemoryEvidence) -> String {
    let runs = memory.runs.map_or_else(String::new, |runs| format!(" in {}", units::many(runs, "run")));
    let resident = if memory.witness == Witness::Resident { " of resident memory" } else { "" };
    let seen = memory
        .smallest_leak_bytes
        .map_or_else(String::new, |bytes| format!(" ({}{resident} in each run would show)", units::bytes(Some(bytes))));
    format!("no leak{runs}{seen}")
}

fn targets(verdict: &Verdict) -> Option<String> {
    let is_met = |row: &&VerdictRow| matches!(row.evidence, Evidence::Target(_)) && row.outcome == Outcome::Pass;
    let met = verdict.rows.iter().filter(is_met).count();
    (met > 0).then(|| format!("{} met", units::many(met, "target")))
}
