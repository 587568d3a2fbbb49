//! What a row is about: every subject survives its text.

use infergate::case::Case;
use infergate::receipt::{Name, Subject};

#[test]
fn a_subject_reads_as_it_prints() {
    let case: Case = "decode/p128".parse().expect("a case");
    assert_eq!("decode/p128".parse::<Subject>().expect("a case"), Subject::Case(case));
    assert_eq!("model".parse::<Subject>().expect("the model"), Subject::Model);
    assert_eq!("process".parse::<Subject>().expect("the process"), Subject::Process);
    let named: Subject = "criterion:decode/p128".parse().expect("a name");
    assert_eq!(named, Subject::Named(Name::new("criterion", "decode/p128").expect("a name")));
    assert_eq!((named.case(), Subject::Case(case).case()), (None, Some(case)));
}

#[test]
fn what_is_no_subject_says_how_to_write_one() {
    for text in ["", "decode", "modell", ":x", "criterion:", "Criterion:x", "a b:x", "server:\u{1b}[2J", "x:\n"] {
        let error = text.parse::<Subject>().expect_err(text).to_string();
        assert!(error.contains("decode/p128") || error.contains("criterion:fib/20"), "{text}: {error}");
        assert!(!error.contains(['\n', '\u{1b}']), "{error:?}");
    }
    assert!(Name::new("criterion", &"x".repeat(201)).is_err(), "a receipt is someone else's file");
}
