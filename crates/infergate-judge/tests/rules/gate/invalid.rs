//! A run that breaks an invariant is invalid, with the reason, and gives no verdict.

use infergate_judge::{Policy, judge};
use infergate_receipts::Outcome;

use crate::gate::support::{decode_baseline, notes, row, run};

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
