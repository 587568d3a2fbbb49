//! Receipts in, a verdict out: this package judges what others measured. It reads no clock and no file and starts nothing, so the same
//! receipt has the same verdict wherever it is judged.
//!
//! ```
//! use infergate_judge::{Policy, paired::judge};
//! use infergate_receipts::{Outcome, PairedReceipt};
//!
//! // What `gate --against main --out paired.json` writes: base and head took turns in eight blocks.
//! let json = include_str!("../../../tests/golden/paired-1.json");
//! let mut receipt: PairedReceipt = serde_json::from_str(json)?;
//! receipt.cases.truncate(1);
//! for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases) {
//!     block.head_ns = block.base_ns.iter().map(|ns| ns + ns / 10).collect();
//! }
//! let verdict = judge(&receipt, &Policy::default());
//! assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regressed, 1));
//! let time = verdict.deciding().and_then(|row| row.time()).expect("a time regressed");
//! assert!(time.ratio.is_some_and(|ratio| (ratio - 1.1).abs() < 1e-4));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Each module is one rule. A time is judged by one of two channels, each with its formula and its source: [`paired`] compares blocks of a
//! revision with those of another one in the same run, and [`judge`](judge()) one run with the days of a committed baseline. [`output`] is
//! compared before any time: a faster wrong answer is a failure. The exact channel compares what has no noise: counters and the weights'
//! bytes. [`memory`] judges whether one process leaks, and [`load`] judges the medians of load runs like those of a suite.
//!
//! Every case of a run has its rows. A row that is not judged tells why: [`Outcome::Advisory`] shows a number without deciding on
//! it.

// Only the command links it.
#![allow(missing_docs)]

mod days;
mod differences;
mod exact;
pub mod load;
pub mod memory;
pub mod output;
pub mod paired;
mod policy;
pub mod servers;
mod shares;
mod stored;
mod target;
mod time;

use anyhow::{Context, Result};

use infergate_receipts::{
    Baseline, CaseRecord, Note, Outcome, RECEIPT_SCHEMA, Receipt, ReceiptOrBaseline, Session, SessionCase, Verdict,
    VerdictRow,
};

pub use days::newest_of_each_day;
use days::{newest_per_day_by_segment, segments};
pub use exact::{COUNTER_TOLERANCE, counts_more, holds_more};
pub use policy::{ALPHA, CV_LIMIT, MIN_SESSIONS, Policy};
pub use shares::shares;
pub use stored::{StoredLimit, stored_limit};
pub use target::{ensure_targets_name, value as target_value};
pub use time::{MIN_PROCESSES_FOR_CV, limit_fraction, process_medians, summary_ns, variation};

/// Judges a run by the baselines of its engine and model. The baseline of its machine class judges its times. Outputs and
/// counters do not depend on a class, so the newest session of any class judges them: a change that was accepted on one class is
/// accepted on all.
pub fn judge_by_all(head: &Receipt, baselines: &[Baseline], policy: &Policy) -> Result<Verdict> {
    let mut verdict = judge_by(head, nearest(baselines, head), &exact::references(baselines, head), policy)?;
    verdict.notes.extend(shares(&verdict, head, baselines));
    Ok(verdict)
}

/// The baseline of head's machine class; else the one that judges its outputs.
pub fn nearest<'a>(baselines: &'a [Baseline], head: &Receipt) -> Option<&'a Baseline> {
    let own = baselines.iter().find(|known| known.machine.class == head.machine.class);
    own.or_else(|| exact::references(baselines, head).first().copied())
}

/// Judges a run against one baseline, or against none.
pub fn judge(head: &Receipt, base: Option<&Baseline>, policy: &Policy) -> Result<Verdict> {
    judge_by(head, base, base.as_slice(), policy)
}

/// `base` judges times, the first of `references` that has a case judges its output and counters.
fn judge_by(head: &Receipt, base: Option<&Baseline>, references: &[&Baseline], policy: &Policy) -> Result<Verdict> {
    base.map_or(Ok(()), |base| base.ensure_same_subject(head))?;
    let no_baseline = || vec![Note::NoBaseline { machine_class: head.machine.class.clone() }];
    let mut notes = base.map_or_else(no_baseline, |base| differences::of_baseline(base, head));
    notes.extend(differences::of_references(references, head));
    notes.extend(differences::probe_drift(head.probes.as_ref()));
    let mut rows = exact::judge(head, references, policy);
    rows.extend(stored::judge(head, base, policy, &rows));
    rows.extend(target::judge(head, &policy.targets)?);
    rows.extend(head.memory.iter().flat_map(memory::judge));
    Ok(decide((&head.invalid, head.partial), head.cases.is_empty(), policy, rows, notes))
}

