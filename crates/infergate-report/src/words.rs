//! The one place that turns a verdict's data into words. Whoever exports a verdict takes sentences from here and never reads
//! one.

pub mod accept;
pub mod allocated;
pub mod counter;
pub mod explained;
pub mod headline;
pub mod look;
mod memory;
pub mod missing;
mod output;
pub mod subject;

use infergate_core::case::Phase;
use infergate_core::printable::first_of;

pub use memory::{observed, rarer_leaks, sites, sparkline, witness};
pub use output::{logits, output};

use super::model::Unit;
use super::units::{self, MISSING};
use infergate_receipts::{
    Against, BlocksWorse, CounterEvidence, Evidence, Note, Outcome, Reason, Remedy, SYSTEM_COUNTERS, Shown, Statistic,
    TargetEvidence, TimeEvidence, VerdictRow,
};

/// Subjects that one line names.
const MOST_SUBJECTS: usize = 8;

/// How a row ended: `slower, within limit`.
pub fn ending(row: &VerdictRow) -> String {
    let words = row.outcome.words();
    let open = matches!(row.outcome, Outcome::WithinLimit | Outcome::Inconclusive);
    match row.time().and_then(tendency).filter(|_| open) {
        Some(shown) => format!("{}, {words}", direction(shown)),
        None => words.into(),
    }
}

/// What was shown or, short of the suite's level, what a reader takes from an interval that lies on one side of no change.
fn tendency(time: &TimeEvidence) -> Option<Shown> {
    let interval = time.interval.filter(|_| time.against != Against::Baseline);
    let by_interval = interval.and_then(|interval| match interval {
        above if above.low > 1.0 => Some(Shown::Slower),
        below if below.high < 1.0 => Some(Shown::Faster),
        _ => None,
    });
    time.shown.or(by_interval)
}

fn direction(shown: Shown) -> &'static str {
    match shown {
        Shown::Slower => "slower",
        Shown::Faster => "faster",
    }
}

/// What was compared of a case, in words: `ITL`, `ITL, mean`.
pub fn measure(time: &TimeEvidence) -> String {
    let mean = if time.statistic == Statistic::Mean { ", mean" } else { "" };
    format!("{}{mean}", time.metric.short())
}

/// What a row is of, in a word or two: `ITL`, `output`, `allocations a token`, `heap`.
pub fn what(row: &VerdictRow) -> String {
    match &row.evidence {
        Evidence::Time(time) => measure(time),
        Evidence::Output(_) => "output".into(),
        Evidence::Counter(counter) => counter::name(&counter.name),
        Evidence::Target(target) => target.target.to_string(),
        Evidence::Memory(memory) => witness(memory.witness).into(),
    }
}

pub fn change(time: &TimeEvidence) -> String {
    let Some(ratio) = time.ratio else { return MISSING.into() };
    let change = units::signed_percent(ratio - 1.0);
    time.interval.map_or(change.clone(), |interval| {
        let (low, high) = (units::signed_percent(interval.low - 1.0), units::signed_percent(interval.high - 1.0));
        format!("{change} ({low} to {high})")
    })
}

/// What a row has to say beside its numbers, without its subject; `None` where that is nothing.
pub fn sentence(row: &VerdictRow) -> Option<String> {
    let found = match &row.evidence {
        Evidence::Output(output) => output::differs(output),
        Evidence::Time(time) => shown_below_the_limit(row, time),
        Evidence::Counter(counter) => counted(row, counter),
        Evidence::Target(target) => Some(aimed(row, target)),
        Evidence::Memory(_) => None,
    };
    let own = format!("{}: ", row.subject);
    let reasons = row.reasons.iter().filter_map(|why| reason(row, why));
    let remedy = row.remedy.as_ref().map(remedy);
    let parts: Vec<String> = found
        .into_iter()
        .chain(reasons.map(|why| why.strip_prefix(&own).map_or(why.clone(), str::to_owned)))
        .chain(remedy)
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the rows say.
pub fn remarks<'a>(rows: impl IntoIterator<Item = &'a VerdictRow>) -> Vec<String> {
    grouped(rows, |row| {
        let beyond = row.time().and_then(|time| units::beyond_hardware(time.limit_fraction));
        sentence(row).into_iter().chain(beyond).collect()
    })
}

