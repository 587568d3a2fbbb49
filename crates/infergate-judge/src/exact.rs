//! The exact channel: what has no noise.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Policy;
use super::differences::known;
use super::output::{self, OutputRule, default_tolerance};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_receipts::{
    Baseline, CONTEXT_TOKENS, CaseRecord, CountedCase, Counter, CounterEvidence, Evidence, LIVE_BYTES_AT_REST, Machine,
    Outcome, OutputEvidence, PEAK_LIVE_BYTES_LOADING, Reason, Receipt, Remedy, SYSTEM_COUNTERS, Subject, Unit,
    VOCAB_TOKENS, VerdictRow,
};

/// The fraction by which a counter of bytes may rise, unless the settings have another.
pub const COUNTER_TOLERANCE: f64 = 0.01;

/// Allowed difference from path lengths and late frees, bytes.
const HELD_SLACK_BYTES: u64 = 65_536;

/// Allowed difference from a buffer as large as its L2 cache that a thread may keep from its first matrix product on, bytes.
/// Which threads of a pool keep one varies from process to process. The sessions of a baseline show one such choice each; a
/// paired run measures again.
const KEPT_BY_THREAD_BYTES: u64 = 2 << 20;

/// The fraction by which the peak of loading and the counters of the system may rise. The peak depends on how threads meet, the
/// number of pages on what allocators keep.
const PEAK_TOLERANCE: f64 = 0.1;

/// Allowed difference from stacks and from what allocators keep for each thread, bytes.
const SYSTEM_SLACK_BYTES: u64 = 16 << 20;

/// The baselines that outputs and counters can be compared with, best first: those of head's platform, then newer ones.
pub(super) fn references<'a>(baselines: &'a [Baseline], head: &Receipt) -> Vec<&'a Baseline> {
    let mut found: Vec<&Baseline> =
        baselines.iter().filter(|baseline| baseline.ensure_same_subject(head).is_ok()).collect();
    found.sort_by_cached_key(|baseline| {
        let created = baseline.sessions.last().map(|newest| newest.created.clone());
        (differing_platform(baseline, head).is_some(), Reverse(created))
    });
    found
}

/// Outputs and counters of every case, by the first of `references` that has it; the weights' bytes, by the first of all.
pub(super) fn judge(head: &Receipt, references: &[&Baseline], policy: &Policy) -> Vec<VerdictRow> {
    let counters =
        |base| Counters { tolerance: policy.counter_tolerance, other_platform: differing_platform(base, head) };
    let mut rows = Vec::new();
    for record in &head.cases {
        let mut known = references.iter().flat_map(|&base| base.exact.iter().map(move |exact| (base, exact)));
        let exact = known.find(|(_, exact)| exact.id == record.id);
        match (super::invalid(head, record), exact) {
            (Some(what), _) => rows.push(unknown(record, Outcome::Invalid).because(Reason::Broken { what })),
            (None, Some((base, exact))) => {
                let counters = counters(base);
                let tolerance = policy.drift_tolerance.unwrap_or_else(|| default_tolerance(&base.engine));
                let rule =
                    OutputRule { tolerance, other_platform: counters.other_platform.as_ref(), ..OutputRule::default() };
                rows.push(output::row(record.id, &exact.output, &record.output, &rule));
                let row = |(name, was, is)| counters.judge(record.id.into(), name, was, is, None);
                rows.extend(by_name(&exact.counters, &record.counters).map(row));
            }
            (None, None) => {
                let row = unknown(record, Outcome::Advisory).because(Reason::NoReference);
                rows.push(row.with_remedy(Remedy::Bless));
            }
        }
    }
    if let Some(base) = references.first() {
        rows.extend(counters(base).of_engines(&base.engine, &head.engine));
        rows.extend(held(base, head, counters(base)));
    }
    rows
}

/// Every counter that either side knows.
fn by_name<'a>(
    base: &'a BTreeMap<String, Counter>,
    head: &'a BTreeMap<String, Counter>,
) -> impl Iterator<Item = (&'a str, Option<Counter>, Option<Counter>)> {
    let names: BTreeSet<&String> = base.keys().chain(head.keys()).collect();
    names.into_iter().map(|name| (name.as_str(), base.get(name).copied(), head.get(name).copied()))
}

