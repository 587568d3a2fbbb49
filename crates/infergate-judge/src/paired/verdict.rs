//! From the blocks of a paired run to its verdict.

use super::accept;
use super::sequential::{case_states, outcomes};
use super::series::{Series, series};
use super::{coverage, load_counts, outputs, secondary_metrics, times};
use crate::Policy;
use crate::memory;
use crate::{differences, exact, servers, target};
use infergate_core::case::Case;
use infergate_core::printable::first_of;
use infergate_receipts::{
    Against, BlockRecord, Evidence, Metric, Note, Outcome, PairedCase, PairedReceipt, Reason, Shown, Statistic,
    TimeEvidence, Verdict, VerdictRow,
};

/// The cases that more blocks may settle. None once head is worse under load, where a block takes most of a minute. All of them while
/// only counts under load are open.
pub fn open_cases(receipt: &PairedReceipt) -> Vec<Case> {
    if load_counts::is_decided(receipt) {
        return Vec::new();
    }
    let open = unsettled(&receipt.cases, &receipt.blocks, receipt.out_of_time, receipt.cases_elsewhere());
    if open.is_empty() && load_counts::is_pending(receipt) {
        return receipt.timed().map(|case| case.id).collect();
    }
    open
}

/// The timed cases that are not settled after these blocks. Other runs measure `elsewhere` further cases of the suite.
pub fn unsettled(cases: &[PairedCase], blocks: &[BlockRecord], is_last: bool, elsewhere: usize) -> Vec<Case> {
    let (ids, suite): (Vec<Case>, Vec<Series>) = series(cases, blocks, is_last).into_iter().unzip();
    ids.into_iter()
        .zip(outcomes(&suite, elsewhere))
        .filter(|(_, outcome)| outcome.is_none())
        .map(|(id, _)| id)
        .collect()
}

/// Judges a paired run: outputs first, then time. The worst row decides; a run that broke an invariant or was cut short never
/// passes. Each time has the smallest slowdown that the run would have detected, which is simulated.
pub fn judge(receipt: &PairedReceipt, policy: &Policy) -> Verdict {
    let mut verdict = judged(receipt, policy, true);
    let warning = if policy.inconclusive_passes { warning(&verdict) } else { None };
    verdict.notes.splice(0..0, warning);
    verdict
}

/// Names the rows that pass by `inconclusive = "warn"`, even if others keep the verdict from passing.
fn warning(verdict: &Verdict) -> Option<Note> {
    let open = verdict.rows.iter().filter(|row| row.passes_undecided());
    let open: Vec<String> = open.map(|row| row.subject.to_string()).collect();
    // No warning if the setting changes nothing: with a regression, or in a run that broke.
    let is_of_run = matches!(verdict.verdict, Outcome::Invalid | Outcome::Partial);
    if open.is_empty() || is_of_run || !(verdict.passes_undecided() || matches!(verdict.exit_code, 3 | 4)) {
        return None;
    }
    let open = open.join(", ");
    Some(Note::from(format!("inconclusive: {open}; inconclusive = \"warn\" allows that, and nothing else")))
}

/// As [`judge`], without the simulated smallest slowdowns, which take most of its time, and without the note of `inconclusive = "warn"`.
pub fn judge_without_power(receipt: &PairedReceipt, policy: &Policy) -> Verdict {
    judged(receipt, policy, false)
}

fn judged(receipt: &PairedReceipt, policy: &Policy, with_power: bool) -> Verdict {
    let (base, head) = (&receipt.base, &receipt.head);
    let (mut rows, of_lengths) = outputs::judge(receipt, policy);
    let counters = exact::Counters { tolerance: policy.counter_tolerance, other_platform: None };
    rows.extend(counters.of_engines(&base.engine, &head.engine));
    rows.extend(same_code(receipt));
    let elsewhere = receipt.cases_elsewhere();
    let (ids, suite): (Vec<Case>, Vec<Series>) =
        series(&receipt.cases, &receipt.blocks, receipt.out_of_time).into_iter().unzip();
    let cases = suite.len() + elsewhere;
    for ((id, series), state) in ids.iter().zip(&suite).zip(case_states(&suite, elsewhere)) {
        let times = times::rows(receipt, *id, series, &state, with_power.then_some(cases));
        let checked = times.into_iter().map(|row| servers::check_server_pairs(receipt.servers, series, cases, row));
        rows.extend(checked.map(|row| coverage::add_coverage_reason(receipt, row)));
        rows.extend(secondary_metrics::rows(receipt, *id, series, state.blocks));
    }
    rows.extend(load_counts::rows(receipt));
    rows.extend(exact::counted_by_both(&base.counted, &head.counted, policy.counter_tolerance));
    rows.extend(exact::held_by_both(&base.held, &head.held, policy.counter_tolerance));
    excuse_counts_of_faster_cases(&mut rows);
    rows.extend(target::judge_pair(receipt, &policy.targets));
    if let Some(record) = &receipt.memory {
        rows.extend(memory::judge(record));
    }
    let without_effect = accept::apply(&mut rows, receipt, policy);
    let mut notes = [without_effect, notes(receipt)].concat();
    notes.extend(of_lengths);
    let judged = Verdict::of(rows, notes);
    if !receipt.invalid.is_empty() || !receipt.broken.is_empty() {
        judged.at_best(Outcome::Invalid)
    } else if receipt.partial {
        judged.at_best(Outcome::Partial)
    } else if receipt.cases.is_empty() {
        // This shard has no case to judge.
        judged.at_best(Outcome::NotComparable)
    } else if policy.inconclusive_passes {
        judged.passing_undecided()
    } else {
        judged
    }
}

