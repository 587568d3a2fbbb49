//! What a case runs of what changed: that is explained beside its time, and a case that runs nothing of it is not timed.

use infergate_judge::paired::{Policy, judge};
use infergate_receipts::{CodeRecord, CodeRuns, Outcome, PairedReceipt, Reason, Verdict};

use crate::gate::support::measured;
use crate::gate::support::{case, note, row};

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
    judge(receipt, &Policy::default())
}

fn outcome(verdict: &Verdict) -> Outcome {
    row(verdict, "decode/p8", "itl_ns").outcome
}

#[test]
fn a_case_that_runs_nothing_changed_is_not_timed_and_passes() {
    let mut receipt = slower(Some(0));
    receipt.code.as_mut().expect("a record").same_cases = vec![case("decode/p8")];
    receipt.cases[0].timed = false;
    receipt.blocks.clear();
    let verdict = judged(&receipt);
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::SameCode, 0));
    let reasons = &row(&verdict, "decode/p8", "itl_ns").reasons;
    assert_eq!(*reasons, [Reason::RunsNothingChanged { changed: 3 }]);
    // With --time-same-code it is timed, and its time decides.
    assert_eq!(outcome(&judged(&slower(Some(0)))), Outcome::Regressed);
}

#[test]
fn what_runs_a_changed_function_or_may_do_so_fails_and_says_which() {
    let verdict = judged(&slower(Some(1)));
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::Regressed, 1));
    let said = note(row(&verdict, "decode/p8", "itl_ns"));
    assert!(said.contains("runs 1 of the 3 changed functions: engine::step"), "{said}");
    let verdict = judged(&slower(None));
    assert_eq!((outcome(&verdict), verdict.exit_code), (Outcome::Regressed, 1));
    let said = note(row(&verdict, "decode/p8", "itl_ns"));
    assert!(said.contains("not known: it starts another program, 'nvidia-smi'"), "{said}");
}