/// What is said of rows, the same words of several subjects once.
fn grouped<'a>(
    rows: impl IntoIterator<Item = &'a VerdictRow>,
    said: impl Fn(&VerdictRow) -> Vec<String>,
) -> Vec<String> {
    let mut grouped: Vec<(Vec<String>, String)> = Vec::new();
    for row in rows {
        let subject = row.subject.to_string();
        for said in said(row) {
            match grouped.iter_mut().find(|(_, known)| *known == said) {
                Some((subjects, _)) if subjects.contains(&subject) => {}
                Some((subjects, _)) => subjects.push(subject.clone()),
                None => grouped.push((vec![subject.clone()], said)),
            }
        }
    }
    let line =
        |(subjects, said): (Vec<String>, String)| format!("{}: {said}", first_of(&subjects, MOST_SUBJECTS, ", "));
    grouped.into_iter().map(line).collect()
}

/// Why a row decided, in a clause that begins with its subject.
pub fn decided(row: &VerdictRow) -> String {
    let numbers = row.time().and_then(|time| {
        let (change, limit) = (time.ratio.map(|_| change(time))?, time.threshold? - 1.0);
        let from = if time.against == Against::Baseline { "above" } else { "from" };
        let mean = if time.statistic == Statistic::Mean { "mean " } else { "" };
        let name = time.metric.short();
        Some(format!("{mean}{name} {change}, and it fails {from} {}", units::signed_percent(limit)))
    });
    let parts: Vec<String> = numbers.into_iter().chain(sentence(row)).collect();
    if parts.is_empty() { row.subject.to_string() } else { format!("{}: {}", row.subject, parts.join("; ")) }
}

fn shown_below_the_limit(row: &VerdictRow, time: &TimeEvidence) -> Option<String> {
    let shown = time.shown.filter(|_| row.outcome == Outcome::WithinLimit)?;
    let p = time.p_adjusted.map_or_else(String::new, |p| format!(" (p {})", probability(p)));
    Some(format!("{}{p}, by less than the limit", direction(shown)))
}

/// Two digits, and never a zero that was none.
fn probability(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".into() } else { format!("= {p:.4}") }
}

fn counted(row: &VerdictRow, counter: &CounterEvidence) -> Option<String> {
    match (counter.base, counter.head) {
        (Some(_), Some(_)) => {}
        (Some(_), None) => return Some(format!("base counts '{}' and head does not", counter::name(&counter.name))),
        (None, _) if !row.reasons.is_empty() => return None,
        (None, _) => return Some("counters are new".into()),
    }
    // How many pages a process takes varies by itself.
    if row.outcome == Outcome::Pass && SYSTEM_COUNTERS.contains(&counter.name.as_str()) {
        return None;
    }
    let moved = counter::moved(counter)?;
    let details: Vec<String> = counter::range(counter).into_iter().chain(counter::share(counter)).collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    let within = if row.outcome == Outcome::Pass { ", within tolerance" } else { "" };
    Some(format!("{moved}{details}{within}"))
}

/// What a target's metric is, in the unit of reports.
pub fn achieved(target: &TargetEvidence) -> Option<String> {
    let (unit, factor) = Unit::of_target(target.metric);
    target.value.map(|value| unit.show(value * factor))
}

fn aimed(row: &VerdictRow, target: &TargetEvidence) -> String {
    let target_text = &target.target;
    match (row.outcome, achieved(target)) {
        (Outcome::Pass, Some(value)) => format!("target {target_text} is met with {value}"),
        (Outcome::TargetMissed, Some(value)) => format!("target {target_text} is missed with {value}"),
        _ => format!("target {target_text}"),
    }
}