/// A higher count does not fail a case that is shown to be faster.
fn excuse_counts_of_faster_cases(rows: &mut [VerdictRow]) {
    let is_faster = |row: &&VerdictRow| {
        row.time().is_some_and(|time| time.statistic == Statistic::Median && time.shown == Some(Shown::Faster))
    };
    let faster: Vec<Case> = rows.iter().filter(is_faster).filter_map(|row| row.subject.case()).collect();
    for row in rows.iter_mut().filter(|row| row.outcome == Outcome::CounterRegressed) {
        if row.subject.case().is_some_and(|case| faster.contains(&case)) {
            row.outcome = Outcome::Advisory;
            row.reasons.push(Reason::TimeIsBetter);
        }
    }
}

fn notes(receipt: &PairedReceipt) -> Vec<Note> {
    // The command's own notes first: whoever reads only one note should read one of them.
    let mut notes = receipt.notes.clone();
    let broken = receipt.invalid.iter().chain(&receipt.broken);
    notes.extend(broken.map(|what| Note::Broken { what: what.clone() }));
    if receipt.partial {
        notes.push(Note::CutShort { base: false });
    }
    notes.extend(receipt.share.filter(|shard| shard.of > 1).map(|shard| {
        Note::from(format!(
            "shard {} of {} of a suite of {} cases: only all shards together give its verdict",
            shard.number, shard.of, shard.suite_cases
        ))
    }));
    if receipt.base.counted.is_empty() && !receipt.head.counted.is_empty() {
        notes.push(Note::BaseNotCounted);
    }
    notes.extend(receipt.code.as_ref().and_then(|code| match (code.same, code.changed) {
        (true, _) => Some(Note::SameCode),
        (false, functions) => Some(Note::CodeChanged { functions: functions?, named: code.named.clone() }),
    }));
    let alike = receipt.alike.as_ref();
    notes.extend(alike.map(|alike| Note::LaidAlike { same: alike.same, functions: alike.functions }));
    notes.extend(not_compared(receipt));
    notes.extend(differences::of_builds(receipt));
    notes
}

/// The benches that one side lacks.
pub fn not_compared(receipt: &PairedReceipt) -> Vec<Note> {
    const NAMED: usize = 8;
    let unmatched = |benches: &[Case], why: &str| {
        let names: Vec<String> = benches.iter().map(ToString::to_string).collect();
        let text = || format!("{}: not compared, {why}", first_of(&names, NAMED, ", "));
        (!names.is_empty()).then(|| Note::from(text()))
    };
    let in_head = unmatched(&receipt.head.unmatched, "only head has it");
    let in_base = unmatched(&receipt.base.unmatched, "only base has it");
    in_head.into_iter().chain(in_base).collect()
}

/// A row for each time that was not taken because nothing could have changed it.
fn same_code(receipt: &PairedReceipt) -> Vec<VerdictRow> {
    let row = |case: &PairedCase| {
        let evidence = TimeEvidence {
            threshold: Some(case.threshold),
            throughput: case.throughput,
            ..TimeEvidence::new(Metric::gated(case.id), Against::Base)
        };
        let row = VerdictRow::new(case.id, Outcome::SameCode, Evidence::Time(evidence));
        match receipt.code.as_ref().filter(|code| code.runs_nothing_changed(case.id)).and_then(|code| code.changed) {
            Some(changed) => row.because(Reason::RunsNothingChanged { changed }),
            None => row,
        }
    };
    receipt.cases.iter().filter(|case| receipt.is_same_code_of(case.id)).map(row).collect()
}
