//! The one place that turns a verdict's data into words. Whoever exports a verdict takes sentences from here and never reads
//! one. What measuring itself says ([`Note::Said`], what is broken, the leak rule) stands as it came: search for its words to find
//! where it is written.

pub mod accept;
pub mod allocated;
pub mod counter;
pub mod explained;
pub mod headline;
mod output;
pub mod provenance;
pub mod subject;

use infergate_core::case::{Case, Phase};
use infergate_core::printable::first_of;
use infergate_core::stats::clopper_pearson;
use infergate_judge::paired::SUITE_LEVEL;

pub use output::{differs, output};

use super::model::{Cell, Unit};
use super::units;
use infergate_receipts::{
    Accept, Against, BlocksWorse, CounterEvidence, Evidence, Interval, Metric, NoEffect, Note, Outcome, Reason, Remedy,
    Shown, Statistic, TargetEvidence, TimeEvidence, Verdict, VerdictRow,
};

/// Subjects that one line names.
const MOST_SUBJECTS: usize = 8;

/// How a row ended: `slower, within limit`.
pub fn ending(row: &VerdictRow) -> String {
    let words = row.outcome.words();
    let open = matches!(row.outcome, Outcome::WithinLimit | Outcome::Inconclusive);
    match row.time().and_then(tendency).filter(|_| open) {
        Some(Shown::Slower) => format!("slower, {words}"),
        Some(Shown::Faster) => format!("faster, {words}"),
        None => words,
    }
}

/// What was shown or, short of the suite's level, what a reader takes from an interval that lies on one side of no change.
fn tendency(time: &TimeEvidence) -> Option<Shown> {
    let interval = time.interval.filter(|_| time.against != Against::Baseline);
    time.shown.or_else(|| match interval? {
        ends if ends.low > 1.0 => Some(Shown::Slower),
        ends if ends.high < 1.0 => Some(Shown::Faster),
        _ => None,
    })
}

/// What was compared of a case, in words: `ITL`, `ITL, mean`.
pub fn figure(time: &TimeEvidence) -> String {
    let mean = if time.statistic == Statistic::Mean { ", mean" } else { "" };
    format!("{}{mean}", time.metric.short())
}

/// What a case's time is of: `a token`.
pub fn each(case: Case) -> &'static str {
    match case.phase() {
        Phase::Prefill => "a prefill",
        Phase::Decode => "a token",
        Phase::Generate => "a generation",
        Phase::Bench => "an iteration",
    }
}

/// What a row is of, in a word or two: `ITL`, `output`, `allocations per token`, `heap`.
pub fn what(row: &VerdictRow) -> String {
    match &row.evidence {
        Evidence::Time(time) => figure(time),
        Evidence::Output(_) => "output".into(),
        Evidence::Counter(counter) => counter::name(&counter.name),
        Evidence::Target(target) => target.target.to_string(),
        Evidence::Memory(memory) => memory.measure.words(),
    }
}

/// How much longer head takes, with its interval.
pub fn change(time: &TimeEvidence) -> Cell {
    let ends = time.interval.map(|interval| (interval.low - 1.0, interval.high - 1.0));
    Cell::known(time.ratio.map(|ratio| ratio - 1.0), Unit::Change).within(ends)
}

/// What a row says in addition to its numbers, without its subject; `None` where that is nothing.
pub fn sentence(row: &VerdictRow) -> Option<String> {
    let found = match &row.evidence {
        // The numbers of what passes say it.
        _ if row.outcome == Outcome::Pass => None,
        Evidence::Output(output) => differs(row, output),
        Evidence::Counter(counter) => counted(row, counter),
        Evidence::Target(target) => Some(aimed(row, target)),
        Evidence::Time(_) | Evidence::Memory(_) => None,
    };
    let messages = row.reasons.iter().map(|reason| message(row, reason));
    let remedy = row.remedy.as_ref().map(|known| remedy(known).to_owned());
    let parts: Vec<String> = found.into_iter().chain(messages).chain(remedy).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the rows say in addition to their numbers, and what holds for the whole run: the notes that are wanted.
pub fn remarks(verdict: &Verdict, is_wanted: impl Fn(&Note) -> bool) -> Vec<String> {
    // That there is no baseline is a note; no row says it again.
    let has_none = verdict.notes.iter().any(|note| matches!(note, Note::NoBaseline { .. }));
    let is_of_none = |reason: &Reason| matches!(reason, Reason::NoBaseline | Reason::NoReference);
    let rows = verdict.rows.iter().filter(|row| !has_none || !row.reasons.iter().all(is_of_none));
    let mut remarks = grouped(rows);
    remarks.extend(verdict.notes.iter().filter(|note| is_wanted(note)).map(note));
    remarks
}

/// The sentences of rows, each once with the subjects that it is of.
pub fn grouped<'a>(rows: impl Iterator<Item = &'a VerdictRow>) -> Vec<String> {
    let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
    for (row, sentence) in rows.filter_map(|row| Some((row, sentence(row)?))) {
        let subject = row.subject.to_string();
        match grouped.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, subjects)) if subjects.contains(&subject) => {}
            Some((_, subjects)) => subjects.push(subject),
            None => grouped.push((sentence, vec![subject])),
        }
    }
    let line = |(sentence, subjects): &(String, Vec<String>)| {
        format!("{}: {sentence}", first_of(subjects, MOST_SUBJECTS, ", "))
    };
    grouped.iter().map(line).collect()
}

