//! How sure a verdict is, where to look, and how to repeat it.

use infergate::case::Phase;
use infergate::printable::printable_within;

use crate::gate::paired::LEVEL;
use crate::receipt::{
    Against, Build, Evidence, Metric, Outcome, PairedReceipt, Reason, TimeEvidence, Verdict, VerdictRow,
};
use crate::report::inputs::{Inputs, commit};
use crate::report::words::command::flag;
use crate::report::{units, words};

/// Characters of a place in the code.
const MAX_PLACE_CHARS: usize = 160;

/// Whose the numbers are where a pull request's run was judged again.
pub const OWN_RUN: &str = "The numbers come from the pull request's own run, which could have made them up. The verdict on them does not: it was \
     reached again by the command and the settings of the default branch.";

/// Both sides in one line: `base dde2501974, head da0836b985 with changes`.
pub fn sides(base: &Build, head: &Build) -> String {
    format!("base {}, head {}", build(base), build(head))
}

/// A build in a few words: its commit's first digits.
pub fn build(build: &Build) -> String {
    let Some(id) = commit(build) else { return "an unknown commit".into() };
    let changed = if build.dirty == Some(true) { " with changes that are in no commit" } else { "" };
    format!("{}{changed}", &id[..id.len().min(10)])
}

/// Cases that a command names; of more it runs the whole suite.
const MOST_CASES: usize = 3;
/// Subjects that one line names.
const MOST_SUBJECTS: usize = 8;

/// How the numbers came about, and what their intervals mean.
pub fn how_sure(inputs: &Inputs) -> Option<String> {
    match (&inputs.paired, &inputs.head, &inputs.verdict) {
        (Some(paired), ..) if paired.blocks.is_empty() => None,
        (Some(paired), ..) => Some(paired_words(paired, inputs.verdict.as_ref())),
        (None, Some(_), Some(verdict)) => stored_words(verdict),
        (None, None, Some(verdict)) if inputs.load.is_some() => stored_words(verdict),
        _ => None,
    }
}

fn paired_words(paired: &PairedReceipt, verdict: Option<&Verdict>) -> String {
    let blocks = paired.blocks.len();
    let level = verdict.and_then(level).map_or_else(String::new, |level| {
        format!(" An interval holds the true change in {} of runs.", units::level(level))
    });
    if let Some(servers) = paired.servers {
        return format!(
            "Servers that ran already were asked in turn, {servers} of each side, in {blocks} blocks. A change compares the two \
             sides within each block, and its interval rests on how much the pairs of servers differ.{level}"
        );
    }
    let luck = if paired.layouts.is_some() { "" } else { ", but for the luck of where the linker put the code" };
    format!(
        "Both revisions ran on the same machine in turn, in {blocks} blocks of fresh processes. A change compares the two sides \
         within each block, so it can differ from the ratio of the two times.{level} The rule calls at most {} of suites \
         regressed where nothing changed{luck}.",
        units::level(LEVEL)
    )
}

fn stored_words(verdict: &Verdict) -> Option<String> {
    let time = verdict.rows.iter().filter_map(VerdictRow::time).find(|time| time.sessions.is_some())?;
    let base = match time.days {
        Some(days) => words::sessions_of_days(time.sessions?, days),
        None => units::many(time.sessions?, "session"),
    };
    let level = time.interval.map_or_else(String::new, |interval| {
        format!(" An interval holds one more run of an unchanged program in {} of cases.", units::level(interval.level))
    });
    Some(format!("Head is one session, base is {base}, measured at other times.{level}"))
}

/// The level of a verdict's intervals.
pub fn level(verdict: &Verdict) -> Option<f64> {
    verdict.rows.iter().filter_map(VerdictRow::time).find_map(|time| time.interval).map(|interval| interval.level)
}

