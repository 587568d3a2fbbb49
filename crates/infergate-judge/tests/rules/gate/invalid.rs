//! A run that breaks an invariant is invalid, with the reason, and gives no verdict.

use infergate_judge::{Policy, judge};
use infergate_receipts::{Counter, Outcome, Receipt};

use crate::gate::support::{decode_baseline, note, notes, row, run};

#[test]
fn a_broken_invariant_is_invalid_and_named() {
    type Break = fn(&mut Receipt);
    let broken: [(&str, Break); 9] = [
        ("a sample has 2 token times instead of 1", |run| run.cases[0].processes[0].samples_ns[0] = vec![1, 2]),
        ("a sample has 0 token times instead of 1", |run| run.cases[0].processes[0].samples_ns[0].clear()),
        ("a sample took no time", |run| run.cases[0].processes[0].samples_ns[0] = vec![0]),
        ("a process has no samples", |run| run.cases[0].processes[1].samples_ns.clear()),
        ("there are no samples", |run| run.cases[0].processes.clear()),
        ("output has 1 tokens instead of 2", |run| run.cases[0].output = crate::gate::support::output(vec![0])),
        ("output ids do not have the SHA-256", |run| run.cases[0].output.ids[1] = 9),
        ("counter heap has its smallest value above its largest", |run| {
            run.cases[0].counters.insert("heap".into(), Counter { min: 2, max: 1 });
        }),
        ("is in the run 2 times", |run| run.cases.push(run.cases[0].clone())),
    ];
    for (reason, break_it) in broken {
        let mut head = run(&[("decode/p128", &[500; 3])]);
        break_it(&mut head);
        for base in [Some(decode_baseline(&[1000; 8])), None] {
            let verdict = judge(&head, base.as_ref(), &Policy::default()).expect("a verdict");
            assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, 3), "{reason}");
            for metric in ["output", "itl_ns"] {
                let row = row(&verdict, "decode/p128", metric);
                assert_eq!(row.outcome, Outcome::Invalid, "{reason}: {row:?}");
                assert!(note(row).contains(reason), "{reason}: {row:?}");
            }
        }
    }
}

#[test]
fn one_broken_case_does_not_hide_the_others() {
    let mut head = run(&[("decode/p128", &[1000; 3]), ("prefill/p128", &[1000; 3])]);
    head.cases[1].processes.clear();
    let verdict = judge(&head, Some(&decode_baseline(&[1000; 8])), &Policy::default()).expect("a verdict");
    assert_eq!(row(&verdict, "decode/p128", "itl_ns").outcome, Outcome::WithinLimit);
    assert_eq!(row(&verdict, "prefill/p128", "ttft_ns").outcome, Outcome::Invalid);
}

#[test]
fn what_the_run_found_broken_itself_never_passes() {
    let mut head = run(&[("decode/p128", &[1000; 3]), ("decode/p12", &[1000; 3])]);
    head.invalid = vec!["decode/p128: output token 2 is not the same in two processes".into()];
    let verdict = judge(&head, Some(&decode_baseline(&[1000; 8])), &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, 3));
    assert_eq!(row(&verdict, "decode/p128", "itl_ns").outcome, Outcome::Invalid);
    assert_eq!(row(&verdict, "decode/p12", "itl_ns").outcome, Outcome::Advisory);
    assert!(notes(&verdict).iter().any(|note| note.starts_with("invalid: decode/p128: output token 2")));
    // Every case broke before its first sample.
    head.cases.clear();
    let verdict = judge(&head, None, &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, 3));
}

#[test]
fn a_run_of_nothing_is_not_a_pass() {
    // The weights' bytes still equal the baseline's, which is not enough.
    for base in [None, Some(decode_baseline(&[1000; 8]))] {
        let verdict = judge(&run(&[]), base.as_ref(), &Policy::default()).expect("a verdict");
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Failed, 2));
    }
}