/// A row in a clause: its subject, its change, and what else decides it; which changed code it runs does not.
pub fn decided(row: &VerdictRow) -> String {
    let mut row = row.clone();
    row.reasons.retain(|reason| !matches!(reason, Reason::RunsChanged { .. }));
    match (changed(&row), sentence(&row)) {
        (Some(changed), None) => changed,
        (Some(changed), Some(sentence)) => format!("{changed}; {sentence}"),
        (None, Some(sentence)) => format!("{}: {sentence}", row.subject),
        (None, None) => row.subject.to_string(),
    }
}

/// `decode/p8 +5.0 % (20.0 → 21.0 ms)`, with the metric where it is not the usual one; `None` where no change is known.
pub fn changed(row: &VerdictRow) -> Option<String> {
    let time = row.time()?;
    let change = time.ratio.filter(|ratio| ratio.is_finite())? - 1.0;
    let is_usual = row.subject.case().map(Metric::gated) == Some(time.metric) && time.statistic == Statistic::Median;
    let metric = if is_usual { String::new() } else { format!(" {}", figure(time)) };
    let is_open = matches!(row.outcome, Outcome::Inconclusive | Outcome::Unstable);
    if let Some(Interval { low, high, .. }) = time.interval.filter(|_| is_open) {
        // One number would read as an answer.
        let [low, high] = [low, high].map(|ratio| units::change(ratio - 1.0));
        return Some(format!("{}{metric} between {low} and {high}", row.subject));
    }
    let times = time.base_ns.zip(time.head_ns).map_or_else(String::new, |(base, head)| {
        let digits = units::digits_of_change(time.base_ns, time.head_ns);
        format!(" ({})", units::base_to_head(|ns| units::precise_duration(ns, digits), base, head))
    });
    Some(format!("{}{metric} {}{times}", row.subject, units::change(change)))
}

fn counted(row: &VerdictRow, counter: &CounterEvidence) -> Option<String> {
    match (counter.base, counter.head) {
        (Some(_), Some(_)) => counter::moved(counter),
        (Some(_), None) => Some(format!("base counts '{}' and head does not", counter::name(&counter.name))),
        (None, _) => row.reasons.is_empty().then(|| "counters are new".into()),
    }
}

fn aimed(row: &VerdictRow, target: &TargetEvidence) -> String {
    let (unit, factor) = Unit::of_target(target.metric);
    let value = target.value.filter(|_| row.outcome == Outcome::TargetMissed);
    let missed = value.map_or_else(String::new, |value| format!(" is missed with {}", unit.show(value * factor)));
    format!("target {}{missed}", target.target)
}