/// Compares a run with a file. Against a baseline it judges as [`judge`] does. A receipt counts as a baseline of one session:
/// time is advisory, and the exact channel decides if the platforms match.
pub fn compare(base: &ReceiptOrBaseline, head: &Receipt, policy: &Policy) -> Result<Verdict> {
    let verdict = match base {
        ReceiptOrBaseline::Baseline(baseline) => judge(head, Some(baseline), policy)?,
        ReceiptOrBaseline::Receipt(receipt) => {
            let verdict = judge(head, Some(&Baseline::from_receipt(receipt)), policy)?;
            against_one_run(verdict, receipt.partial, &receipt.invalid)
        }
    };
    Ok(if share_a_case(base, head) { verdict } else { verdict.at_best(Outcome::NotComparable) })
}

/// Whether both have a case in common. Also true of a head without cases, which is another fault.
pub fn share_a_case(base: &ReceiptOrBaseline, head: &Receipt) -> bool {
    let has = |case: &CaseRecord| match base {
        ReceiptOrBaseline::Receipt(base) => base.cases.iter().any(|known| known.id == case.id),
        ReceiptOrBaseline::Baseline(base) => base.exact.iter().any(|known| known.id == case.id),
    };
    head.cases.is_empty() || head.cases.iter().any(has)
}

/// A verdict whose base was one run, which may have been cut short or broken.
fn against_one_run(mut verdict: Verdict, partial: bool, invalid: &[String]) -> Verdict {
    verdict.notes.insert(0, Note::OneSession);
    if partial {
        verdict.notes.insert(1, Note::CutShort { base: true });
    }
    if invalid.is_empty() {
        return verdict;
    }
    let broken = invalid.iter().map(|what| Note::Broken { what: format!("the base run: {what}") });
    verdict.notes.extend(broken);
    verdict.at_best(Outcome::Invalid)
}

/// The newest session of a baseline as a receipt.
pub fn newest_session(baseline: &Baseline) -> Result<Receipt> {
    let session =
        baseline.sessions.last().context("the baseline has no sessions; bless one with the command `bless`")?;
    let record = |case: &SessionCase| -> Result<CaseRecord> {
        let exact = baseline.exact.iter().find(|exact| exact.id == case.id);
        let exact =
            exact.with_context(|| format!("{}: the baseline has samples but no output; bless it anew", case.id))?;
        Ok(CaseRecord {
            id: case.id,
            output: exact.output.clone(),
            text: None,
            counters: exact.counters.clone(),
            work: case.work,
            processes: case.processes.clone(),
        })
    };
    let Session { created, tool, build, threads, probes, cases, .. } = session.clone();
    Ok(Receipt {
        schema: RECEIPT_SCHEMA.into(),
        created,
        tool,
        machine: baseline.machine.clone(),
        build,
        engine: baseline.engine.clone(),
        threads,
        seed: baseline.seed,
        probes,
        cases: cases.iter().map(record).collect::<Result<_>>()?,
        held: baseline.held.clone(),
        ..Receipt::default()
    })
}

/// The worst row decides. A run that broke an invariant, was cut short, has no cases, or lacks cases of a required baseline never
/// passes.
fn decide(
    (invalid, partial): (&[String], bool),
    is_empty: bool,
    policy: &Policy,
    rows: Vec<VerdictRow>,
    mut notes: Vec<Note>,
) -> Verdict {
    let is_missing = notes.iter().any(|note| matches!(note, Note::NotRun { .. }));
    notes.extend(partial.then_some(Note::CutShort { base: false }));
    notes.extend(invalid.iter().map(|what| Note::Broken { what: what.clone() }));
    let judged = Verdict::of(rows, notes);
    let at_best = if !invalid.is_empty() {
        Outcome::Invalid
    } else if partial {
        Outcome::Partial
    } else if is_empty {
        Outcome::Failed
    } else if is_missing && policy.require_baseline && judged.exit_code == 0 {
        Outcome::NotComparable
    } else {
        return judged;
    };
    judged.at_best(at_best)
}

/// The run's own reason why a record is invalid; `None` for a sound one.
fn invalid(head: &Receipt, record: &CaseRecord) -> Option<String> {
    let own = format!("{}: ", record.id);
    head.invalid.iter().find(|reason| reason.starts_with(&own)).cloned()
}
