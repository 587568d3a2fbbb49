//! What fails: a clause a kind, time first, the largest first of each.

use std::collections::HashSet;

use infergate::case::Phase;
use infergate::printable::printable_within;

use super::{Others, and_more, name};
use crate::receipt::{
    Against, CounterEvidence, Evidence, MemoryEvidence, Metric, Outcome, OutputEvidence, Reason, Statistic, Subject,
    TargetEvidence, TimeEvidence, Unit, Verdict, VerdictRow, Witness,
};
use crate::report::{units, words};

/// Counters that are named.
const MOST_COUNTERS: usize = 2;
/// Characters of a counter's name. A receipt is someone else's file.
const MAX_NAME_CHARS: usize = 60;
/// A rise below this share of base is said without it.
const LEAST_SHARE: f64 = 0.0005;

/// The clauses of all that fails, and how the other cases ended.
pub fn sentence(verdict: &Verdict) -> String {
    let failed: Vec<&VerdictRow> = verdict.rows.iter().filter(|row| row.outcome.exit_code() == 1).collect();
    let clauses = clauses(verdict, &failed);
    let said = if clauses.is_empty() { verdict.verdict.words().to_owned() } else { clauses.join("; ") };
    Others::of(verdict).behind(said, verdict)
}

/// A clause for each kind of evidence among `rows`.
pub fn clauses(verdict: &Verdict, rows: &[&VerdictRow]) -> Vec<String> {
    let kinds =
        [times(verdict, rows), outputs(verdict, rows), memory(rows), counters(verdict, rows), targets(verdict, rows)];
    kinds.into_iter().flatten().collect()
}

/// `decode 5.7 % slower (15.5 to 16.2 ms; 95 %: +4.8 to +6.5 %), generate 5.6 % slower and 3 more`.
pub fn times(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let mut timed: Vec<(&VerdictRow, &TimeEvidence)> =
        rows.iter().filter_map(|row| Some((*row, row.time()?))).collect();
    let size = |time: &TimeEvidence| time.ratio.map_or(0.0, |ratio| (ratio - 1.0).abs());
    timed.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
    // Each case by the largest of its times.
    let mut seen: HashSet<&Subject> = HashSet::new();
    timed.retain(|(row, _)| seen.insert(&row.subject));
    let ((row, time), others) = timed.split_first()?;
    let second = others.first().map_or_else(String::new, |(row, time)| format!(", {}", moved(verdict, row, time)));
    let more = and_more(others.len().saturating_sub(1));
    Some(format!("{}{}{second}{more}", moved(verdict, row, time), details(time)))
}

/// `decode 5.7 % slower`, `TTFT of chatbot/2 users 50 % longer`.
pub fn moved(verdict: &Verdict, row: &VerdictRow, time: &TimeEvidence) -> String {
    let name = name(verdict, &row.subject);
    let is_usual = row.subject.case().is_some_and(|case| Metric::of(&case) == time.metric);
    let what = match (time.statistic, is_usual) {
        (Statistic::Median, true) => name,
        (Statistic::Mean, true) => format!("the mean of {name}"),
        (Statistic::Median, false) => format!("{} of {name}", words::metric(time.metric)),
        (Statistic::Mean, false) => format!("mean {} of {name}", words::metric(time.metric)),
    };
    let Some(change) = time.ratio.map(|ratio| ratio - 1.0) else { return format!("{what} {}", row.outcome.words()) };
    let direction = match (change < 0.0, is_usual) {
        (true, true) => "faster",
        (true, false) => "shorter",
        (false, true) => "slower",
        (false, false) => "longer",
    };
    let than = if time.against == Against::Anchor { " than the anchor" } else { "" };
    format!("{what} {} {direction}{than}", units::percent(Some(change.abs())))
}

