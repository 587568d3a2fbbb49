//! A case that runs nothing of what changed is not called slower, and one that does is.

use std::collections::BTreeMap;

use cargo_infergate::gate::paired::{PairedPolicy, asks, judge};
use cargo_infergate::receipt::{CodeRecord, CodeRuns, CountedCase, Counter, MeanTest, Outcome, PairedReceipt, Verdict};

use crate::gate::paired::measured;
use crate::gate::support::{case, note, output, row};

const SLOWER: [f64; 13] = [0.05, 0.051, 0.049, 0.05, 0.052, 0.048, 0.05, 0.051, 0.049, 0.05, 0.052, 0.048, 0.05];

/// 5 % slower in every block, and `functions` of three that changed were seen to run.
fn slower(functions: Option<usize>) -> PairedReceipt {
    let named = vec!["engine::step".to_owned(); functions.unwrap_or_default()];
    let why = functions.is_none().then(|| "it starts another program, 'nvidia-smi'".to_owned());
    let runs = vec![CodeRuns { id: case("decode/p8"), functions, changed: None, named, why }];
    let code = Some(CodeRecord { same: false, same_cases: Vec::new(), changed: Some(3), named: Vec::new(), runs });
    PairedReceipt { code, ..measured("decode/p8", 10_000_000, &SLOWER) }
}

fn judged(receipt: &PairedReceipt) -> Verdict {
    let verdict = judge(receipt, &PairedPolicy::default());
    verdict
}

fn outcome(verdict: &Verdict) -> Outcome {
    row(verdict, "decode/p8", "itl_ns").outcome
}

#[test]
fn what_runs_nothing_that_changed_is_layout_and_passes() {
    let unwatched = judged(&measured("decode/p8", 10_000_000, &SLOWER));
    assert_eq!(outcome(&unwatched), Outcome::Regressed);
    assert!(unwatched.rows.iter().any(asks));
    let verdict = judged(&slower(Some(0)));
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::Layout, 0));
    let said = note(row(&verdict, "decode/p8", "itl_ns"));
    assert!(said.starts_with("it runs none of the 3 functions that changed"), "{said}");
}

#[test]
fn what_runs_a_changed_function_or_may_do_so_fails_and_says_which() {
    let verdict = judged(&slower(Some(1)));
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::Regressed, 1));
    let said = note(row(&verdict, "decode/p8", "itl_ns"));
    assert!(said.contains("it runs 1 of the 3 functions that changed: engine::step"), "{said}");
    let verdict = judged(&slower(None));
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::Regressed, 1));
    let said = note(row(&verdict, "decode/p8", "itl_ns"));
    assert!(said.contains("not known: it starts another program, 'nvidia-smi'"), "{said}");
}

/// What differs besides the time did not come from where the code lies.
#[test]
fn other_work_is_not_layout() {
    let counted = |count: u64| {
        let counters = BTreeMap::from([("allocations_per_token".to_owned(), Counter { min: count, max: count })]);
        vec![CountedCase {
            id: case("decode/p8"),
            counters,
            output_sha256: String::new(),
            reached_twice: BTreeMap::new(),
        }]
    };
    let mut receipt = slower(Some(0));
    (receipt.base.counted, receipt.head.counted) = (counted(3), counted(3));
    assert_eq!(outcome(&judged(&receipt)), Outcome::Layout);
    receipt.head.counted = counted(2);
    assert_eq!(outcome(&judged(&receipt)), Outcome::Regressed);
    let mut receipt = slower(Some(0));
    receipt.cases[0].head_output = output(vec![9; receipt.cases[0].id.output_tokens()]);
    assert_eq!(judged(&receipt).exit_code, 1);
    let partial = PairedReceipt { partial: true, ..slower(Some(0)) };
    assert_ne!(outcome(&judged(&partial)), Outcome::Layout);
}

/// What seldom runs can be missed by who watches, and is what stalls come from.
#[test]
fn a_stall_is_no_layout() {
    let mut receipt = slower(Some(0));
    receipt.cases[0].mean = Some(MeanTest { threshold: 1.05, by_noise: true, expected_std: Some(0.01) });
    let block = receipt.blocks[0].clone();
    receipt.blocks = (0..40)
        .map(|at| {
            let mut block = block.clone();
            let times = &mut block.cases[0];
            times.base_ns = vec![10_000_000; 10];
            times.head_ns = vec![10_000_000 + at % 2; 9];
            times.head_ns.push(40_000_000);
            block
        })
        .collect();
    receipt.cases[0].pairs = 10;
    let verdict = judged(&receipt);
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regressed, 1), "{:#?}", verdict.rows);
}
