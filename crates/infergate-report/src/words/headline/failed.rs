//! What fails: a clause a kind, time first, the largest first of each.

use std::collections::HashSet;

use infergate_core::case::Phase;

use super::{Others, and_more, name};
use crate::words::counter;
use crate::{units, words};
use infergate_receipts::{
    BlocksWorse, CounterEvidence, Evidence, MemoryEvidence, Metric, Outcome, OutputEvidence, Reason, Statistic,
    Subject, TargetEvidence, TimeEvidence, Verdict, VerdictRow, Witness,
};

/// Counters that are named.
const MOST_COUNTERS: usize = 2;

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

/// `decode 5.7 % slower (15.5 to 16.2 ms; 95 %: +4.8 to +6.5 %) and 3 more`: each case by the largest of its times.
pub fn times(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let timed = rows.iter().filter_map(|row| Some((*row, row.time()?)));
    // A mean says less where a median moved.
    let size = |time: &TimeEvidence| {
        let tenths = time.ratio.map_or(0.0, |ratio| ((as_said(time, ratio) - 1.0).abs() * 1e3).round());
        (time.statistic == Statistic::Median, tenths as u64)
    };
    let (row, time) = timed.clone().max_by_key(|(_, time)| size(time))?;
    let subjects: HashSet<&Subject> = timed.map(|(row, _)| &row.subject).collect();
    Some(format!("{}{}{}", moved(verdict, row, time), details(time), and_more(subjects.len() - 1)))
}

/// `decode 5.7 % slower`, `TTFT of chatbot/2 users 50 % longer`.
pub fn moved(verdict: &Verdict, row: &VerdictRow, time: &TimeEvidence) -> String {
    let name = name(verdict, &row.subject);
    let is_usual = row.subject.case().is_some_and(|case| Metric::gated(case) == time.metric);
    let what = match (time.statistic, is_usual) {
        (Statistic::Median, true) => name,
        (Statistic::Mean, true) => format!("the mean of {name}"),
        (Statistic::Median, false) if is_rate(time) => format!("throughput of {name}"),
        (Statistic::Median, false) => format!("{} of {name}", time.metric.short()),
        (Statistic::Mean, false) => format!("mean {} of {name}", time.metric.short()),
    };
    let change = time.ratio.map(|ratio| as_said(time, ratio) - 1.0).filter(|change| change.is_finite());
    let Some(change) = change else { return format!("{what} {}", row.outcome.words()) };
    let direction = match (change < 0.0, is_usual) {
        (true, true) => "faster",
        (false, true) => "slower",
        (true, false) if is_rate(time) => "lower",
        (false, false) if is_rate(time) => "higher",
        (true, false) => "shorter",
        (false, false) => "longer",
    };
    format!("{what} {} {direction}", units::size_of_change(change))
}

/// Whether people say it as what is got through in a second: a time of all users together.
fn is_rate(time: &TimeEvidence) -> bool {
    time.metric == Metric::SystemToken && time.statistic == Statistic::Median
}

/// A ratio of times, or of what is got through in a second.
fn as_said(time: &TimeEvidence, ratio: f64) -> f64 {
    if is_rate(time) { 1.0 / ratio } else { ratio }
}

