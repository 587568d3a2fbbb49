//! From the blocks of a paired run to its verdict.

use super::looks::{MAX_BLOCKS, Series, Standing, stand};
use super::power::smallest_slowdown;
use crate::gate::exact;
use crate::gate::memory::{self, MemoryPolicy};
use crate::receipt::{
    BlockCase, BlockRecord, CaseVerdict, Channel, Counter, Metric, Outcome, PairedCase, PairedReceipt, Verdict,
};
use crate::stats::{coefficient_of_variation, median};
use infergate::case::Case;
use infergate::measure::first_difference;

/// What may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairedPolicy {
    /// Another output is shown and does not fail.
    pub allow_output_change: bool,
    /// What head's memory phase may show.
    pub memory: MemoryPolicy,
}

/// d of one block: the median over its pairs of ln(head / base). `None` for times that are no times.
pub fn block_difference(block: &BlockCase) -> Option<f64> {
    median(&block.log_ratios()?)
}

/// The blocks of each timed case of `cases`, in suite order.
pub fn series(cases: &[PairedCase], blocks: &[BlockRecord]) -> Vec<(Case, Series)> {
    let of_case = |case: &PairedCase| {
        let found = blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
        let differences = found.filter_map(block_difference).collect();
        (case.id, Series { limit: case.threshold.ln(), differences })
    };
    cases.iter().filter(|case| case.timed).map(of_case).collect()
}

/// Judges a paired run: outputs first, then time. The worst case decides; a run that broke an invariant or was cut short
/// never passes.
pub fn judge(receipt: &PairedReceipt, policy: PairedPolicy) -> Verdict {
    let mut rows: Vec<CaseVerdict> = receipt.cases.iter().map(|case| output(case, policy)).collect();
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| Counter { min: bytes, max: bytes });
    let (was, is) = (bytes(receipt.base.engine.weight_bytes), bytes(receipt.head.engine.weight_bytes));
    if was.is_some() || is.is_some() {
        rows.push(exact::counter("model", "weight_bytes", was, is, None));
    }
    let (ids, suite): (Vec<Case>, Vec<Series>) = series(&receipt.cases, &receipt.blocks).into_iter().unzip();
    for ((id, series), standing) in ids.iter().zip(&suite).zip(stand(&suite)) {
        rows.push(time(receipt, *id, series, standing, suite.len()));
    }
    rows.extend(counters(receipt));
    if let Some(record) = &receipt.memory {
        rows.extend(memory::judge(record, policy.memory));
    }
    let mut notes: Vec<String> = receipt.invalid.iter().map(|reason| format!("invalid: {reason}")).collect();
    if receipt.partial {
        notes.push("the run was cut short: what was measured is shown, and nothing of it passes; measure again".into());
    }
    if receipt.base.counted.is_empty() && !receipt.head.counted.is_empty() {
        notes.push("base was not counted: allocations are not compared".into());
    }
    notes.extend(differing_builds(receipt));
    let judged = Verdict::of(rows, notes);
    let at_best = match (receipt.invalid.is_empty(), receipt.partial) {
        (false, _) => Outcome::Invalid,
        (true, true) => Outcome::Partial,
        (true, false) => return judged,
    };
    if judged.cases.is_empty() || judged.verdict.severity() < at_best.severity() {
        return Verdict { verdict: at_best, exit_code: at_best.exit_code(), ..judged };
    }
    judged
}

/// Both sides ran on one machine: every counter of base is compared. What base does not count cannot be.
fn counters(receipt: &PairedReceipt) -> Vec<CaseVerdict> {
    let mut rows = Vec::new();
    for base in &receipt.base.counted {
        let head = receipt.head.counted.iter().find(|head| head.id == base.id);
        for (name, was) in &base.counters {
            let is = head.and_then(|head| head.counters.get(name)).copied();
            rows.push(exact::counter(&base.id.to_string(), name, Some(*was), is, None));
        }
    }
    rows
}

