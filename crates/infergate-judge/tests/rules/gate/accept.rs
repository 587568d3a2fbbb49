//! What head declares as intended passes, up to the size it names, in this comparison and no other.

use infergate_judge::paired::{Policy, judge};
use infergate_receipts::{
    Accept, MeanTest, NoEffect, Note, OUTPUT, Outcome, PairedReceipt, Reason, Statistic, Subject, Terms, UpTo, Verdict,
};
use proptest::prelude::*;

use crate::gate::support::{allocations, case, measured, row};

const CASE: &str = "decode/p8";

/// A table that is about `metric` of the one case.
fn accept(metric: &str, up_to: Option<UpTo>) -> Accept {
    let reason = "sorts all logits now".to_owned();
    Accept { case: case(CASE).into(), metric: metric.into(), up_to, reason }
}

fn percent(percent: f64) -> Option<UpTo> {
    Some(UpTo::Percent(percent))
}

fn declaring(receipt: PairedReceipt, accept: Vec<Accept>) -> PairedReceipt {
    let terms = Terms { by_head: false, accept, accepted_before: Vec::new() };
    PairedReceipt { terms: Some(terms), ..receipt }
}

/// 20 blocks, each slower by this fraction.
fn slower(fraction: f64) -> PairedReceipt {
    measured(CASE, 10_000_000, &[fraction; 20])
}

#[track_caller]
fn judged(receipt: &PairedReceipt) -> Verdict {
    judge(receipt, &Policy::default())
}

/// Why a table had no effect, in order.
fn without_effect(verdict: &Verdict) -> Vec<NoEffect> {
    let why = |note: &Note| if let Note::NotAccepted { why, .. } = note { Some(*why) } else { None };
    verdict.notes.iter().filter_map(why).collect()
}

#[test]
fn what_base_has_already_has_no_effect_and_is_said_to_be_stale() {
    let table = accept("itl_ns", percent(6.0));
    let mut receipt = declaring(slower(0.05), vec![table.clone()]);
    receipt.terms.as_mut().expect("terms").accepted_before.push(table.clone());
    let verdict = judged(&receipt);
    assert_eq!((verdict.verdict, without_effect(&verdict)), (Outcome::Regressed, vec![NoEffect::Stale]));

    // Nor what whoever judges again knows of, whatever the receipt says of base.
    let receipt = declaring(slower(0.05), vec![table.clone()]);
    let policy = Policy { accepted_before: vec![table.clone()], ..Policy::default() };
    let verdict = judge(&receipt, &policy);
    assert_eq!((verdict.verdict, without_effect(&verdict)), (Outcome::Regressed, vec![NoEffect::Stale]));

    // Another reason is another change.
    let again = Accept { reason: "and once more".into(), ..table.clone() };
    let mut receipt = declaring(slower(0.05), vec![again]);
    receipt.terms.as_mut().expect("terms").accepted_before.push(table);
    assert_eq!(judged(&receipt).verdict, Outcome::Pass);
}

#[test]
fn another_output_passes_where_its_time_was_taken_too() {
    let mut changed = slower(0.0);
    changed.cases[0].head_output = crate::gate::support::output(vec![99]);
    assert_eq!(judged(&changed).verdict, Outcome::OutputChanged);
    let table = || vec![accept(OUTPUT, None)];
    let verdict = judged(&declaring(changed.clone(), table()));
    assert_eq!((verdict.exit_code, row(&verdict, CASE, "output").outcome), (0, Outcome::Accepted));

    // No output hides a slowdown.
    let mut slow = slower(0.05);
    slow.cases[0].head_output = changed.cases[0].head_output.clone();
    assert_eq!(judged(&declaring(slow, table())).verdict, Outcome::Regressed);
    let mut untimed = changed;
    (untimed.cases[0].timed, untimed.blocks) = (false, Vec::new());
    assert_eq!(judged(&declaring(untimed, table())).verdict, Outcome::OutputChanged);
}

fn counted(receipt: PairedReceipt, base: u64, head: u64) -> PairedReceipt {
    let mut receipt = receipt;
    (receipt.base.counted, receipt.head.counted) = (allocations(CASE, base, base), allocations(CASE, head, head));
    receipt
}

#[test]
fn a_counter_rises_by_a_number_or_by_a_share() {
    let verdict = |up_to| {
        let table = accept("allocations_per_token", up_to);
        judged(&declaring(counted(slower(0.0), 200, 210), vec![table])).verdict
    };
    assert_eq!(verdict(Some(UpTo::Number(10))), Outcome::Pass);
    assert_eq!(verdict(Some(UpTo::Number(9))), Outcome::CounterRegressed);
    assert_eq!(verdict(percent(5.0)), Outcome::Pass);
    assert_eq!(verdict(percent(4.9)), Outcome::CounterRegressed);
}

#[test]
fn a_stall_does_not_pass_behind_an_accepted_median() {
    // In each block one pair of twelve takes many times as long on head.
    let with_a_stall = |times: u64| {
        let mut receipt = declaring(slower(0.05), vec![accept("itl_ns", percent(6.0))]);
        receipt.cases[0].mean = Some(MeanTest { threshold: 1.05, expected_std: Some(0.01) });
        for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases) {
            (block.base_ns, block.head_ns) = (vec![10_000_000; 12], vec![10_500_000; 12]);
            block.head_ns[0] *= times;
        }
        judged(&receipt)
    };
    let verdict = with_a_stall(1);
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Pass, 0), "{:#?}", verdict.rows);
    let verdict = with_a_stall(6);
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regressed, 1), "{:#?}", verdict.rows);
    let is_mean =
        |row: &&infergate_receipts::VerdictRow| row.time().is_some_and(|time| time.statistic == Statistic::Mean);
    let mean = verdict.rows.iter().find(is_mean).expect("a mean");
    assert_eq!(mean.outcome, Outcome::Regressed);
    assert!(mean.reasons.contains(&Reason::BeyondAccepted { up_to: percent(6.0) }), "{:#?}", mean.reasons);
}