/// What the model holds. The peak of loading and what stays after the cases vary with the machine's caches, too.
fn held(base: &Baseline, head: &Receipt, counters: Counters) -> Vec<VerdictRow> {
    let other_platform = counters.other_platform.clone().or_else(|| other_class(&base.machine, &head.machine));
    let of_varying = Counters { other_platform, ..counters };
    let slack_bytes = KEPT_BY_THREAD_BYTES.saturating_mul(head.threads as u64).saturating_add(HELD_SLACK_BYTES);
    let cases = |ids: &mut dyn Iterator<Item = Case>| ids.collect::<BTreeSet<Case>>();
    let newest = base.sessions.last().into_iter().flat_map(|newest| &newest.cases);
    let has_same_cases = cases(&mut newest.map(|case| case.id)) == cases(&mut head.cases.iter().map(|case| case.id));
    let row = |(name, was, is): (&str, _, _)| match name {
        LIVE_BYTES_AT_REST if !has_same_cases => None,
        PEAK_LIVE_BYTES_LOADING | LIVE_BYTES_AT_REST => Some(of_varying.held(name, was, is, slack_bytes)),
        _ => Some(counters.held(name, was, is, HELD_SLACK_BYTES)),
    };
    by_name(&base.held, &head.held).filter_map(row).collect()
}

/// Rows of every counter of base's cases in a paired run: both sides ran on one machine. What base does not count cannot be compared.
pub(super) fn counted_by_both(base: &[CountedCase], head: &[CountedCase], tolerance: f64) -> Vec<VerdictRow> {
    let counters = Counters { tolerance, other_platform: None };
    let rows = |was: &CountedCase| -> Vec<VerdictRow> {
        let is = head.iter().find(|head| head.id == was.id);
        let row = |(name, counter): (&String, &Counter)| {
            let twice = is.and_then(|head| head.reached_twice.get(name)).copied();
            let is = is.and_then(|head| head.counters.get(name)).copied();
            counters.judge(was.id.into(), name, Some(*counter), is, twice)
        };
        was.counters.iter().map(row).collect()
    };
    base.iter().flat_map(rows).collect()
}