pub fn reason(row: &VerdictRow, reason: &Reason) -> Option<String> {
    let words = match reason {
        Reason::Broken { what } => what.clone(),
        Reason::CutShort => "the run was cut short: not judged".into(),
        Reason::NotTimed => "nothing was timed".into(),
        Reason::OutputChanged => {
            "the output changed, so its time is not judged: a faster wrong answer is a failure".into()
        }
        Reason::Allowed => "allowed".into(),
        Reason::OtherPrompt => {
            "base and head had different prompts (another text or tokenizer): outputs cannot be compared".into()
        }
        Reason::LogitsLost => {
            "head gives no logits where base does, so wrong numbers would not show; give them (`Engine::logits`)".into()
        }
        Reason::NoReference => "the baseline has no output of this case: nothing to compare".into(),
        Reason::NoBaseline if row.outcome == Outcome::NotComparable => "there is no baseline".into(),
        Reason::NoBaseline => "no baseline: time is advisory".into(),
        Reason::NoSession if row.outcome == Outcome::NotComparable => "the baseline has no session of this case".into(),
        Reason::NoSession => "the baseline has no session of this case: time is advisory".into(),
        Reason::OtherPlatform { what, base, head } => other_platform(row, what, base, head),
        Reason::OtherMachine { normalised: true } => {
            "another machine class: advisory, ratio normalised by the probes".into()
        }
        Reason::OtherMachine { normalised: false } => {
            "another machine class: advisory, and not normalised, as probes or work are missing".into()
        }
        Reason::TooFewSessions { sessions, days: Some(days), needed } => {
            format!("{}: time is advisory, {}", sessions_of_days(*sessions, *days), days_needed(*days, *needed))
        }
        Reason::TooFewSessions { sessions, days: None, needed } => {
            let missing = needed.saturating_sub(*sessions);
            format!("{sessions} of {needed} sessions: time is advisory, {missing} are missing")
        }
        Reason::Noisy { cv, limit } => {
            format!("CV {:.0} % is above the limit of {:.0} %", cv * 100.0, limit * 100.0)
        }
        Reason::TooFewProcesses { processes } => format!("{processes} processes: too few for a CV"),
        Reason::ShorterThanSessions { processes, usual } => {
            format!("{processes} processes against {usual} or more in the baseline's sessions: expect more scatter")
        }
        Reason::FewerRequests { requests, usual } => {
            format!("{requests} requests against {usual} or more in the baseline's sessions: expect more scatter")
        }
        Reason::OtherLoad { what, base, head } => {
            format!("another load: {what} is '{head}' here and '{base}' in the baseline, so nothing is judged")
        }
        Reason::MoreFail { failed, issued, most_before, blocks } => {
            let before = units::percent(Some(*most_before));
            match blocks {
                Some(BlocksWorse { base, head, of }) => format!(
                    "of {issued} requests {failed} ended so, in {head} of {of} blocks; of base's {before}, in {base}"
                ),
                None => format!("of {issued} requests {failed} ended so, before at most {before}"),
            }
        }
        Reason::OtherLengths { answers } => {
            format!("of {answers} answers under load the text is not as long in sum as base's to the same prompts")
        }
        Reason::SomeSlower => {
            let what = if row.subject.case().is_some_and(|case| case.phase() == Phase::Bench) {
                "iterations"
            } else {
                "steps"
            };
            format!(
                "some {what} are much slower: the mean rose by more than its limit, and by much more than the median"
            )
        }
        Reason::TimeIsBetter => "shown and not judged, since its time is better".into(),
        Reason::TooNoisyFor { limit } => {
            format!("the runner was too noisy for {}", units::percent(Some(limit - 1.0)))
        }
        Reason::SlowerAt { placements, of } => {
            format!("slower at {placements} of {of} placements of the changed code: placement, not work")
        }
        Reason::RunsNothingChanged { changed } => look::runs_nothing(*changed),
        Reason::RunsChanged { functions, changed, named } => look::runs(*functions, *changed, named),
        Reason::NotWatched { why } => format!("whether it runs what changed is not known: {why}"),
        Reason::MedianRegressed => "the mean is shown and not judged, since the median failed first".into(),
        Reason::TooNoisy { blocks } if row.outcome == Outcome::Advisory => format!(
            "the mean is shown and not judged: in {blocks} blocks it varies too much to tell a stall from the machine's bursts"
        ),
        Reason::TooNoisy { blocks } => format!("too noisy to judge in {blocks} blocks"),
        Reason::OutOfTime { blocks, more } => {
            format!("the time given ended after {blocks} blocks; up to {more} more may settle it")
        }
        Reason::TooFewBlocks { blocks } => format!("{blocks} blocks are too few to judge"),
        Reason::FewServers { servers, needed } => format!(
            "{} of each side: the luck of a process cannot be told from a change, so this is advisory; it is judged from {needed} of each on",
            units::many(*servers, "server")
        ),
        Reason::ServersDiffer { servers, std, limit } => format!(
            "{servers} pairs of servers differ by {} (standard deviation): too much to say anything of {}, so time is advisory",
            units::percent(Some(*std)),
            units::signed_percent(*limit)
        ),
        Reason::LoadDecided { blocks } => {
            format!("not measured beyond {blocks} blocks, for something else decided the verdict")
        }
        Reason::NoSuchMetric => format!("{} has no {}", row.subject, limited(row)),
        Reason::NotMeasured => format!("it cannot be judged, as this run did not measure {}", limited(row)),
        Reason::Accepted { up_to, reason } => accept::meant(*up_to, reason),
        Reason::BeyondAccepted { up_to } => accept::beyond(*up_to),
        Reason::Observed { text } => text.clone(),
    };
    Some(words)
}