/// Where a reader begins to search, the same words of several subjects once.
pub fn places(verdict: &Verdict, inputs: &Inputs) -> Vec<String> {
    let mut grouped: Vec<(Vec<String>, String)> = Vec::new();
    for row in &verdict.rows {
        let Some(text) = place(row, inputs) else { continue };
        let subject = row.subject.to_string();
        match grouped.iter_mut().find(|(_, known)| *known == text) {
            Some((subjects, _)) if subjects.contains(&subject) => {}
            Some((subjects, _)) => subjects.push(subject),
            None => grouped.push((vec![subject], text)),
        }
    }
    let line = |(subjects, text): (Vec<String>, String)| {
        let more = subjects.len().saturating_sub(MOST_SUBJECTS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}: {text}", subjects[..subjects.len().min(MOST_SUBJECTS)].join(", "))
    };
    grouped.into_iter().map(line).collect()
}

/// Where a reader begins to search for the cause of a row that failed. `None` where the row passed.
fn place(row: &VerdictRow, inputs: &Inputs) -> Option<String> {
    if row.outcome.exit_code() == 0 {
        return None;
    }
    let text = match &row.evidence {
        Evidence::Time(_) if row.reasons.contains(&Reason::SomeSlower) => {
            "what runs in some of its steps only: memory that is allocated or given back, a table that grows, a lock, a flush"
                .into()
        }
        Evidence::Time(time) if row.outcome == Outcome::Regressed => match (time.metric, row.subject.case()) {
            (Metric::TtftNs, _) => {
                "what runs once for the whole prompt: attention over it, the large matrix products".into()
            }
            (Metric::ItlNs, _) => "what runs for each token: weights and cache as they are read, sampling".into(),
            (Metric::E2eNs, Some(case)) if case.phase() == Phase::Generate => {
                "its TTFT and ITL in the table: the one that moved says whether prompt or tokens are slower".into()
            }
            (Metric::E2eNs | Metric::TimeNs, _) => "what runs in it".into(),
            (Metric::SystemTokenNs, _) => "what requests share: batch size, scheduler, queue".into(),
            (Metric::TtftP90Ns, _) => "how requests wait: the queue, when a batch takes a further one, prompts".into(),
            (Metric::ItlP90Ns, _) => {
                "what a step does for all requests: the batch, prompts that are read between".into()
            }
            (Metric::LongestGapNs, _) => {
                "what stops every request for a moment: a lock, a cache that is cleared".into()
            }
        },
        Evidence::Output(output) if row.outcome == Outcome::OutputChanged => match output.position {
            Some(0) => "what changes numbers while the prompt is read".into(),
            Some(position) => format!("what changes numbers before output token {}", position + 1),
            None => "what changes the numbers behind the tokens".into(),
        },
        Evidence::Counter(counter)
            if row.outcome == Outcome::CounterRegressed && counter.name.ends_with("_requests") =>
        {
            "the failures of the load run, which its report lists by class".into()
        }
        Evidence::Counter(_) if row.outcome == Outcome::CounterRegressed => {
            "what is allocated for each prompt or token".into()
        }
        Evidence::Memory(_) => {
            let site = inputs.memory_record()?.sites.first()?;
            let frames: Vec<&str> = site.frames.iter().take(3).map(String::as_str).collect();
            format!(
                "memory that outlives its run is allocated in {}",
                printable_within(&frames.join(", called by "), MAX_PLACE_CHARS)
            )
        }
        _ => return None,
    };
    Some(text)
}

/// What decided, in one sentence for whoever sees nothing else; `None` where the verdict is good.
pub fn summary(verdict: &Verdict) -> Option<String> {
    if verdict.exit_code == 0 {
        return None;
    }
    let row = verdict.deciding()?;
    let others: Vec<_> =
        verdict.rows.iter().filter(|other| other.outcome.exit_code() != 0 && !std::ptr::eq(*other, row)).collect();
    let more = match others.as_slice() {
        [] => String::new(),
        [other] => format!("; {} failed, too", other.subject),
        more => format!("; {} more are below", more.len()),
    };
    let slower = row.time().filter(|_| row.outcome == Outcome::Regressed).and_then(|time| slower(row, time));
    Some(format!("{}{more}", slower.unwrap_or_else(|| words::decided(row))))
}

