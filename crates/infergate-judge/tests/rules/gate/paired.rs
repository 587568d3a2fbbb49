//! A paired run judged: what is shown below the limit, and targets by what head was measured to take.

use infergate_judge::paired::{Policy, judge};
use infergate_receipts::{Outcome, PairedReceipt, Shown, Verdict};

use crate::gate::support::{allocations, assert_near, measured, note, row, time};

fn against(receipt: &PairedReceipt, target: &str) -> Verdict {
    judge(receipt, &Policy { targets: vec![target.parse().expect(target)], ..Policy::default() })
}

#[test]
fn slower_below_the_limit_is_said_and_passes() {
    // Around +1.5 %, from 0.5 to 2.5: it is shown to be slower before it is shown to be below 2 %.
    let slower = [0.025, 0.005, 0.024, 0.006, 0.023, 0.007, 0.025, 0.005];
    let receipt = measured("decode/p8", 10_000_000, &[&slower[..], &[0.015; 16]].concat());
    let verdict = judge(&receipt, &Policy::default());
    let row = row(&verdict, "decode/p8", "itl_ns");
    assert_eq!((row.outcome, verdict.exit_code), (Outcome::WithinLimit, 0), "{row:?}");
    assert_eq!(time(row).shown, Some(Shown::Slower), "{row:?}");
    assert!(time(row).p_adjusted.expect("a p") <= 0.01 && time(row).ratio.expect("a ratio") < 1.02, "{row:?}");
    assert_near(time(row).interval.map(|interval| interval.level), 0.95);
}

#[test]
fn targets_are_judged_by_what_head_took() {
    let decode = measured("decode/p8", 10_000_000, &[0.0; 8]);
    let prefill = measured("prefill/p8", 10_000_000, &[0.0; 8]);
    let generation = measured("generate/p8-o5", 100_000_000, &[0.0; 8]);
    for (receipt, target, value, expected) in [
        (&decode, "decode/* itl_ms <= 10", Some(10.0), Outcome::Pass),
        (&decode, "decode/* itl_ms < 10", Some(10.0), Outcome::TargetMissed),
        (&decode, "* tokens_per_s > 99", Some(100.0), Outcome::Pass),
        (&decode, "* ttft_ms < 1000", None, Outcome::TargetMissed),
        (&prefill, "* ttft_ms < 9", Some(10.0), Outcome::TargetMissed),
        (&prefill, "* e2e_ms < 11", Some(10.0), Outcome::Pass),
        (&prefill, "* output_tokens_per_s > 99", Some(100.0), Outcome::Pass),
        (&prefill, "* itl_ms < 1000", None, Outcome::TargetMissed),
        (&generation, "* e2e_ms < 101", Some(100.0), Outcome::Pass),
        (&generation, "* output_tokens_per_s > 51", Some(50.0), Outcome::TargetMissed),
        // Whole generations were timed, and not their tokens.
        (&generation, "* ttft_ms < 1000", None, Outcome::Inconclusive),
        (&generation, "* allocations_per_token < 1000", None, Outcome::Inconclusive),
    ] {
        let verdict = against(receipt, target);
        let id = receipt.cases[0].id.to_string();
        let row = row(&verdict, &id, target.split(' ').nth(1).expect("a metric"));
        assert_eq!((row.outcome, verdict.exit_code), (expected, expected.exit_code()), "{target}: {row:?}");
        let infergate_receipts::Evidence::Target(found) = &row.evidence else { panic!("{row:?}") };
        assert_eq!(found.value.map(f64::round), value, "{target}");
    }
    let mut grouped = decode.clone();
    grouped.cases[0].iterations_per_sample = 5;
    assert_eq!(against(&grouped, "decode/* itl_ms <= 2").verdict, Outcome::Pass, "a time is the sum of five");
    let said = against(&generation, "* ttft_ms < 1000");
    let said = note(row(&said, "generate/p8-o5", "ttft_ms"));
    assert!(said.contains("did not measure it, so it is not judged; measure head alone"), "{said}");
}

#[test]
fn a_target_on_a_counter_is_judged_by_heads_count() {
    let mut receipt = measured("decode/p8", 10_000_000, &[0.0; 8]);
    receipt.head.counted = allocations("decode/p8", 564, 566);
    assert_eq!(against(&receipt, "* allocations_per_token <= 566").verdict, Outcome::Pass);
    assert_eq!(against(&receipt, "* allocations_per_token < 566").verdict, Outcome::TargetMissed);
    assert_eq!(against(&receipt, "* peak_live_bytes < 1e12").verdict, Outcome::TargetMissed, "it was not counted");
}

#[test]
fn a_target_that_cannot_be_judged_never_passes() {
    let mut receipt = measured("decode/p8", 10_000_000, &[0.0; 8]);
    assert_eq!(against(&receipt, "prefill/* ttft_ms < 1000").verdict, Outcome::TargetMissed, "it names no case");
    receipt.partial = true;
    assert_eq!(against(&receipt, "* itl_ms < 1000").verdict, Outcome::Partial);
    receipt.invalid.push("decode/p8: why".into());
    assert_eq!(against(&receipt, "* itl_ms < 1000").verdict, Outcome::Invalid);
}

#[test]
fn first_token_and_gaps_of_a_generation_are_shown_and_decide_nothing() {
    let mut receipt = measured("generate/p8-o5", 100_000_000, &[0.0; 8]);
    // Head takes 50 % more to its first token and less for the rest: the whole is the same.
    for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases) {
        block.base_tokens_ns = vec![[60, 70, 80, 90, 100].map(|ms| ms * 1_000_000).to_vec()];
        block.head_tokens_ns = vec![[90, 92, 94, 96, 100].map(|ms| ms * 1_000_000).to_vec()];
    }
    let verdict = judge(&receipt, &Policy::default());
    assert_eq!(verdict.exit_code, 0);
    assert!(time(row(&verdict, "generate/p8-o5", "e2e_ns")).counted);
    for (metric, base_ns, ratio) in [("ttft_ns", 60e6, 1.5), ("itl_ns", 10e6, 0.2)] {
        let further = row(&verdict, "generate/p8-o5", metric);
        assert_eq!((further.outcome, time(further).counted), (Outcome::Advisory, false), "{further:?}");
        assert_near(time(further).base_ns, base_ns);
        assert_near(time(further).ratio, ratio);
        assert!(time(further).interval.is_some(), "{further:?}");
    }
    // With its tokens known, a target on them is judged.
    assert_eq!(against(&receipt, "* ttft_ms < 90").verdict, Outcome::TargetMissed);
    assert_eq!(against(&receipt, "* itl_ms <= 2").verdict, Outcome::Pass);

    receipt.blocks[3].cases[0].head_tokens_ns.clear();
    let verdict = judge(&receipt, &Policy::default());
    assert_eq!(verdict.rows.iter().filter_map(|row| row.time()).count(), 1, "not of some blocks alone");
}

/// A bench that panics in head alone is no pass, and no reason to say nothing of the others.
#[test]
fn what_is_broken_in_head_leaves_the_others_their_outcome() {
    let mut receipt = measured("decode/p8", 10_000_000, &[0.0; 8]);
    receipt.broken.push("other fails in head alone: why".into());
    let verdict = judge(&receipt, &Policy::default());
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, 3));
    let time = verdict.rows.iter().find(|row| row.time().is_some()).expect("a row");
    assert_eq!(time.outcome, Outcome::WithinLimit);
    let said = infergate_report::words::headline::of(&verdict);
    assert!(said.contains("other fails in head alone"), "{said}");
}