/// `8 sessions of 2 days`.
pub fn sessions_of_days(sessions: usize, days: usize) -> String {
    format!("{} of {}", units::many(sessions, "session"), units::many(days, "day"))
}

/// `6 more days needed`, where `days` of the `needed` have a session.
pub fn days_needed(days: usize, needed: usize) -> String {
    format!("{} needed", units::many(needed.saturating_sub(days), "more day"))
}

/// The name of the metric that a target limits.
fn limited(row: &VerdictRow) -> String {
    if let Evidence::Target(target) = &row.evidence { target.metric.name() } else { "such metric".into() }
}

fn other_platform(row: &VerdictRow, what: &str, base: &str, head: &str) -> String {
    let other = format!("other {what} ({head}, baseline {base})");
    let margin = if let Evidence::Output(output) = &row.evidence { Some(output.base_margin) } else { None };
    match (row.outcome, margin) {
        (Outcome::Advisory, Some(Some(margin))) => {
            format!("advisory: {other}, and the two best logits lay {margin:.1e} apart")
        }
        (_, Some(Some(_))) => format!("{other}, but this was no near tie"),
        (_, Some(None)) => format!("{other}, and how near a tie this was is not known"),
        (_, None) => format!("advisory: {other}"),
    }
}

fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::MeasureAgain => "measure again".into(),
        Remedy::Bless => "bless a session".into(),
        Remedy::AllowOutputChange => "its time is not judged; --allow-output-change if that is meant".into(),
        Remedy::MoreTime => "give more time".into(),
        Remedy::NameOtherCases => "name other cases".into(),
        Remedy::CountOrNameOtherCases => "name other cases, or count them".into(),
        Remedy::MeasureAlone => "measure head alone, without --against".into(),
    }
}

pub fn note(note: &Note) -> String {
    match note {
        Note::Broken { what } => format!("invalid: {what}"),
        Note::CutShort { base: false } => {
            "the run was cut short: what was measured is shown, and nothing of it passes; measure again".into()
        }
        Note::CutShort { base: true } => "the base run was cut short: only what it measured is compared".into(),
        Note::NoBaseline { machine_class } => format!(
            "no baseline for machine class {machine_class}: time is advisory; `bless` starts one, `gate --against REV` needs none"
        ),
        Note::OtherMachine { base, head } => {
            format!("another machine class ({head}, baseline {base}): time is advisory")
        }
        Note::OneSession => "one session against one: time is advisory, the exact channel decides".into(),
        Note::Differs { what, base, head, paired: true, .. } => {
            format!("{what} differs: '{head}' in head, '{base}' in base")
        }
        Note::Differs { what, base, head, sessions: Some((some, all)), .. } if some < all => {
            format!("{what} differs: '{head}' here, '{base}' in {some} of {all} sessions")
        }
        Note::Differs { what, base, head, .. } => format!("{what} differs: '{head}' here, '{base}' in the baseline"),
        Note::Drift { what, change } => {
            format!("the machine drifted during the run: {what} {:+.0} %", change * 100.0)
        }
        Note::NotRun { subjects } => {
            let names: Vec<String> = subjects.iter().map(ToString::to_string).collect();
            format!("in the baseline and not run, so not judged: {}", names.join(", "))
        }
        Note::GateChanged { key, was, is, after_merge } => {
            let holds = if *after_merge { "after the merge; base's holds here" } else { "it holds here" };
            format!("head changes the gate: {key} {was} -> {is} ({holds})")
        }
        Note::NotAccepted { accept, why } => accept::without_effect(accept, *why),
        Note::SameCode => look::SAME_CODE.into(),
        Note::CodeChanged { functions, named } => look::code_changed(*functions, named),
        Note::BaseNotCounted => "base was not counted: allocations are not compared".into(),
        Note::OwnErrors { .. } | Note::OwnErrorsUnknown { .. } => look::errors(note, "").unwrap_or_default(),
        Note::Said { text } => text.clone(),
    }
}