/// Whether head's cases count so much more than base's that a paired run fails. With one process of each side that may be noise.
pub fn counts_more(base: &[CountedCase], head: &[CountedCase], tolerance: f64) -> bool {
    counted_by_both(base, head, tolerance).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

/// Rows for the memory that both models hold, for counters that base has.
pub(super) fn held_by_both(
    base: &BTreeMap<String, Counter>,
    head: &BTreeMap<String, Counter>,
    tolerance: f64,
) -> Vec<VerdictRow> {
    let counters = Counters { tolerance, other_platform: None };
    let row =
        |(name, was): (&String, &Counter)| counters.held(name, Some(*was), head.get(name).copied(), HELD_SLACK_BYTES);
    base.iter().map(row).collect()
}

/// Whether head's model holds so much more than base's that a paired run fails. With one measurement of each side that may be
/// noise.
pub fn holds_more(base: &BTreeMap<String, Counter>, head: &BTreeMap<String, Counter>, tolerance: f64) -> bool {
    held_by_both(base, head, tolerance).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

fn unknown(record: &CaseRecord, outcome: Outcome) -> VerdictRow {
    VerdictRow::new(record.id, outcome, Evidence::Output(OutputEvidence::default()))
}

/// Reason if the machine classes differ: times cannot be compared then.
pub(super) fn other_class(base: &Machine, head: &Machine) -> Option<Reason> {
    let (base, head) = (base.class.clone(), head.class.clone());
    (base != head).then(|| Reason::OtherPlatform { what: "machine class".into(), base, head })
}

/// Why two platforms cannot be compared exactly; `None` if they can. What neither side knows counts as equal, which is the
/// stricter reading.
fn differing_platform(base: &Baseline, head: &Receipt) -> Option<Reason> {
    let (was, is) = (&base.machine, &head.machine);
    let built = base.sessions.last().map_or_else(|| head.build.features(), |newest| newest.build.features());
    [
        ("operating system", was.os.clone(), is.os.clone()),
        ("architecture", was.arch.clone(), is.arch.clone()),
        ("libc", known(&was.libc), known(&is.libc)),
        ("instruction set", known(&was.instruction_set), known(&is.instruction_set)),
        ("thread count", base.threads.to_string(), head.threads.to_string()),
        ("Cargo features", built.to_owned(), head.build.features().to_owned()),
    ]
    .into_iter()
    .find(|(_, was, is)| was != is)
    .map(|(what, base, head)| Reason::OtherPlatform { what: what.into(), base, head })
}

/// How counters are compared.
pub(super) struct Counters {
    /// A counter of bytes may rise by this fraction; a number of allocations by none.
    pub tolerance: f64,
    /// Why counters of the two platforms need not agree.
    pub other_platform: Option<Reason>,
}

impl Counters {
    /// The bytes of the model's weights, if base knows them; a context that became shorter, and a vocabulary of another size.
    pub fn of_engines(&self, base: &EngineInfo, head: &EngineInfo) -> Vec<VerdictRow> {
        let row = |name, was: Option<u64>, is: Option<u64>| {
            let exactly = |number: Option<u64>| number.map(|number| Counter { min: number, max: number });
            self.judge(Subject::Model, name, exactly(was), exactly(is), None)
        };
        let tokens = |name, was: usize, is: usize| row(name, Some(was as u64), Some(is as u64));
        let sizes = [
            tokens(CONTEXT_TOKENS, base.context_tokens, head.context_tokens),
            tokens(VOCAB_TOKENS, base.vocab_tokens, head.vocab_tokens),
        ];
        let is_worse = |row: &VerdictRow| matches!(&row.evidence, Evidence::Counter(counter) if counter.rises());
        let weights = base.weight_bytes.map(|bytes| row("weight_bytes", Some(bytes), head.weight_bytes));
        weights.into_iter().chain(sizes.into_iter().filter(is_worse)).collect()
    }

    /// One number of what the model holds; a rise by up to `slack_bytes` passes.
    fn held(&self, name: &str, base: Option<Counter>, head: Option<Counter>, slack_bytes: u64) -> VerdictRow {
        let is_of_system = SYSTEM_COUNTERS.contains(&name);
        let usual = if is_of_system || name == PEAK_LIVE_BYTES_LOADING { PEAK_TOLERANCE } else { 0.0 };
        let slack_bytes = if is_of_system { SYSTEM_SLACK_BYTES.max(slack_bytes) } else { slack_bytes };
        let least = base.map_or(0.0, |base| slack_bytes as f64 / base.max.max(1) as f64);
        let tolerance = self.tolerance.max(usual).max(least);
        let own = Self { tolerance, other_platform: self.other_platform.clone() };
        let mut row = own.judge(Subject::Model, name, base, head, None);
        // A fall that is no larger than an allowed rise is no improvement.
        let is_slight = base
            .zip(head)
            .is_some_and(|(base, head)| base.min.saturating_sub(head.max) as f64 <= tolerance * base.min as f64);
        if is_slight && row.outcome == Outcome::Improved {
            row.outcome = Outcome::Pass;
        }
        row
    }

    /// Compares ranges: head is worse if even its least count is above base's largest, and better if its largest is below base's
    /// least. A thread that frees late makes a counter larger now and then, never smaller. `twice` is what two repeats of each of
    /// head's processes reach, which is no noise.
    fn judge(
        &self,
        subject: Subject,
        name: &str,
        base: Option<Counter>,
        head: Option<Counter>,
        twice: Option<u64>,
    ) -> VerdictRow {
        let unit = Unit::of(name);
        let tolerance = if unit == Unit::Bytes { self.tolerance } else { 0.0 };
        let most = base.zip(head).map(|(base, head)| base.max.max(head.min));
        let mut evidence = CounterEvidence { name: name.into(), unit, base, head, head_twice: None, tolerance };
        // If every repeat of head is above base's, that decides without `twice`.
        if !evidence.rises() {
            evidence.head_twice = twice.filter(|twice| most.is_some_and(|most| *twice > most));
        }
        let outcome = match (base, head) {
            (Some(_), Some(_)) if evidence.rises() => Outcome::CounterRegressed,
            (Some(base), Some(head)) if head.max < base.min => Outcome::Improved,
            (Some(_), Some(_)) => Outcome::Pass,
            // A counter must not escape the gate by no longer being counted.
            (Some(_), None) => Outcome::Inconclusive,
            (None, _) => Outcome::Advisory,
        };
        let mut row = VerdictRow::new(subject, outcome, Evidence::Counter(evidence));
        if base.is_none() {
            row.remedy = Some(Remedy::Bless);
        } else if let (Some(other), true) = (&self.other_platform, outcome != Outcome::Pass) {
            (row.outcome, row.reasons) = (Outcome::Advisory, vec![other.clone()]);
        }
        row
    }
}
