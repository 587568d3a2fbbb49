//! The exact channel: what has no noise.

use std::collections::{BTreeMap, BTreeSet};

use super::Policy;
use super::output::{compare, default_tolerance};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_receipts::{
    Baseline, CONTEXT_TOKENS, CaseRecord, CountedCase, Counter, CounterEvidence, Evidence, ExactRecord,
    LIVE_BYTES_AT_REST, Outcome, Output, OutputComparison, OutputEvidence, PEAK_LIVE_BYTES_LOADING, Reason, Receipt,
    Remedy, SYSTEM_COUNTERS, Subject, Unit, VOCAB_TOKENS, VerdictRow,
};

/// On another platform (other SIMD width, other rounding) a first differing id whose two best logits lay closer than
/// this is not an error.
const NEAR_TIE_LOGITS: f32 = 1e-3;

/// A rise of a counter of bytes by up to this fraction passes, unless the team says otherwise.
pub const COUNTER_TOLERANCE: f64 = 0.01;

/// A path that is longer, or a thread that frees late, is no more than this.
const HELD_SLACK_BYTES: u64 = 65_536;

/// A thread may keep a buffer as large as its L2 cache from its first matrix product on, and which threads of a pool have one is
/// luck. Sessions of a baseline show that luck once; a paired run looks again.
const KEPT_BY_THREAD_BYTES: u64 = 2 << 20;

/// How much is live at once while a model loads depends on how its threads meet, and how many pages a process has on what its
/// allocators keep.
const PEAK_TOLERANCE: f64 = 0.1;

/// Stacks, and what allocators keep for each thread, are no more than this.
const SYSTEM_SLACK_BYTES: u64 = 16 << 20;

/// Outputs and counters of every case, and the weights' bytes.
pub(super) fn judge(head: &Receipt, base: Option<&Baseline>, policy: &Policy) -> Vec<VerdictRow> {
    let platform = base.map(|base| differing_platform(base, head));
    let counters = Counters { tolerance: policy.counter_tolerance, other_platform: platform.clone().flatten() };
    let mut rows = Vec::new();
    for record in &head.cases {
        let exact = base.and_then(|base| base.exact.iter().find(|exact| exact.id == record.id));
        if let Some(what) = super::invalid(head, record) {
            rows.push(unknown(record, Outcome::Invalid).because(Reason::Broken { what }));
            continue;
        }
        match (exact, &platform) {
            (Some(exact), Some(other)) => {
                let tolerance = policy
                    .drift_tolerance
                    .unwrap_or_else(|| default_tolerance(base.map_or(&head.engine, |base| &base.engine)));
                rows.push(output(record, exact, other.as_ref(), tolerance));
                rows.extend(counters.of_case(record, exact));
            }
            _ => {
                let row = unknown(record, Outcome::Advisory).because(Reason::NoReference);
                rows.push(row.mended_by(Remedy::Bless));
            }
        }
    }
    if let Some(base) = base {
        rows.extend(counters.weights(base.engine.weight_bytes, head.engine.weight_bytes));
        rows.extend(counters.sizes(&base.engine, &head.engine));
        rows.extend(held(base, head, counters));
    }
    rows
}