#[test]
fn a_mean_that_fails_with_its_median_may_be_larger_by_its_own_limit() {
    // In each block one pair of twelve takes longer on head than the others.
    let judged = |one: u64, tables: Vec<Accept>| {
        let mut receipt = declaring(slower(0.1), tables);
        receipt.cases[0].mean = Some(MeanTest { threshold: 1.05, expected_std: Some(0.01) });
        for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases) {
            (block.base_ns, block.head_ns) = (vec![10_000_000; 12], vec![11_000_000; 12]);
            block.head_ns[0] = one;
        }
        judged(&receipt)
    };
    let of_mean = |verdict: &Verdict| {
        let mut times = verdict.rows.iter().filter_map(|row| Some((row.time()?, row.outcome)));
        times.find(|(time, _)| time.statistic == Statistic::Mean).map(|(_, outcome)| outcome)
    };
    assert_eq!(of_mean(&judged(12_000_000, vec![])), Some(Outcome::Regressed), "in the same look");
    let table = || vec![accept("itl_ns", percent(10.1))];
    let verdict = judged(12_000_000, table());
    assert_eq!((of_mean(&verdict), verdict.exit_code), (Some(Outcome::Advisory), 0), "{:#?}", verdict.rows);
    let verdict = judged(24_000_000, table());
    assert_eq!((of_mean(&verdict), verdict.exit_code), (Some(Outcome::Regressed), 1), "{:#?}", verdict.rows);
}

#[test]
fn what_noise_leaves_open_passes_where_all_of_it_is_accepted() {
    // Around the limit: neither above nor below it after all blocks.
    let mut open = measured(CASE, 10_000_000, &[[0.012, 0.028]; 20].concat());
    open.cases[0].widest = open.cases[0].threshold;
    let verdict = judged(&open);
    assert_eq!(verdict.verdict, Outcome::Inconclusive, "{:#?}", verdict.rows);
    let high = row(&verdict, CASE, "itl_ns").time().and_then(|time| time.interval).expect("an interval").high;
    let ends = |up_to: f64| judged(&declaring(open.clone(), vec![accept("itl_ns", percent(up_to))])).exit_code;
    assert_eq!(ends((high - 1.0) * 100.0 + 0.1), 0);
    assert_eq!(ends((high - 1.0) * 100.0 - 0.1), 3);
}

#[test]
fn a_run_that_broke_or_was_cut_short_passes_nothing() {
    let table = vec![accept("itl_ns", percent(90.0)), accept(OUTPUT, None)];
    let mut broken = declaring(slower(0.05), table.clone());
    broken.invalid.push("decode/p8: why".into());
    let mut cut = declaring(measured(CASE, 10_000_000, &[0.05; 3]), table);
    cut.partial = true;
    for receipt in [broken, cut] {
        let verdict = judged(&receipt);
        assert_eq!(verdict.exit_code, 3);
        assert!(verdict.rows.iter().all(|row| row.outcome != Outcome::Accepted), "{:#?}", verdict.rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// Whatever is slower by whatever: it passes exactly where the estimate is no larger than what is declared, a table never
    /// makes a verdict worse, and one without a size for this row changes nothing.
    #[test]
    fn accepted_is_what_is_no_larger_than_declared(fraction in -0.05f64..0.4, up_to in 0.1f64..50.0, stale in any::<bool>()) {
        let plain = slower(fraction);
        let before = judged(&plain);
        let table = accept("itl_ns", percent(up_to));
        let mut receipt = declaring(plain, vec![table.clone()]);
        if stale {
            receipt.terms.as_mut().expect("terms").accepted_before.push(table);
        }
        let after = judged(&receipt);
        let ratio = row(&after, CASE, "itl_ns").time().and_then(|time| time.ratio).expect("a ratio");
        let is_accepted = row(&after, CASE, "itl_ns").outcome == Outcome::Accepted;
        let regressed = before.verdict == Outcome::Regressed;
        prop_assert_eq!(is_accepted, regressed && !stale && ratio <= 1.0 + up_to / 100.0);
        prop_assert!(after.verdict.severity() <= before.verdict.severity());
        if !is_accepted {
            prop_assert_eq!(after.exit_code, before.exit_code);
        }
    }
}

#[test]
fn a_shorter_context_passes_up_to_the_tokens_that_are_declared() {
    let mut receipt = measured(CASE, 10_000_000, &[0.0; 20]);
    receipt.head.engine.context_tokens -= 24;
    let outcome = |receipt: &PairedReceipt| {
        let verdict = judged(receipt);
        (row(&verdict, "model", "context_tokens").outcome, verdict.exit_code)
    };
    assert_eq!(outcome(&receipt), (Outcome::CounterRegressed, 1));
    let declared = |tokens| Accept { case: Subject::Model, ..accept("context_tokens", Some(UpTo::Number(tokens))) };
    assert_eq!(outcome(&declaring(receipt.clone(), vec![declared(23)])), (Outcome::CounterRegressed, 1));
    assert_eq!(outcome(&declaring(receipt, vec![declared(24)])), (Outcome::Accepted, 0));
}