/// Why a row ended as it did: one message for each reason.
fn message(row: &VerdictRow, reason: &Reason) -> String {
    match reason {
        // The run says it of this subject.
        Reason::Broken { what } => what.strip_prefix(&format!("{}: ", row.subject)).unwrap_or(what).into(),
        Reason::CutShort => "the run was cut short: not judged".into(),
        Reason::NotTimed => "nothing was timed".into(),
        Reason::OutputChanged => "the output changed, so time is not judged".into(),
        Reason::Allowed => "allowed".into(),
        Reason::OtherPrompt => {
            "base and head had different prompts (text or tokenizer), so outputs cannot be compared".into()
        }
        Reason::LogitsLost => {
            "base gives logits and head does not, so wrong numbers would not show; implement `Engine::logits`".into()
        }
        Reason::NoReference => "the baseline has no output of this case: nothing to compare".into(),
        Reason::NoBaseline => "there is no baseline".into(),
        Reason::NoSession => "the baseline has no session of this case".into(),
        Reason::OtherPlatform { what, base, head } => format!("other {what} ({head}, baseline {base})"),
        Reason::TooFewSessions { sessions, days, needed } => {
            let (sessions, of) = (units::many(*sessions, "session"), units::many(*days, "day"));
            let more = units::many(needed.saturating_sub(*days), "more day");
            format!("{sessions} of {of}: time is advisory, {more} needed")
        }
        Reason::Noisy { cv, limit } => {
            format!("CV {:.0} % is above the limit of {:.0} %", cv * 100.0, limit * 100.0)
        }
        Reason::TooFewProcesses { processes } => format!("{processes} processes: too few for a CV"),
        Reason::OtherLoad { what, base, head } => {
            format!("another load: {what} is '{head}' here and '{base}' in the baseline, so nothing is judged")
        }
        Reason::MoreFail { failed, issued, most_before, blocks } => {
            let blocks = blocks.map_or_else(String::new, |BlocksWorse { base, head, of }| {
                format!(" (in {head} of {of} blocks, base's in {base})")
            });
            format!("of {issued} requests {failed} ended so, before at most {}{blocks}", units::percent(*most_before))
        }
        Reason::OtherLengths { answers } => {
            format!("{answers} answers under load are not as long in sum as base's to the same prompts")
        }
        Reason::SomeSlower => "some steps are much slower: the mean rose by much more than the median".into(),
        Reason::TimeIsBetter => "shown and not judged, since its time is better".into(),
        Reason::TooNoisyFor { limit } => {
            format!("the runner was too noisy for {}", units::percent(limit - 1.0))
        }
        Reason::SlowerAt { placements, of } => {
            format!("slower at {placements} of {of} placements of the changed code: placement, not work")
        }
        Reason::RunsNothingChanged { changed } => {
            format!("{}, so it was not timed; --time-same-code times it anyway", runs(0, *changed, &[]))
        }
        Reason::RunsChanged { functions, changed, named } => runs(*functions, *changed, named),
        Reason::NotWatched { why } => format!("whether it runs what changed is not known: {why}"),
        Reason::MedianRegressed => "the median regressed, so the mean is not judged".into(),
        Reason::TooNoisy { blocks } => {
            format!("too noisy to judge in {blocks} blocks; measure again on a quieter machine")
        }
        Reason::OutOfTime { blocks, more } => {
            format!("time ran out after {blocks} blocks; up to {more} more may decide it")
        }
        Reason::TooFewBlocks { blocks } => format!("{blocks} blocks are too few to judge; measure again"),
        Reason::FewServers { servers, needed } => format!(
            "{} of each side: too few to tell noise from a change, which is judged from {needed} on",
            units::many(*servers, "server")
        ),
        Reason::ServersDiffer { servers, std, limit } => format!(
            "{servers} pairs of servers differ by {} (standard deviation), too much to judge {}",
            units::percent(*std),
            units::change(*limit)
        ),
        Reason::LoadDecided { blocks } => {
            format!("not measured beyond {blocks} blocks, for something else decided the verdict")
        }
        Reason::NoSuchMetric => "this case has no such metric".into(),
        Reason::NotMeasured => "this run did not measure it, so it is not judged".into(),
        Reason::Accepted { up_to, reason } => {
            let up_to = up_to.map_or_else(String::new, |up_to| format!(" up to {up_to}"));
            format!("head declares this as intended{up_to}: {reason}")
        }
        Reason::BeyondAccepted { up_to } => {
            let up_to = up_to.map_or_else(|| "another change".into(), |up_to| format!("up to {up_to}"));
            format!("head declares {up_to} as intended, and this is more")
        }
        Reason::Observed { text } => text.clone(),
    }
}

/// How often the gate is wrong by design; what a calibration measured is another number.
pub fn by_design() -> String {
    format!(
        "The test is designed for at most {} false failures a run, layout noise excluded.",
        units::percent(SUITE_LEVEL)
    )
}

