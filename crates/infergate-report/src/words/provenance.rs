//! How sure a verdict is, what was measured about its cause, and how to repeat it.

use infergate_core::case::{BenchName, Case, Phase};

use crate::inputs::{Inputs, commit};
use crate::{units, words};
use infergate_receipts::shell::flag;
use infergate_receipts::{
    Build, BuiltWith, Note, Outcome, PairedReceipt, Statistic, Subject, TimeEvidence, Verdict, VerdictRow,
};

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

/// Bytes of the flags that say how a target is built; nobody copies a longer command.
const MOST_FLAG_BYTES: usize = 2_000;
/// Cases that a command names; of more it runs the whole suite.
const MOST_CASES: usize = 3;

/// How the numbers came about, and what their intervals mean.
pub fn how_sure(inputs: &Inputs) -> Option<String> {
    let verdict = inputs.verdict.as_ref();
    let times = || verdict.into_iter().flat_map(|verdict| &verdict.rows).filter_map(VerdictRow::time);
    let level = times().find_map(|time| time.interval).map(|interval| units::percent(interval.level));
    let Some(paired) = &inputs.paired else { return stored(times().find(|time| time.sessions.is_some())?) };
    if paired.blocks.is_empty() {
        return None;
    }
    let who = match paired.servers {
        Some(servers) => format!("{servers} servers of each side that ran already"),
        None => "fresh processes of both revisions".into(),
    };
    let work = timed_work(paired).map_or_else(String::new, |work| format!(" ({work})"));
    let level = level.map(|level| format!(" An interval holds the true change in {level} of runs."));
    let mut notes = verdict.map_or(&paired.notes, |verdict| &verdict.notes).iter();
    let errors = notes.find(|note| is_of_errors(note)).map_or_else(words::by_design, words::note);
    Some(format!(
        "{} blocks, each with {who}, taking turns{work}.{} {errors}",
        paired.blocks.len(),
        level.unwrap_or_default()
    ))
}

/// `12.3 s timed`: of base and head, without what was loaded and set up; of servers how long their windows were. `None` where nothing
/// was timed.
pub fn timed_work(paired: &PairedReceipt) -> Option<String> {
    let windows = paired.blocks.iter().flat_map(|block| &block.windows).map(|window| window.length_ns as f64);
    let cases = paired.blocks.iter().flat_map(|block| &block.cases);
    let samples = cases.flat_map(|case| case.base_ns.iter().chain(&case.head_ns)).map(|ns| *ns as f64);
    // What a case of a server says is no time that something took: a mean gap, or a percentile.
    let is_server = paired.head.engine.name == "server";
    let all_ns: f64 = if is_server { windows.sum() } else { samples.sum() };
    let how = if is_server { "under load" } else { "timed" };
    (all_ns > 0.0).then(|| format!("{} {how}", units::duration(all_ns)))
}

fn stored(time: &TimeEvidence) -> Option<String> {
    let sessions = units::many(time.sessions?, "session");
    let days = time.days.map_or_else(String::new, |days| format!(" of {}", units::many(days, "day")));
    let step = time
        .spread_days
        .map_or_else(String::new, |days| format!(" since a step (limit from {})", units::many(days, "day")));
    let level = time.interval.map_or_else(String::new, |interval| {
        format!(
            " An interval holds one more run of an unchanged program in {} of cases.",
            units::percent(interval.level)
        )
    });
    Some(format!("Head is one session, base is {sessions}{days}{step}, measured at other times.{level}"))
}