fn output(case: &PairedCase, policy: PairedPolicy) -> CaseVerdict {
    let row = CaseVerdict::new(case.id, exact::OUTPUT, Channel::Exact, Outcome::Pass);
    let (was, is) = (&case.base_output.ids, &case.head_output.ids);
    let Some(position) = first_difference(was, is) else { return row };
    let id = |ids: &[u32]| ids.get(position).map_or_else(|| "none".into(), u32::to_string);
    let found = format!("{}: output token {} is {} instead of {}", case.id, position + 1, id(is), id(was));
    let (verdict, rest) = match policy.allow_output_change {
        true => (Outcome::Advisory, "allowed"),
        false => (Outcome::OutputChanged, "its time is not judged; --allow-output-change if that is meant"),
    };
    CaseVerdict { verdict, note: Some(format!("{found}; {rest}")), ..row }
}

fn time(receipt: &PairedReceipt, id: Case, series: &Series, standing: Standing, tests: usize) -> CaseVerdict {
    let mut row = CaseVerdict::time(id, Metric::of(&id), Channel::Paired, Outcome::Inconclusive);
    let blocks = receipt.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == id);
    let blocks: Vec<&BlockCase> = blocks.take(standing.blocks).collect();
    let case = receipt.cases.iter().find(|case| case.id == id);
    let iterations = case.map_or(1, |case| case.iterations_per_sample).max(1) as f64;
    let medians = |times: fn(&BlockCase) -> &[u64]| -> Vec<f64> {
        let ns = blocks.iter().map(|block| times(block).iter().map(|ns| *ns as f64 / iterations).collect::<Vec<_>>());
        ns.filter_map(|ns| median(&ns)).collect()
    };
    let (base, head) = (medians(|block| &block.base_ns), medians(|block| &block.head_ns));
    (row.base, row.head, row.cv) = (median(&base), median(&head), coefficient_of_variation(&head));
    row.ratio = standing.theta.map(f64::exp);
    (row.ci_low, row.ci_high) = (standing.low.map(f64::exp), standing.high.map(f64::exp));
    row.p_adjusted = standing.p_adjusted;
    row.threshold = Some(series.limit.exp());
    row.blocks = Some(standing.blocks);
    row.smallest_slowdown = standing.block_std.and_then(|std| smallest_slowdown(series.limit, std, MAX_BLOCKS, tests));
    let left = MAX_BLOCKS.saturating_sub(standing.blocks);
    (row.verdict, row.note) = match standing.outcome {
        // What holds of the run is said once, below.
        _ if !receipt.invalid.is_empty() => (Outcome::Invalid, None),
        Some(Outcome::Unstable) => (Outcome::Unstable, Some(format!("too noisy to judge in {MAX_BLOCKS} blocks"))),
        Some(outcome) => (outcome, None),
        None if receipt.partial => (Outcome::Partial, None),
        None if receipt.out_of_time => {
            let note =
                format!("the time given ended after {} blocks; up to {left} more may settle it", standing.blocks);
            (Outcome::Inconclusive, Some(note))
        }
        None => (Outcome::Inconclusive, Some(format!("{} blocks are too few to judge", standing.blocks))),
    };
    row
}

/// What differs between the two builds besides the code.
fn differing_builds(receipt: &PairedReceipt) -> Vec<String> {
    let (base, head) = (&receipt.base, &receipt.head);
    let fields = [
        ("rustc", &base.build.rustc, &head.build.rustc),
        ("compiler flags", &base.build.flags, &head.build.flags),
        ("optimisation level", &base.build.opt_level, &head.build.opt_level),
        ("target", &base.build.target, &head.build.target),
        ("infergate", &base.tool, &head.tool),
        ("engine", &base.engine.name, &head.engine.name),
        ("engine version", &base.engine.version, &head.engine.version),
        ("dtype", &base.engine.dtype, &head.engine.dtype),
    ];
    let mut notes: Vec<String> = fields
        .into_iter()
        .filter(|(_, was, is)| was != is)
        .map(|(what, was, is)| format!("{what} differs: '{is}' in head, '{was}' in base"))
        .collect();
    let settings = base.engine.settings.keys().chain(head.engine.settings.keys());
    let keys: std::collections::BTreeSet<&String> = settings.collect();
    for key in keys {
        let (was, is) = (base.engine.settings.get(key), head.engine.settings.get(key));
        if was != is {
            let text = |value: Option<&String>| value.cloned().unwrap_or_else(|| "unset".into());
            notes.push(format!("setting {key} differs: '{}' in head, '{}' in base", text(is), text(was)));
        }
    }
    notes
}
