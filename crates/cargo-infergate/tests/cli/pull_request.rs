//! `report --pull-request`: whoever is judged wrote the receipt, and another one judges it.

use std::fs;

use infergate_receipts::{PairedReceipt, read, write_json};

use crate::repositories::{commit, repository, run};
use crate::sandbox::Sandbox;

const TABLE: &str = "[[accept]]\ncase = 'decode/p8'\nmetric = 'itl_ns'\nup_to = '8%'\nreason = 'meant'\n";

/// A pull request that is 5 % slower, whose head declares `tables`, and that gates itself with these flags.
fn gated(tables: &str, flags: &[&str]) -> Sandbox {
    let sandbox = repository();
    commit(&sandbox, "infergate.toml", "cases = ['decode/p8']\n", "settings");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    sandbox.write("infergate.toml", &format!("cases = ['decode/p8']\n{tables}"));
    run(&sandbox, &[&["gate", "--against", "HEAD", "--out=paired.json", "--json=verdict.json"], flags].concat());
    sandbox
}

/// The same, whose receipt was edited to have wide limits.
fn pull_request(tables: &str) -> Sandbox {
    let sandbox = gated(tables, &[]);
    let mut receipt: PairedReceipt = read(&sandbox.path("paired.json")).expect("a receipt");
    receipt.cases.iter_mut().for_each(|case| (case.threshold, case.mean) = (1.5, None));
    write_json(&sandbox.path("paired.json"), &receipt).expect("written");
    sandbox
}

/// The default branch's checkout with these settings, and what `report --pull-request` makes of the receipt there.
fn comment(pull_request: &Sandbox, settings: &str) -> String {
    let own = Sandbox::new();
    own.write("infergate.toml", settings);
    fs::copy(pull_request.path("paired.json"), own.path("paired.json")).expect("a receipt");
    own.run(&["report", "paired.json", "--pull-request", "--format=comment", "--out=out"]).success();
    fs::read_to_string(own.path("out/comment.md")).expect("a comment")
}

#[test]
fn the_receipt_is_judged_again_and_the_comment_says_whose_numbers_they_are() {
    let sandbox = pull_request("");
    let text = comment(&sandbox, "cases = ['decode/p8']\n");
    assert!(text.contains("infergate: regressed\n") && text.contains("| +2.0 % |"), "{text}");
    assert!(
        text.contains("The numbers come from the pull request's own run, which could have made them up."),
        "{text}"
    );
    assert!(text.contains("[[accept]]\ncase = \"decode/p8\""), "what to write, where a reviewer needs it: {text}");
    // The default branch's own limits, and what the command found of both builds.
    let text = comment(&sandbox, "threshold = '20%'\nmean_threshold = '20%'\n");
    assert!(text.contains("infergate: pass\n") && text.contains("| +20 % |"), "{text}");
    assert!(text.contains(" changed: inference::main"), "{text}");
    // What was measured for a wide limit is not enough for a narrow one.
    let text = comment(&gated("", &["--threshold=1.5", "--mean-threshold=1.5"]), "");
    assert!(text.contains("infergate: inconclusive\n"), "{text}");
}

#[test]
fn what_head_declares_holds_until_the_default_branch_has_it() {
    let sandbox = pull_request(TABLE);
    let text = comment(&sandbox, "");
    assert!(text.contains("**Intended, as head declares; merging accepts it**"), "{text}");
    assert!(text.contains("infergate: pass\n"), "{text}");
    let text = comment(&sandbox, TABLE);
    assert!(text.contains("infergate: regressed\n") && text.contains("base has it already"), "{text}");
}

#[test]
fn what_the_settings_ask_for_and_the_run_has_not_passes_nothing() {
    let sandbox = pull_request(TABLE);
    for (settings, said) in [
        ("cases = ['decode/p8', 'prefill/p8']\n", "the settings ask for cases that the run has not: prefill/p8"),
        ("targets = ['decode/* allocations_per_token < 5']\n", "did not measure allocations_per_token"),
    ] {
        let text = comment(&sandbox, settings);
        assert!(!text.contains("infergate: pass"), "{settings}: {text}");
        // Below the marker and the verdict.
        let headline = text.lines().nth(3).expect("a sentence");
        assert!(headline.contains(said), "{said}: {text}");
    }
    // Nor does a run that was cut short.
    let mut receipt: PairedReceipt = read(&sandbox.path("paired.json")).expect("a receipt");
    receipt.partial = true;
    write_json(&sandbox.path("paired.json"), &receipt).expect("written");
    assert!(comment(&sandbox, "").contains("infergate: partial"), "{}", comment(&sandbox, ""));
}