/// `decode/p128 is slower: ITL 34.4 ms instead of 33.0 ms, +4.3 % (+2.9 % to +5.8 %), and it fails from +2.0 %`.
fn slower(row: &VerdictRow, time: &TimeEvidence) -> Option<String> {
    let (base, head, limit) = (time.base_ns?, time.head_ns?, time.threshold?);
    let from = if time.against == Against::Baseline { "above" } else { "from" };
    Some(format!(
        "{} is slower: {} {} instead of {}, {}, and it fails {from} {}",
        words::compared(row, time),
        words::measure(time),
        units::duration(Some(head)),
        units::duration(Some(base)),
        words::change(time),
        units::signed_percent(limit - 1.0)
    ))
}

/// What is said where no table has anything to show.
pub fn nothing_changed(verdict: &Verdict) -> String {
    let mut subjects: Vec<_> = verdict.rows.iter().map(|row| &row.subject).collect();
    subjects.sort();
    subjects.dedup();
    let said = match subjects.len() {
        0 => return "Nothing was compared".into(),
        1 => format!("{}: no change beyond its limits", subjects[0]),
        count => format!("{count} subjects were compared: no change beyond their limits"),
    };
    let unjudged = |row: &&VerdictRow| row.outcome == Outcome::Advisory && row.time().is_some_and(|time| time.counted);
    match verdict.rows.iter().filter(unjudged).count() {
        0 => said,
        times => format!("{said}; {} shown and not judged", units::many(times, "time")),
    }
}

/// The command that gives this verdict again; `None` where it cannot be known, as for a model that is a file somewhere.
pub fn repeat(inputs: &Inputs) -> Option<String> {
    let program = &inputs.program;
    let Some(paired) = &inputs.paired else {
        let receipt = inputs.memory.as_ref()?;
        let case = flag("case", &receipt.memory.case.id())?;
        let (runs, threads) = (receipt.memory.asked_runs, receipt.threads);
        let model = Some(&receipt.engine.model).filter(|model| model.starts_with("synthetic:"));
        let model = flag("model", model?)?;
        return Some(format!("{program} memory{model}{case} --runs {runs} --threads {threads}"));
    };
    let base = commit(&paired.base.build)?;
    let head = commit(&paired.head.build)?;
    if base == head {
        return None;
    }
    let named = if paired.cases.len() > MOST_CASES { &[] } else { paired.cases.as_slice() };
    let cases: Option<String> = named.iter().map(|case| one_of_many("cases", &case.id.id())).collect();
    // Without them it measures these and the others.
    let cases = cases.unwrap_or_default();
    let users = paired.cases.iter().find_map(|case| case.load.as_ref()).map(|load| load.users);
    let server = users.map_or_else(String::new, |users| format!(" --server --users {users}"));
    Some(format!("git checkout {head}\n{program} gate --against {base}{server}{cases}"))
}

/// One value of a flag that takes several with commas between them.
fn one_of_many(name: &str, value: &str) -> Option<String> {
    (!value.contains(',') && value.trim() == value).then(|| flag(name, value)).flatten()
}

/// The command that finds the commit, for the first case that got slower.
pub fn bisect(inputs: &Inputs) -> Option<String> {
    let paired = inputs.paired.as_ref()?;
    let slower =
        inputs.verdict.as_ref()?.rows.iter().find(|row| row.outcome == Outcome::Regressed && row.time().is_some())?;
    let case = slower.subject.case()?;
    // A bisection builds bench targets, and no servers.
    if paired.cases.iter().any(|planned| planned.id == case && planned.load.is_some()) {
        return None;
    }
    let (base, head) = (commit(&paired.base.build)?, commit(&paired.head.build)?);
    if base == head {
        return None;
    }
    Some(format!("{} bisect --good {base} --bad {head}{}", inputs.program, flag("case", &case.id())?))
}