/// Both times, where they moved as their pairs did, and the interval of the change.
fn details(time: &TimeEvidence) -> String {
    let Some(ratio) = time.ratio else { return String::new() };
    let times = time.base_ns.zip(time.head_ns).filter(|(base, head)| (head > base) == (ratio > 1.0));
    let times = times.map(|(base, head)| units::durations(base, head));
    let interval = time
        .interval
        .map(|ends| format!("{}: {}", units::level(ends.level), units::signed_range(ends.low - 1.0, ends.high - 1.0)));
    let parts: Vec<String> = times.into_iter().chain(interval).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// `the model says something else from token 34 on (generate), and 2 more cases changed; their times were not judged`.
fn outputs(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let changed: Vec<(&VerdictRow, &OutputEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Output(output) = &row.evidence { Some((*row, output)) } else { None })
        .collect();
    let is_of_model = |row: &VerdictRow| row.subject.case().is_some_and(|case| case.phase() != Phase::Bench);
    let parted = changed.iter().filter(|(row, _)| is_of_model(row));
    let parted = parted.filter_map(|(row, output)| Some((*row, output.position?))).min_by_key(|(_, at)| *at);
    let (row, output) = changed.iter().find(|(row, _)| is_of_model(row)).or(changed.first())?;
    let first = match parted {
        Some((row, at)) => format!("the model says something else from token {} on{}", at + 1, among(verdict, row)),
        None if is_of_model(row) => {
            let by = output.max_abs_logit_delta.map(|delta| format!(" by up to {delta:.1e} a logit"));
            format!("the model computes other numbers{}{}", by.unwrap_or_default(), among(verdict, row))
        }
        None => format!("{} returns something else", name(verdict, &row.subject)),
    };
    let others = changed.len() - 1;
    let more = if others > 0 { format!(", and {} changed", units::many(others, "more case")) } else { String::new() };
    let times = if is_timed(verdict, &changed) {
        ""
    } else if others > 0 {
        "; their times were not judged"
    } else {
        "; its time was not judged"
    };
    Some(format!("{first}{more}{times}"))
}

/// ` (generate)`, where more outputs than this one were compared.
fn among(verdict: &Verdict, row: &VerdictRow) -> String {
    let outputs = verdict.rows.iter().filter(|row| matches!(row.evidence, Evidence::Output(_)));
    if outputs.count() > 1 { format!(" ({})", name(verdict, &row.subject)) } else { String::new() }
}

/// Whether a time of one of these was judged all the same.
fn is_timed(verdict: &Verdict, changed: &[(&VerdictRow, &OutputEvidence)]) -> bool {
    let subjects: HashSet<&Subject> = changed.iter().map(|(row, _)| &row.subject).collect();
    let judged = verdict.rows.iter().filter(|row| row.time().is_some() && row.outcome != Outcome::Advisory);
    judged.map(|row| &row.subject).any(|subject| subjects.contains(subject))
}

/// `the heap grows by 542 B a run over 100 runs`: the heap, which is counted, before what is resident.
fn memory(rows: &[&VerdictRow]) -> Option<String> {
    let grown: Vec<(Outcome, &MemoryEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Memory(memory) = &row.evidence { Some((row.outcome, memory)) } else { None })
        .collect();
    let (outcome, memory) = grown.iter().find(|(_, memory)| memory.witness == Witness::Heap).or(grown.first())?;
    let what = match memory.witness {
        Witness::Heap => "the heap",
        Witness::Resident => "resident memory",
    };
    let runs = memory.runs.map_or_else(String::new, |runs| format!(" over {}", units::many(runs, "run")));
    Some(match memory.slope_bytes {
        _ if *outcome == Outcome::Growth => format!("{what} grew beyond its limit{runs}"),
        Some(slope) => format!("{what} grows by {} a run{runs}", units::bytes(Some(slope))),
        None => format!("{what} grows{runs}"),
    })
}

/// `36.0 KiB more allocated a token (+5.3 %), 24 more allocations a token (+4.3 %)`: each counter by its largest rise.
fn counters(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let mut risen: Vec<(&VerdictRow, &CounterEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Counter(counter) = &row.evidence { Some((*row, counter)) } else { None })
        .collect();
    // What rises from nothing has no share: the more, the larger.
    risen.sort_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)).then_with(|| b.rise().cmp(&a.rise())));
    let mut names: HashSet<&str> = HashSet::new();
    let firsts: Vec<&(&VerdictRow, &CounterEvidence)> =
        risen.iter().filter(|(_, counter)| names.insert(&counter.name)).collect();
    let said: Vec<String> =
        firsts.iter().take(MOST_COUNTERS).map(|(row, counter)| rise(verdict, row, counter, &risen)).collect();
    (!said.is_empty()).then(|| format!("{}{}", said.join(", "), and_more(firsts.len().saturating_sub(MOST_COUNTERS))))
}

