//! Shares of a suite, judged together.

use std::collections::BTreeMap;

use infergate_judge::paired::{Policy, Series, judge, merge, outcomes};
use infergate_receipts::{
    CodeRecord, CodeRuns, Counter, Evidence, Format as _, Outcome, PairedReceipt, Reason, SuiteShard, TimeEvidence,
    VerdictRow,
};
use proptest::prelude::*;

use crate::gate::memory::record;
use crate::gate::support::measured;

const SUITE: usize = 3;

fn shard(number: usize, id: &str, slower: &[f64]) -> PairedReceipt {
    PairedReceipt {
        share: Some(SuiteShard { number, of: SUITE, suite_cases: SUITE }),
        ..measured(id, 1_000_000, slower)
    }
}

fn quiet(at: usize) -> Vec<f64> {
    (0..8).map(|block| if (block + at).is_multiple_of(2) { 0.001 } else { -0.001 }).collect()
}

fn shards() -> Vec<PairedReceipt> {
    vec![shard(1, "prefill/p128", &quiet(0)), shard(2, "decode/p128", &[0.04; 20]), shard(3, "decode/p512", &quiet(1))]
}

fn outcome_of(receipt: &PairedReceipt, id: &str) -> Option<Outcome> {
    let verdict = judge(receipt, &Policy::default());
    let mut rows = verdict.rows.into_iter().filter(|row| row.time().is_some());
    rows.find(|row| row.subject.to_string() == id).map(|row| row.outcome)
}

#[test]
fn all_shards_are_one_suite_in_whatever_order() {
    let [first, second, third] = shards().try_into().expect("three");
    let merged = merge(vec![third, first, second]).expect("a suite");
    assert_eq!(merged.share, None);
    for (id, outcome) in [
        ("prefill/p128", Outcome::WithinLimit),
        ("decode/p128", Outcome::Regressed),
        ("decode/p512", Outcome::WithinLimit),
    ] {
        assert_eq!(outcome_of(&merged, id), Some(outcome), "{id}");
    }
    assert_eq!(judge(&merged, &Policy::default()).exit_code, 1);
}

/// One that the time did not hold for leaves the others as they are.
#[test]
fn a_shard_that_ended_early_ends_no_other() {
    let mut cut = shards();
    cut[0].blocks.truncate(2);
    cut[0].out_of_time = true;
    let merged = merge(cut).expect("a suite");
    assert_eq!(outcome_of(&merged, "decode/p128"), Some(Outcome::Regressed));
    assert_eq!(outcome_of(&merged, "decode/p512"), Some(Outcome::WithinLimit));
    assert!(outcome_of(&merged, "prefill/p128").is_some_and(|outcome| outcome.is_undecided()));
}

/// Blocks of one shard are none of another's: three times too few are too few.
#[test]
fn what_would_show_rests_on_the_blocks_of_one_shard() {
    let mut short = shards();
    short[1].blocks.truncate(8);
    short.iter_mut().for_each(|shard| shard.out_of_time = true);
    let verdict = judge(&merge(short).expect("a suite"), &Policy::default());
    let times: Vec<&TimeEvidence> = verdict.rows.iter().filter_map(VerdictRow::time).collect();
    assert_eq!(times.iter().map(|time| time.blocks).max(), Some(Some(8)));
    assert!(times.iter().all(|time| time.smallest_slowdown.is_none()), "{times:?}");
}

/// The cases of one shard leave more at rest than those of another, and base may not be counted in one of them.
#[test]
fn what_a_model_holds_is_compared_within_a_shard() {
    const MIB: u64 = 1 << 20;
    let held = |bytes: u64| [("live_bytes_at_rest".to_owned(), Counter { min: bytes, max: bytes })].into();
    let outcome = |sides: [(Option<u64>, Option<u64>); SUITE]| {
        let mut shards = shards();
        for (shard, (base, head)) in shards.iter_mut().zip(sides) {
            shard.base.held = base.map_or_else(BTreeMap::new, held);
            shard.head.held = head.map_or_else(BTreeMap::new, held);
        }
        let verdict = judge(&merge(shards).expect("a suite"), &Policy::default());
        let is_held =
            |row: &&VerdictRow| matches!(&row.evidence, Evidence::Counter(of) if of.name == "live_bytes_at_rest");
        verdict.rows.iter().find(is_held).map(|row| row.outcome)
    };
    let both = |bytes| (Some(bytes), Some(bytes));
    let (small, large) = (40 * MIB, 90 * MIB);
    assert_eq!(outcome([both(small), both(large), both(small)]), Some(Outcome::Pass));
    assert_eq!(
        outcome([both(small), (None, Some(large)), both(small)]),
        Some(Outcome::Pass),
        "base is not counted there"
    );
    let risen = outcome([(Some(small), Some(large)), both(large), both(small)]);
    assert_eq!(risen, Some(Outcome::CounterRegressed), "another shard's size hides no rise");
    // A few KiB may come and go in a small model, however many times as much they are.
    let few = (Some(100 << 10), Some(150 << 10));
    assert_eq!(outcome([few, (Some(small), Some(42 * MIB)), few]), Some(Outcome::CounterRegressed));
    let lost = outcome([both(large), (Some(small), None), both(small)]);
    assert_eq!(lost, Some(Outcome::Inconclusive), "head no longer counts it in one shard");
    assert_eq!(outcome([(None, Some(small)), (None, Some(large)), (None, None)]), None);
}

