//! `gate` on prompts of lengths that no case has.

use crate::paired::gate;
use crate::sandbox::{Sandbox, stdout};

#[test]
fn lengths_that_base_refuses_are_said_and_those_that_head_alone_refuses_fail() {
    let sandbox = Sandbox::new();
    for base in ["fake+whole-blocks", "fake"] {
        let head = if base == "fake" { "fake+whole-blocks" } else { "fake" };
        let said = gate(&sandbox, base, head, &[]);
        if base == "fake" {
            let report = stdout(&said.code(3));
            assert!(report.contains("prefill/p2: head alone cannot run it"), "{report}");
        } else {
            let report = stdout(&said.success());
            assert!(report.contains("tokens were not compared: base cannot run them"), "{report}");
        }
    }
    let said = gate(&sandbox, "fake+whole-blocks", "fake+whole-blocks", &[]).success();
    assert!(stdout(&said).contains("tokens were not compared: head and base cannot run them"));
}

#[test]
fn requests_that_head_answers_otherwise_together_than_alone_never_pass() {
    let sandbox = Sandbox::new();
    for (base, head, code, said_of_it) in [
        ("fake+forks", "fake+forks", 0, None),
        ("fake", "fake+forks", 0, None),
        ("fake+forks", "fake", 3, Some("requests together in head alone: ")),
        ("fake+forks", "fake+wrong-forks", 3, Some("requests together in head alone: request ")),
        ("fake+wrong-forks", "fake+wrong-forks", 0, Some("requests together in head as in base: request ")),
        ("fake+failing-forks", "fake+failing-forks", 0, Some("requests together in head as in base: ")),
        ("fake+failing-forks", "fake+wrong-forks", 0, Some("requests together in head as in base: request ")),
        ("fake+wrong-forks", "fake+failing-forks", 3, Some("requests together in head alone: ")),
        ("fake+wrong-forks", "fake+dying-forks", 3, Some("requests together in head alone: ")),
    ] {
        let report = stdout(&gate(&sandbox, base, head, &[]).code(code));
        assert!(said_of_it.is_none_or(|said| report.contains(said)), "{base} {head}: {report}");
        assert_eq!(report.contains("requests together"), said_of_it.is_some(), "{base} {head}: {report}");
    }
    // It allows another answer, and not none.
    let worse = ["fake", "fake+failing-forks", "fake+dying-forks", "fake+tiring-forks"].map(|head| (head, 3));
    for (head, code) in [("fake+wrong-forks", 0)].into_iter().chain(worse) {
        gate(&sandbox, "fake+forks", head, &["--allow-output-change"]).code(code);
    }
}