/// The rise as a fraction of base; infinite from nothing.
fn share(counter: &CounterEvidence) -> f64 {
    let (Some(rise), Some(base)) = (counter.rise(), counter.base) else { return 0.0 };
    if rise == 0 { 0.0 } else { rise as f64 / base.max as f64 }
}

/// One counter, and where it rose unless that is everywhere.
fn rise(
    verdict: &Verdict,
    row: &VerdictRow,
    counter: &CounterEvidence,
    risen: &[(&VerdictRow, &CounterEvidence)],
) -> String {
    let own: Vec<&CounterEvidence> =
        risen.iter().map(|(_, other)| *other).filter(|other| other.name == counter.name).collect();
    let is_own = |row: &&VerdictRow| matches!(&row.evidence, Evidence::Counter(other) if other.name == counter.name);
    let is_everywhere = own.len() == verdict.rows.iter().filter(is_own).count();
    let is_alike = own.iter().all(|other| other.rise() == counter.rise());
    let place = if is_everywhere && is_alike {
        String::new()
    } else {
        format!(" in {}{}", name(verdict, &row.subject), and_more(own.len() - 1))
    };
    let share = Some(share(counter)).filter(|share| share.is_finite() && *share >= LEAST_SHARE);
    let share = share.map_or_else(String::new, |share| format!(" (+{})", units::percent(Some(share))));
    format!("{}{share}{place}", counted(row, counter))
}

/// `24 more allocations a token`; of requests under load how many of all.
fn counted(row: &VerdictRow, counter: &CounterEvidence) -> String {
    let requests = row.reasons.iter().find_map(|reason| match reason {
        Reason::MoreFail { failed, issued, .. } => Some(format!("{failed} of {issued} requests")),
        _ => None,
    });
    match (requests, counter.name.as_str()) {
        (Some(requests), "failed_requests") => return format!("{requests} failed"),
        (Some(requests), "starved_requests") => return format!("{requests} starved"),
        (Some(requests), "wrong_length_requests") => return format!("{requests} ended at a wrong length"),
        _ => {}
    }
    let rise = counter.rise().unwrap_or_default();
    let size = match counter.unit {
        Unit::Bytes => units::bytes(Some(rise as f64)),
        Unit::Number => rise.to_string(),
    };
    let plural = if rise == 1 { "" } else { "s" };
    match counter.name.as_str() {
        "allocations_per_token" => format!("{size} more allocation{plural} a token"),
        "allocations_per_prefill" => format!("{size} more allocation{plural} a prefill"),
        "allocated_bytes_per_token" => format!("{size} more allocated a token"),
        "allocated_bytes_per_prefill" => format!("{size} more allocated a prefill"),
        "peak_live_bytes" => format!("{size} more live at the peak"),
        "end_live_bytes" => format!("{size} more live at the end"),
        "weight_bytes" => format!("{size} more of weights"),
        other => format!("{} +{size}", printable_within(&other.replace('_', " "), MAX_NAME_CHARS)),
    }
}

/// `prefill misses its target (prefill/* ttft_ms < 1) with 1.21`.
fn targets(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let missed: Vec<(&VerdictRow, &TargetEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Target(target) = &row.evidence { Some((*row, target)) } else { None })
        .collect();
    let ((row, target), others) = missed.split_first()?;
    let with = target.value.map_or_else(String::new, |value| format!(" with {}", units::number(value)));
    let name = name(verdict, &row.subject);
    Some(format!("{name} misses its target ({}){with}{}", target.target, and_more(others.len())))
}