/// Each shard follows memory, and a leak that comes now and then may show in one of them alone.
#[test]
fn a_leak_that_one_shard_found_stays_found() {
    for leaking in 0..SUITE {
        let mut some = shards();
        for (at, shard) in some.iter_mut().enumerate() {
            let per_run = if at == leaking { 4096.0 } else { 0.0 };
            shard.memory = Some(record(100, |run| (1e6 + per_run * run as f64, 1e9)));
        }
        let verdict = judge(&merge(some).expect("a suite"), &Policy::default());
        assert!(verdict.rows.iter().any(|row| row.outcome == Outcome::Leak), "shard {leaking}: {:?}", verdict.rows);
    }
}

#[test]
fn a_program_that_did_not_change_is_not_timed_and_passes() {
    let mut some = shards();
    some[0].code = Some(CodeRecord::same());
    some[0].cases[0].timed = false;
    some[0].blocks.clear();
    let merged = merge(some).expect("a suite");
    assert_eq!(outcome_of(&merged, "prefill/p128"), Some(Outcome::SameCode));
    assert_eq!(outcome_of(&merged, "decode/p128"), Some(Outcome::Regressed));
}

/// What one program changed is known, and what another did is not.
#[test]
fn what_a_case_runs_is_of_what_its_own_program_changed() {
    let mut some = shards();
    let case = some[1].cases[0].id;
    let runs = vec![CodeRuns { id: case, functions: Some(0), changed: None, named: Vec::new(), why: None }];
    some[1].code = Some(CodeRecord { same: false, changed: Some(2), runs, ..CodeRecord::same() });
    some[0].code = None;
    let verdict = judge(&merge(some).expect("a suite"), &Policy::default());
    let reasons = verdict.rows.iter().flat_map(|row| &row.reasons);
    let runs: Vec<&Reason> = reasons.filter(|reason| matches!(reason, Reason::RunsChanged { .. })).collect();
    assert_eq!(runs, [&Reason::RunsChanged { functions: 0, changed: 2, named: Vec::new() }]);
}

#[test]
fn what_is_not_the_shards_of_one_gate_is_refused() {
    type Change = fn(&mut Vec<PairedReceipt>);
    let changes: [(Change, &str); 7] = [
        (|shards| drop(shards.remove(1)), "of 3 shards these are missing: 2"),
        (|shards| shards[2] = shards[1].clone(), "shard 2 of 3 is given twice"),
        (|shards| shards[1].head.build.commit = Some("0".repeat(40)), "is of other commits"),
        (|shards| shards[1].tool = "9.9.9".into(), "other versions of infergate"),
        (|shards| shards[1].seed = 7, "other seeds"),
        (|shards| shards[2].cases = shards[1].cases.clone(), "is in two shards"),
        (|shards| shards[0].share = None, "is judged alone"),
    ];
    for (change, expected) in changes {
        let mut changed = shards();
        change(&mut changed);
        let said = format!("{:#}", merge(changed).expect_err(expected));
        assert!(said.contains(expected), "{said}");
    }
    assert!(merge(Vec::new()).is_err());
    let of_too_many = Some(SuiteShard { number: 1, of: usize::MAX, suite_cases: SUITE });
    let refused = PairedReceipt { share: of_too_many, ..shards().remove(0) }.check().expect_err("a file was edited");
    assert!(refused.to_string().contains("no such shard"), "{refused}");
}

proptest! {
    /// A machine that knows nothing of the others' cases never calls one that all of them together would not.
    #[test]
    fn a_shard_regresses_no_more_than_the_suite(
        own in prop::collection::vec(-0.02_f64..0.08, 40),
        others in prop::collection::vec(prop::collection::vec(-0.03_f64..0.03, 40), 1..6),
    ) {
        let series = |differences: &Vec<f64>| Series {
            limit: 1.02_f64.ln(), expected_std: Some(0.02), differences: differences.clone(), ..Series::default()
        };
        let alone = outcomes(&[series(&own)], others.len())[0];
        let suite: Vec<Series> = std::iter::once(&own).chain(&others).map(series).collect();
        let together = outcomes(&suite, 0)[0];
        if alone == Some(Outcome::Regressed) {
            prop_assert_eq!(together, Some(Outcome::Regressed));
        }
    }
}