/// `runs 1 of the 2 changed functions: engine::decode`; more than a few have no names.
fn runs(functions: usize, changed: usize, named: &[String]) -> String {
    let which = match (functions, changed) {
        (0, 1) => "does not run the changed function".into(),
        (_, 1) => "runs the changed function".into(),
        (0, _) => format!("runs none of the {changed} changed functions"),
        _ => format!("runs {functions} of the {changed} changed functions"),
    };
    format!("{which}{}", names(functions, named))
}

/// `: engine::decode, engine::step`; nothing where there are more functions than names, since nobody knows which of them matter.
fn names(functions: usize, named: &[String]) -> String {
    if named.is_empty() || functions > named.len() { String::new() } else { format!(": {}", named.join(", ")) }
}

fn remedy(remedy: &Remedy) -> &'static str {
    match remedy {
        Remedy::MeasureAgain => "measure again",
        Remedy::Bless => "bless a session",
        Remedy::AllowOutputChange => "time is not judged; if the change is intended, pass --allow-output-change",
        Remedy::AcceptOutput => "time is judged once this change is accepted",
        Remedy::MoreTime => "give more time",
        Remedy::MoreRuns => "if a cache is still filling, raise --memory-runs",
        Remedy::NameOtherCases => "name other cases",
        Remedy::CountOrNameOtherCases => "name other cases, or count them",
        Remedy::MeasureAlone => "measure head alone, without --against",
    }
}

pub fn note(note: &Note) -> String {
    match note {
        Note::Broken { what } => format!("invalid: {what}"),
        Note::CutShort { base: false } => "the run was cut short, so nothing passes; measure again".into(),
        Note::CutShort { base: true } => "the base run was cut short: only what it measured is compared".into(),
        Note::NoBaseline { machine_class } => format!(
            "no baseline for machine class {machine_class}: time is advisory; `bless` starts one, `gate --against REV` needs none"
        ),
        Note::OtherClass { machine_class, created } => {
            format!("outputs and counters: judged by the newest session, of {created} on {machine_class}")
        }
        Note::OneSession => "one session against one: time is advisory; outputs and counters decide".into(),
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
        Note::Share { subject, share, lowest, highest, sessions, classes } => {
            let what = match subject.case().map(|case| case.phase()) {
                Some(Phase::Prefill) => "arithmetic",
                Some(Phase::Decode) => "memory bandwidth",
                _ => "arithmetic and memory bandwidth",
            };
            format!(
                "{subject} at {} of this machine's {what} (advisory); {} on {} of machines: {}",
                units::percent(*share),
                units::many(*sessions, "session"),
                units::many(*classes, "kind"),
                units::from_to(units::percent, *lowest, *highest)
            )
        }
        Note::NotRun { subjects } => {
            format!("in the baseline and not run, so not judged: {}", units::listed(subjects))
        }
        Note::GateChanged { key, was, is, after_merge } => {
            let holds = if *after_merge { "after the merge; base's applies here" } else { "it applies here" };
            format!("head changes the gate: {key} {was} -> {is} ({holds})")
        }
        Note::NotAccepted { accept: Accept { case, metric, reason, .. }, why } => {
            let why = match why {
                NoEffect::Stale => "base has it already, so it has no effect; take it out of infergate.toml",
                NoEffect::NothingSuch => "no such row can be accepted",
                NoEffect::NotNeeded => "the change passes without it; take it out of infergate.toml",
            };
            format!("[[accept]] of {case}, {metric} ({reason}): {why}")
        }
        Note::SameCode => {
            "base and head are the same machine code, so nothing was timed; --time-same-code times them anyway".into()
        }
        Note::CodeChanged { functions, named } => {
            format!("at most {} changed{}", units::many(*functions, "function"), names(*functions, named))
        }
        Note::LaidAlike { same, functions } => {
            format!("base and head are laid out alike ({same} of {functions} functions at the same address)")
        }
        Note::BaseNotCounted => "base was not counted: allocations are not compared".into(),
        Note::OwnErrors { calibrated, gates, regressed, inconclusive } => {
            let most = clopper_pearson(*regressed, *gates, 0.90).map(|(_, most)| most);
            format!(
                "{} Measured here, calibrated {calibrated} between two builds that do the same: {regressed} of {gates} decided gates failed \
                 (at most {} with 95 % confidence), {inconclusive} were inconclusive.",
                by_design(),
                most.map_or_else(|| units::MISSING.into(), units::percent)
            )
        }
        Note::OwnErrorsUnknown { why } => {
            format!("{} The rate here was not measured: {why}.", by_design())
        }
        Note::Said { text } => text.clone(),
    }
}