/// What the model holds. The peak of loading and what stays after the cases depend on the machine's caches, too.
fn held(base: &Baseline, head: &Receipt, counters: Counters) -> Vec<VerdictRow> {
    let is_by_luck = |name: &str| [PEAK_LIVE_BYTES_LOADING, LIVE_BYTES_AT_REST].contains(&name);
    let mut rows = counters.held(&base.held, &head.held, HELD_SLACK_BYTES, |name| !is_by_luck(name));
    let (was, is) = (&base.machine.class, &head.machine.class);
    let other_class = || Reason::OtherPlatform { what: "machine class".into(), base: was.clone(), head: is.clone() };
    let other_platform = counters.other_platform.or_else(|| (was != is).then(other_class));
    let slack_bytes = KEPT_BY_THREAD_BYTES.saturating_mul(head.threads as u64).saturating_add(HELD_SLACK_BYTES);
    let is_alike = has_the_same_cases(base, head);
    rows.extend(Counters { other_platform, ..counters }.held(&base.held, &head.held, slack_bytes, |name| {
        is_by_luck(name) && (is_alike || name != LIVE_BYTES_AT_REST)
    }));
    rows
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

/// Whether head's cases count more than base's by so much that a paired run fails: in one process of each side that may be luck.
pub fn counts_more(base: &[CountedCase], head: &[CountedCase], tolerance: f64) -> bool {
    counted_by_both(base, head, tolerance).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

/// Rows of what the models of a paired run hold.
pub(super) fn held_by_both(
    base: &BTreeMap<String, Counter>,
    head: &BTreeMap<String, Counter>,
    tolerance: f64,
) -> Vec<VerdictRow> {
    Counters { tolerance, other_platform: None }.held(base, head, HELD_SLACK_BYTES, |_| true)
}

/// Whether head's model holds more than base's by so much that a paired run fails: one look at each side may be luck.
pub fn holds_more(base: &BTreeMap<String, Counter>, head: &BTreeMap<String, Counter>, tolerance: f64) -> bool {
    held_by_both(base, head, tolerance).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

/// Whether the newest session has the cases of this run.
fn has_the_same_cases(base: &Baseline, head: &Receipt) -> bool {
    let was: BTreeSet<Case> =
        base.sessions.last().into_iter().flat_map(|newest| &newest.cases).map(|case| case.id).collect();
    was == head.cases.iter().map(|case| case.id).collect()
}

fn unknown(record: &CaseRecord, outcome: Outcome) -> VerdictRow {
    VerdictRow::new(record.id, outcome, Evidence::Output(OutputEvidence::new(OutputComparison::Unknown)))
}

/// Why exactness across these two platforms cannot be asked for; `None` where it can. What neither side knows counts as
/// equal, which is the stricter reading.
fn differing_platform(base: &Baseline, head: &Receipt) -> Option<Reason> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let (was, is) = (&base.machine, &head.machine);
    [
        ("operating system", was.os.clone(), is.os.clone()),
        ("architecture", was.arch.clone(), is.arch.clone()),
        ("libc", text(&was.libc), text(&is.libc)),
        ("instruction set", text(&was.instruction_set), text(&is.instruction_set)),
        ("thread count", base.threads.to_string(), head.threads.to_string()),
    ]
    .into_iter()
    .find(|(_, was, is)| was != is)
    .map(|(what, base, head)| Reason::OtherPlatform { what: what.into(), base, head })
}

fn output(record: &CaseRecord, exact: &ExactRecord, other_platform: Option<&Reason>, tolerance: f64) -> VerdictRow {
    let found = compare(&exact.output, &record.output, tolerance);
    // A margin that nobody knows is no near tie, and no clear choice either.
    let near_tie = found.base_margin.is_some_and(|margin| margin < NEAR_TIE_LOGITS);
    let are_numbers = found.other_logits.is_none() && !found.no_numbers;
    let is_rounding = (near_tie || found.position.is_none()) && are_numbers;
    let other_prompt = other_prompt(&exact.output, &record.output);
    let outcome = match (found.comparison, other_platform) {
        (OutputComparison::Changed, _) if other_prompt => Outcome::NotComparable,
        (OutputComparison::Drifted | OutputComparison::Same, _) if found.lost_positions > 0 => Outcome::Inconclusive,
        (OutputComparison::Changed, Some(_)) if found.lost_positions > 0 && is_rounding => Outcome::Inconclusive,
        (OutputComparison::Drifted, _) => Outcome::Drifted,
        // Elsewhere numbers may round by more than here; another token is another matter, and so is what is no number.
        (OutputComparison::Changed, Some(_)) if is_rounding => Outcome::Advisory,
        (OutputComparison::Changed, _) => Outcome::OutputChanged,
        _ => Outcome::Pass,
    };
    let row = VerdictRow::new(record.id, outcome, Evidence::Output(found));
    match outcome {
        Outcome::NotComparable => return row.because(Reason::OtherPrompt),
        Outcome::Inconclusive => return row.because(Reason::LogitsLost),
        _ => {}
    }
    match other_platform.filter(|_| outcome != Outcome::Pass) {
        Some(other) => row.because(other.clone()),
        None => row,
    }
}

/// Whether both outputs are known to follow different prompts.
pub(super) fn other_prompt(base: &Output, head: &Output) -> bool {
    base.prompt_sha256.as_ref().zip(head.prompt_sha256.as_ref()).is_some_and(|(base, head)| base != head)
}

/// How counters are compared.
pub(super) struct Counters {
    /// A counter of bytes may rise by this fraction; a number of allocations by none.
    pub tolerance: f64,
    /// Why counters of these two platforms cannot be asked to agree.
    pub other_platform: Option<Reason>,
}

impl Counters {
    /// Every counter either side knows, by name.
    fn of_case(&self, record: &CaseRecord, exact: &ExactRecord) -> Vec<VerdictRow> {
        let names: BTreeSet<&String> = exact.counters.keys().chain(record.counters.keys()).collect();
        let row = |name: &String| {
            let (was, is) = (exact.counters.get(name).copied(), record.counters.get(name).copied());
            self.judge(record.id.into(), name, was, is, None)
        };
        names.into_iter().map(row).collect()
    }

    /// The bytes of the model's weights, where either side knows them.
    pub fn weights(&self, base: Option<u64>, head: Option<u64>) -> Option<VerdictRow> {
        let exactly = |bytes: Option<u64>| bytes.map(|bytes| Counter { min: bytes, max: bytes });
        let known = base.is_some() || head.is_some();
        known.then(|| self.judge(Subject::Model, "weight_bytes", exactly(base), exactly(head), None))
    }

    /// A context that became shorter, a vocabulary of another size: a row where it is one.
    pub fn sizes(&self, base: &EngineInfo, head: &EngineInfo) -> Vec<VerdictRow> {
        let exactly = |tokens: usize| Some(Counter { min: tokens as u64, max: tokens as u64 });
        let sizes = [
            (CONTEXT_TOKENS, base.context_tokens, head.context_tokens),
            (VOCAB_TOKENS, base.vocab_tokens, head.vocab_tokens),
        ];
        let rows = sizes.map(|(name, was, is)| self.judge(Subject::Model, name, exactly(was), exactly(is), None));
        let is_worse = |row: &VerdictRow| matches!(&row.evidence, Evidence::Counter(counter) if counter.rises());
        rows.into_iter().filter(is_worse).collect()
    }

    /// What the model holds, by every counter that is `comparable`; a rise by up to `slack_bytes` passes.
    fn held(
        &self,
        base: &BTreeMap<String, Counter>,
        head: &BTreeMap<String, Counter>,
        slack_bytes: u64,
        comparable: impl Fn(&str) -> bool,
    ) -> Vec<VerdictRow> {
        let names: BTreeSet<&String> = base.keys().chain(head.keys()).filter(|name| comparable(name)).collect();
        let row = |name: &String| {
            let (was, is) = (base.get(name).copied(), head.get(name).copied());
            let is_of_system = SYSTEM_COUNTERS.contains(&name.as_str());
            let usual = if is_of_system || name == PEAK_LIVE_BYTES_LOADING { PEAK_TOLERANCE } else { 0.0 };
            let slack_bytes = if is_of_system { SYSTEM_SLACK_BYTES.max(slack_bytes) } else { slack_bytes };
            let least = was.map_or(0.0, |was| slack_bytes as f64 / was.max.max(1) as f64);
            let own =
                Self { tolerance: self.tolerance.max(usual).max(least), other_platform: self.other_platform.clone() };
            let row = own.judge(Subject::Model, name, was, is, None);
            // No more is an improvement than would be a regression.
            let fall = was.zip(is).map_or(0, |(was, is)| was.min.saturating_sub(is.max)) as f64;
            let is_slight =
                row.outcome == Outcome::Improved && fall <= own.tolerance * was.map_or(0.0, |was| was.min as f64);
            if is_slight { VerdictRow { outcome: Outcome::Pass, ..row } } else { row }
        };
        names.into_iter().map(row).collect()
    }

    /// Ranges are compared by their ends: worse is above all that was seen before even at its best, better is below all of
    /// it. A thread that frees a little later than another looks makes a counter larger now and then, never smaller. `twice` is what
    /// two repeats of each of head's processes reach: that is no luck.
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
        let head_twice = twice.filter(|twice| most.is_some_and(|most| *twice > most));
        let mut evidence = CounterEvidence { name: name.into(), unit, base, head, head_twice: None, tolerance };
        // Where every repeat of head is above base's, it is so in all runs, and no luck.
        if !evidence.rises() {
            evidence.head_twice = head_twice;
        }
        let outcome = match (base, head) {
            (Some(_), Some(_)) if evidence.rises() => Outcome::CounterRegressed,
            (Some(base), Some(head)) if head.max < base.min => Outcome::Improved,
            (Some(_), Some(_)) => Outcome::Pass,
            // A counter must not escape the gate by no longer being counted.
            (Some(_), None) => Outcome::Inconclusive,
            (None, _) => Outcome::Advisory,
        };
        let evidence = Evidence::Counter(evidence);
        let decided = matches!(outcome, Outcome::CounterRegressed | Outcome::Improved | Outcome::Inconclusive);
        match &self.other_platform {
            Some(other) if decided => VerdictRow::new(subject, Outcome::Advisory, evidence).because(other.clone()),
            _ => {
                let row = VerdictRow::new(subject, outcome, evidence);
                if base.is_none() { row.mended_by(Remedy::Bless) } else { row }
            }
        }
    }
}
