//! How sure a verdict is, what was measured about its cause, and how to repeat it.

use std::collections::HashMap;

use crate::inputs::{Inputs, commit};
use crate::units::MISSING;
use crate::{units, words};
use infergate_core::stats::clopper_pearson;
use infergate_judge::paired::LEVEL;
use infergate_receipts::shell::flag;
use infergate_receipts::{
    Against, Build, BuiltWith, Evidence, LeakSite, Note, Outcome, PairedReceipt, Reason, Statistic, Subject,
    TimeEvidence, Verdict, VerdictRow,
};

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

/// How the numbers came about, and what their intervals mean.
pub fn how_sure(inputs: &Inputs) -> Option<String> {
    match (&inputs.paired, &inputs.verdict) {
        (Some(paired), _) if paired.blocks.is_empty() => None,
        (Some(paired), verdict) => Some(paired_words(paired, verdict.as_ref())),
        (None, Some(verdict)) => stored_words(verdict),
        (None, None) => None,
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
    let luck = if paired.alike.is_some() { "" } else { ", code placement aside" };
    let notes = verdict.map_or(paired.notes.as_slice(), |verdict| verdict.notes.as_slice());
    let work = timed_work(paired).map_or_else(String::new, |work| format!(" ({work})"));
    format!(
        "In each of {blocks} blocks fresh processes of both revisions ran in turn on one machine{work}. A change compares the two sides \
         within each block, so it can differ from the ratio of the two times.{level} {}",
        notes.iter().find_map(|note| errors(note, luck)).unwrap_or_else(|| by_design(luck))
    )
}

/// `12.3 s of timed work, 0.13 s a case`: of base and head, without what was loaded and set up. Of servers how long their windows
/// were. `None` where nothing was timed.
pub fn timed_work(paired: &PairedReceipt) -> Option<String> {
    if paired.head.engine.name == "server" {
        // What a case of a server says is no time that something took: a mean gap, or a percentile.
        let under_load = paired.blocks.iter().flat_map(|block| &block.windows).map(|window| window.length_ns as f64);
        let all_ns: f64 = under_load.sum();
        return (all_ns > 0.0).then(|| format!("{} under load", units::duration(Some(all_ns))));
    }
    let timed = paired.blocks.iter().flat_map(|block| &block.cases);
    let all_ns: f64 = timed.flat_map(|case| case.base_ns.iter().chain(&case.head_ns)).map(|ns| *ns as f64).sum();
    let cases = paired.cases.iter().filter(|case| case.timed).count();
    let each_ns = (cases > 0 && all_ns > 0.0).then(|| all_ns / cases as f64)?;
    let of_each = if cases > 1 { format!(", {} a case", units::duration(Some(each_ns))) } else { String::new() };
    Some(format!("{} of timed work{of_each}", units::duration(Some(all_ns))))
}

fn stored_words(verdict: &Verdict) -> Option<String> {
    let time = verdict.rows.iter().filter_map(VerdictRow::time).find(|time| time.sessions.is_some())?;
    let base = match time.days {
        Some(days) => words::sessions_of_days(time.sessions?, days),
        None => units::many(time.sessions?, "session"),
    };
    let step = time.spread_days.map_or_else(String::new, |days| {
        format!(" since a step (the limit is from the spread of {}, before it and since)", units::many(days, "day"))
    });
    let level = time.interval.map_or_else(String::new, |interval| {
        format!(" An interval holds one more run of an unchanged program in {} of cases.", units::level(interval.level))
    });
    Some(format!("Head is one session, base is {base}{step}, measured at other times.{level}"))
}

pub fn level(verdict: &Verdict) -> Option<f64> {
    verdict.rows.iter().filter_map(VerdictRow::time).find_map(|time| time.interval).map(|interval| interval.level)
}

/// What was measured about the cause of each failure, the same words of several subjects once. Nothing where nothing was.
pub fn places(verdict: &Verdict, inputs: &Inputs) -> Vec<String> {
    let parts = parts(verdict);
    let explained = inputs.paired.iter().flat_map(|paired| &paired.explained);
    let explained = explained.flat_map(|explained| {
        let case = explained.id.to_string();
        words::explained::lines(explained).into_iter().map(move |line| format!("{case}: {line}"))
    });
    let allocated = inputs.paired.iter().flat_map(|paired| &paired.allocated);
    let allocated = allocated.flat_map(|allocated| {
        let case = allocated.id.to_string();
        words::allocated::lines(allocated).into_iter().map(move |line| format!("{case}: {line}"))
    });
    let explained: Vec<String> = explained.chain(allocated).collect();
    let failed = verdict.rows.iter().filter(|row| row.outcome.exit_code() != 0);
    let grouped = words::grouped(failed, |row| place(row, parts.get(&row.subject), inputs));
    // What changed anywhere is a place to look at where nothing nearer is known.
    let has_failed = verdict.rows.iter().any(|row| row.outcome.exit_code() == 1);
    let is_wanted = |note: &&Note| {
        has_failed && explained.is_empty() && grouped.is_empty() && matches!(note, Note::CodeChanged { .. })
    };
    let changed: Vec<String> = verdict.notes.iter().filter(is_wanted).map(words::note).collect();
    explained.into_iter().chain(grouped).chain(changed).collect()
}

/// Whether a note says how often the gate is wrong, as [`how_sure`] does.
pub fn is_of_errors(note: &Note) -> bool {
    matches!(note, Note::OwnErrors { .. } | Note::OwnErrorsUnknown { .. })
}

/// Times of a subject that are shown beside the one that counts: TTFT and ITL of a generation.
fn parts(verdict: &Verdict) -> HashMap<&Subject, Vec<&TimeEvidence>> {
    let mut parts: HashMap<&Subject, Vec<&TimeEvidence>> = HashMap::new();
    for row in &verdict.rows {
        let is_part = |time: &&TimeEvidence| !time.counted && time.ratio.is_some() && time.against == Against::Base;
        if let Some(time) = row.time().filter(is_part) {
            parts.entry(&row.subject).or_default().push(time);
        }
    }
    parts
}

/// What was measured about the cause of a row that failed, beside its own numbers.
fn place(row: &VerdictRow, parts: Option<&Vec<&TimeEvidence>>, inputs: &Inputs) -> Vec<String> {
    let ran = row.reasons.iter().find_map(|reason| match reason {
        Reason::RunsChanged { functions, changed, named } => Some(runs(*functions, *changed, named)),
        _ => None,
    });
    // What takes the time says more.
    let mut explained = inputs.paired.iter().flat_map(|paired| &paired.explained);
    let is_explained = explained.any(|known| Some(known.id) == row.subject.case() && known.why_not.is_none());
    let ran = ran.filter(|_| !is_explained);
    let found = match &row.evidence {
        Evidence::Time(time) if row.outcome == Outcome::Regressed => {
            let has_parts = time.statistic == Statistic::Median && time.against == Against::Base;
            let moved = parts.filter(|_| has_parts).map(|parts| moved(parts));
            vec![moved, ran]
        }
        Evidence::Memory(_) => vec![inputs.memory_record().and_then(|record| record.sites.first()).map(allocated)],
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn allocated(site: &LeakSite) -> String {
    let frames: Vec<&str> = site.frames.iter().take(3).map(String::as_str).collect();
    let frames = frames.join(", called by ");
    format!("memory that outlives its run is allocated in {frames}")
}

/// `its ITL +6.0 % (+5.0 % to +7.3 %), its TTFT +1.9 % (-0.7 % to +5.0 %)`: the one that moved most first.
fn moved(parts: &[&TimeEvidence]) -> String {
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| b.ratio.unwrap_or(1.0).total_cmp(&a.ratio.unwrap_or(1.0)));
    let part = |time: &&TimeEvidence| format!("its {} {}", time.metric.short(), words::change(time));
    parts.iter().map(part).collect::<Vec<String>>().join(", ")
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
    let target = bench_target(paired)?;
    let named = if paired.cases.len() > MOST_CASES { &[] } else { paired.cases.as_slice() };
    let cases: Option<String> = named.iter().map(|case| one_of_many("cases", &case.id.id())).collect();
    // Without them it measures these and the others.
    let cases = cases.unwrap_or_default();
    let server = if paired.head.engine.name == "server" { " --server" } else { "" };
    let users = paired.cases.iter().find_map(|case| case.load.as_ref()).map(|load| load.users);
    let users = users.map_or_else(String::new, |users| format!(" --users {users}"));
    Some(format!("git checkout {head}\n{program} gate --against {base}{target}{server}{users}{cases}"))
}

/// The flags that name the bench target of criterion benches, and how it is built; for engines, whose target has the usual name, only the
/// latter. `None` where a name cannot stand in a command.
fn bench_target(paired: &PairedReceipt) -> Option<String> {
    let engine = &paired.head.engine;
    let target = if engine.is_of_benches() { flag("bench-target", &engine.model)? } else { String::new() };
    Some(target + &built_with(&paired.built_with)?)
}

fn built_with(built: &BuiltWith) -> Option<String> {
    let optional =
        |name: &str, value: &Option<String>| value.as_ref().map_or(Some(String::new()), |value| flag(name, value));
    let features: Option<String> =
        built.features.iter().map(|feature| one_of_many("bench-features", feature)).collect();
    let default = if built.no_default_features { " --bench-default-features=false" } else { "" };
    Some(
        optional("bench-package", &built.package)? + &features? + default + &optional("bench-profile", &built.profile)?,
    )
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
    // A bisection builds bench targets alone.
    if matches!(&*paired.head.engine.name, "server" | "command") {
        return None;
    }
    let (good, bad) = (commit(&paired.base.build)?, commit(&paired.head.build)?);
    if good == bad {
        return None;
    }
    let (target, case) = match paired.head.engine.model.split_once(',') {
        // Of several bench targets the one whose name is in front; alone it has its own names.
        Some(_) if paired.head.engine.is_of_benches() => {
            let name = case.to_string();
            let mut targets = paired.head.engine.model.split(',');
            let own = targets.find_map(|target| Some((target, name.strip_prefix(target)?.strip_prefix('/')?)));
            let (target, own) = own?;
            (flag("bench-target", target)? + &built_with(&paired.built_with)?, flag("case", &format!("bench:{own}"))?)
        }
        _ => (bench_target(paired)?, flag("case", &case.id())?),
    };
    // The search's own is that of one build a side, which vary less than those that the gate drew.
    let limit = slower.time().and_then(|time| Some((time.statistic, time.threshold?)));
    let limit = limit.map_or_else(String::new, |(statistic, ratio)| {
        let name = if statistic == Statistic::Mean { "mean-threshold" } else { "threshold" };
        format!(" --{name} {}", (ratio * 1e4).round() / 1e4)
    });
    Some(format!("{} bisect --good {good} --bad {bad}{target}{case}{limit}", inputs.program))
}

// How often the gate is wrong: by design, and as a calibration measured it. These are two numbers, and are never said as one.

/// Both numbers in two sentences; `None` for a note of something else. `luck` is what the first leaves out.
pub fn errors(note: &Note, luck: &str) -> Option<String> {
    let measured = match note {
        Note::OwnErrors { calibrated, gates, regressed } => format!(
            "Measured here, calibrated {calibrated}: {regressed} of {gates} decided gates between two builds that do the same (at most \
             {} with 95 % confidence).",
            at_most(*regressed, *gates)
        ),
        Note::OwnErrorsUnknown { why } => format!("How often that happens here was not measured: {why}."),
        _ => return None,
    };
    Some(format!("{} {measured}", by_design(luck)))
}

fn by_design(luck: &str) -> String {
    format!("By design at most {} of suites where nothing changed are called regressed{luck}.", units::level(LEVEL))
}

/// The exact upper bound, one-sided, 95 %.
fn at_most(hits: u64, trials: u64) -> String {
    clopper_pearson(hits, trials, 0.90).map_or_else(|| MISSING.into(), |(_, high)| units::percent(Some(high)))
}

/// Nothing differs.
pub const SAME_CODE: &str =
    "base and head are the same machine code, so nothing was timed; --time-same-code times them all the same";

/// `up to 2 functions changed: engine::decode, engine::step`.
pub fn code_changed(functions: usize, named: &[String]) -> String {
    format!("up to {functions} function{} changed{}", plural(functions), names(functions, named))
}

/// `it runs none of the 2 functions that changed: ...`.
pub fn runs_nothing(changed: usize) -> String {
    let what = if changed == 1 {
        "does not run the function that changed".into()
    } else {
        format!("runs none of the {changed} functions that changed")
    };
    format!("it {what}, so it was not timed; --time-same-code times it all the same")
}

/// `it runs 1 of the 2 functions that changed: engine::decode`.
pub fn runs(functions: usize, changed: usize, named: &[String]) -> String {
    let which = if changed == 1 {
        "the function that changed".into()
    } else {
        format!("{functions} of the {changed} functions that changed")
    };
    format!("it runs {which}{}", names(functions, named))
}

fn names(functions: usize, named: &[String]) -> String {
    let more = functions.saturating_sub(named.len());
    let more = if more > 0 && !named.is_empty() { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!(": {}{more}", named.join(", ")) }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