/// Both times, where they moved as their pairs did, and the interval of the change.
fn details(time: &TimeEvidence) -> String {
    let Some(ratio) = time.ratio else { return String::new() };
    let times = time.base_ns.zip(time.head_ns).filter(|(base, head)| (head > base) == (ratio > 1.0));
    let rate = |ns: f64| units::tokens_per_s(Some(1e9 / ns));
    let times = times.map(|(base, head)| match is_rate(time) {
        true => units::from_to(&rate(base), &rate(head)),
        false => units::durations(base, head),
    });
    let interval = time.interval.map(|ends| {
        let (one, other) = (as_said(time, ends.low) - 1.0, as_said(time, ends.high) - 1.0);
        format!("{}: {}", units::level(ends.level), units::signed_range(one.min(other), one.max(other)))
    });
    let parts: Vec<String> = times.into_iter().chain(interval).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// `the model says something else from token 34 on (generate) and 2 more; not timed`.
fn outputs(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let changed: Vec<(&VerdictRow, &OutputEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Output(output) = &row.evidence { Some((*row, output)) } else { None })
        .collect();
    let is_of_model = |row: &VerdictRow| row.subject.case().is_some_and(|case| case.phase() != Phase::Bench);
    let of_model = || changed.iter().filter(|(row, _)| is_of_model(row));
    let parted = of_model().filter_map(|(row, output)| Some((*row, output.position?))).min_by_key(|(_, at)| *at);
    let first = match (parted, of_model().next()) {
        (Some((row, at)), _) => {
            format!("the model says something else from token {} on ({})", at + 1, name(verdict, &row.subject))
        }
        (None, Some((row, _))) => format!("the model computes other numbers ({})", name(verdict, &row.subject)),
        (None, None) => format!("{} returns something else", name(verdict, &changed.first()?.0.subject)),
    };
    let times = if is_timed(verdict, &changed) { "" } else { ", so no time of it was judged" };
    Some(format!("{first}{}{times}", and_more(changed.len() - 1)))
}

/// Whether a time of one of these was judged all the same.
fn is_timed(verdict: &Verdict, changed: &[(&VerdictRow, &OutputEvidence)]) -> bool {
    let subjects: HashSet<&Subject> = changed.iter().map(|(row, _)| &row.subject).collect();
    let judged = verdict.rows.iter().filter(|row| row.time().is_some() && row.outcome != Outcome::Advisory);
    judged.map(|row| &row.subject).any(|subject| subjects.contains(subject))
}

/// `the heap grows by 542 B a run over 100 runs`: the heap, which is counted, before what is resident.
fn memory(rows: &[&VerdictRow]) -> Option<String> {
    let grown: Vec<(&VerdictRow, &MemoryEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Memory(memory) = &row.evidence { Some((*row, memory)) } else { None })
        .collect();
    let (_, memory) = grown.iter().find(|(_, memory)| memory.witness == Witness::Heap).or(grown.first())?;
    let what = match memory.witness {
        Witness::Heap => "the heap",
        Witness::Resident => "resident memory",
        Witness::OpenFiles | Witness::Threads => words::witness(memory.witness),
    };
    let runs = memory.runs.map_or_else(String::new, |runs| format!(" over {}", units::many(runs, "run")));
    Some(match memory.slope_bytes {
        Some(slope) => format!("{what} grows by {} a run{runs}", units::bytes(Some(slope))),
        None => match memory.count_per_run {
            Some(count) => format!("{what} rise by {} a run{runs}", units::number(count)),
            None => format!("{what} grows{runs}"),
        },
    })
}

/// `36.0 KiB more allocated a token (+5.3 %), 24 more allocations a token (+4.3 %)`: each counter by its largest rise.
pub fn counters(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let mut risen: Vec<(&VerdictRow, &CounterEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Counter(counter) = &row.evidence { Some((*row, counter)) } else { None })
        .collect();
    // What rises from nothing has no share: the more, the larger.
    risen.sort_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)).then_with(|| b.rise().cmp(&a.rise())));
    let mut names: HashSet<&str> = HashSet::new();
    let firsts: Vec<&(&VerdictRow, &CounterEvidence)> =
        risen.iter().filter(|(_, counter)| names.insert(&counter.name)).collect();
    let all = |name: &str| risen.iter().filter(|(_, other)| other.name == name).count();
    let said = firsts.iter().take(MOST_COUNTERS);
    let said: Vec<String> = said.map(|(row, counter)| rise(verdict, row, counter, all(&counter.name))).collect();
    (!said.is_empty()).then(|| format!("{}{}", said.join(", "), and_more(firsts.len().saturating_sub(MOST_COUNTERS))))
}

/// The rise as a fraction of base; infinite from nothing.
fn share(counter: &CounterEvidence) -> f64 {
    let (Some(rise), Some(base)) = (counter.rise(), counter.base) else { return 0.0 };
    if rise == 0 { 0.0 } else { rise as f64 / base.max as f64 }
}

/// One counter, and where it rose.
fn rise(verdict: &Verdict, row: &VerdictRow, counter: &CounterEvidence, all: usize) -> String {
    format!("{} in {}{}", counted(row, counter), name(verdict, &row.subject), and_more(all - 1))
}

/// `24 more allocations a token (+4.3 %)`; of requests under load how many of all, and before.
fn counted(row: &VerdictRow, counter: &CounterEvidence) -> String {
    let requests = row.reasons.iter().find_map(|reason| match reason {
        Reason::MoreFail { failed, issued, most_before, blocks } => {
            Some((format!("{failed} of {issued} requests"), *most_before, *blocks))
        }
        _ => None,
    });
    if let Some((requests, most_before, blocks)) = requests {
        let how = match counter.name.as_str() {
            "starved_requests" => "starved",
            "changed_answers" => "were not answered as alone",
            "wrong_length_requests" => "ended at a wrong length",
            _ => "failed",
        };
        let before = if most_before > 0.0 { units::percent(Some(most_before)) } else { "none".into() };
        return match blocks {
            Some(BlocksWorse { base, head, .. }) if base > 0 => {
                format!("{requests} {how}, in {head} blocks ({before} of base's, in {base})")
            }
            _ => format!("{requests} {how} ({before} before)"),
        };
    }
    let share = counter::share(counter).map_or_else(String::new, |share| format!(" ({share})"));
    let moved = counter::moved(counter).unwrap_or_else(|| format!("{} differs", counter::name(&counter.name)));
    moved + &share
}

/// `prefill misses its target (prefill/* ttft_ms < 1) with 1.21 ms`.
fn targets(verdict: &Verdict, rows: &[&VerdictRow]) -> Option<String> {
    let missed: Vec<(&VerdictRow, &TargetEvidence)> = rows
        .iter()
        .filter_map(|row| if let Evidence::Target(target) = &row.evidence { Some((*row, target)) } else { None })
        .collect();
    let ((row, target), others) = missed.split_first()?;
    let with = words::achieved(target).map_or_else(String::new, |value| format!(" with {value}"));
    let name = name(verdict, &row.subject);
    Some(format!("{name} misses its target ({}){with}{}", target.target, and_more(others.len())))
}