/// What was measured about the cause of each failure: its subject, and the lines on it, the nearest first.
pub fn places(verdict: &Verdict, inputs: &Inputs) -> Vec<(String, Vec<String>)> {
    let explained = inputs.paired.iter().flat_map(|paired| &paired.explained);
    let explained = explained.map(|explained| (explained.id.to_string(), words::explained::lines(explained)));
    let is_leak = |row: &&VerdictRow| row.outcome.exit_code() == 1 && row.memory().is_some();
    let leaks = verdict.rows.iter().find(is_leak).and_then(|row| Some((row.subject.to_string(), vec![leak(inputs)?])));
    // What leaks there stands for itself.
    let leaking = leaks.as_ref().and_then(|_| inputs.memory_record()?.sites.first()?.frames.first());
    let allocated = inputs.paired.iter().flat_map(|paired| &paired.allocated).map(|allocated| {
        let mut allocated = allocated.clone();
        allocated.places.retain(|place| place.frames.first() != leaking);
        (allocated.id.to_string(), words::allocated::lines(&allocated))
    });
    let is_output = verdict.rows.iter().any(|row| row.outcome == Outcome::OutputChanged);
    let code = changed_code(verdict).filter(|_| is_output).map(|line| ("output".to_owned(), vec![line]));
    code.into_iter().chain(leaks).chain(explained).chain(allocated).filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Which functions changed, where they are few enough to be named.
fn changed_code(verdict: &Verdict) -> Option<String> {
    let named = verdict.notes.iter().find_map(|note| match note {
        Note::CodeChanged { functions, named } if !named.is_empty() && *functions <= named.len() => Some(named),
        _ => None,
    });
    let named = named?.iter().map(|name| format!("`{}`", words::explained::short(name)));
    Some(format!("only {} changed", units::listed(named)))
}

/// Where the memory that outlives its run is allocated.
fn leak(inputs: &Inputs) -> Option<String> {
    let site = inputs.memory_record()?.sites.first()?;
    let frames: Vec<String> = site.frames.iter().take(3).map(|frame| format!("`{frame}`")).collect();
    Some(format!("memory that outlives its run is allocated in {}", frames.join(", called by ")))
}

/// Whether a note says how often the gate is wrong, as [`how_sure`] does.
pub fn is_of_errors(note: &Note) -> bool {
    matches!(note, Note::OwnErrors { .. } | Note::OwnErrorsUnknown { .. })
}

/// The command that gives this verdict again; `None` where it cannot be known.
pub fn repeat(inputs: &Inputs) -> Option<String> {
    let paired = inputs.paired.as_ref()?;
    let (base, head) = commits(paired)?;
    let target = bench_target(paired, &paired.head.engine.model)?;
    let named = if paired.cases.len() > MOST_CASES { &[] } else { paired.cases.as_slice() };
    let cases: Option<String> =
        named.iter().map(|case| one_of_many("cases", &Subject::from(case.id).spelled())).collect();
    // Without them it measures these and the others.
    let mut cases = cases.unwrap_or_default();
    let followed = inputs.memory_record().map(|record| record.case).filter(|case| case.phase() == Phase::Generate);
    if let Some(case) = followed.filter(|_| !cases.is_empty()) {
        cases += &format!(" --memory-case {case}");
    }
    let server = if paired.head.engine.name == "server" { " --server" } else { "" };
    let users = paired.cases.iter().find_map(|case| case.load.as_ref()).map(|load| load.users);
    let users = users.map_or_else(String::new, |users| format!(" --users {users}"));
    let program = &inputs.program;
    Some(format!("git checkout {head}\n{program} gate --against {base}{target}{server}{users}{cases}"))
}

/// The command that finds the commit, for the first case that got slower.
pub fn bisect(inputs: &Inputs) -> Option<String> {
    let paired = inputs.paired.as_ref()?;
    let mut rows = inputs.verdict.as_ref()?.rows.iter();
    let slower = rows.find(|row| row.outcome == Outcome::Regressed && row.time().is_some())?;
    let engine = &paired.head.engine;
    // A bisection builds bench targets alone.
    if matches!(&*engine.name, "server" | "command") {
        return None;
    }
    let (good, bad) = commits(paired)?;
    let (mut target, mut case) = (engine.model.as_str(), slower.subject.spelled());
    if engine.is_of_benches() && target.contains(',') {
        // Of several bench targets the one whose name is in front; alone it has its own names.
        let name = slower.subject.to_string();
        let own = target.split(',').find_map(|target| Some((target, name.strip_prefix(target)?.strip_prefix('/')?)));
        target = own?.0;
        case = Subject::from(Case::Bench(BenchName::of(own?.1))).spelled();
    }
    let (target, case) = (bench_target(paired, target)?, flag("case", &case)?);
    // The search's own is that of one build a side, which vary less than those that the gate drew.
    let limit = slower.time().and_then(|time| Some((time.statistic, time.threshold?)));
    let limit = limit.map_or_else(String::new, |(statistic, ratio)| {
        let name = if statistic == Statistic::Mean { "mean-threshold" } else { "threshold" };
        format!(" --{name} {}%", ((ratio - 1.0) * 1e4).round() / 1e2)
    });
    Some(format!("{} bisect --good {good} --bad {bad}{target}{case}{limit}", inputs.program))
}

/// Base's and head's, where they can stand in a command and are not the same.
fn commits(paired: &PairedReceipt) -> Option<(&str, &str)> {
    let (base, head) = (commit(&paired.base.build)?, commit(&paired.head.build)?);
    (base != head).then_some((base, head))
}

/// The flags that name a bench target of criterion benches, and how it is built; for engines, whose target has the usual name, only the
/// latter. `None` where a name cannot stand in a command.
fn bench_target(paired: &PairedReceipt, target: &str) -> Option<String> {
    let BuiltWith { features, no_default_features, package, profile } = &paired.built_with;
    let optional =
        |name: &str, value: &Option<String>| value.as_ref().map_or(Some(String::new()), |value| flag(name, value));
    let target = if paired.head.engine.is_of_benches() { flag("bench-target", target)? } else { String::new() };
    let features: Option<String> = features.iter().map(|feature| one_of_many("bench-features", feature)).collect();
    let default = if *no_default_features { " --bench-default-features=false" } else { "" };
    let flags =
        target + &optional("bench-package", package)? + &features? + default + &optional("bench-profile", profile)?;
    (flags.len() <= MOST_FLAG_BYTES).then_some(flags)
}

/// One value of a flag that takes several with commas between them.
fn one_of_many(name: &str, value: &str) -> Option<String> {
    (!value.contains(',') && value.trim() == value).then(|| flag(name, value)).flatten()
}
