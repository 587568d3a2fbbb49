//! Head's infergate.toml against base's: what judges head cannot be loosened in silence.

use std::fs;

use crate::revisions::{commit, gate, repository};
use crate::sandbox::{Sandbox, stderr, stdout};

/// A repository whose gate is stricter than the defaults, in its first commit but one.
fn strict() -> Sandbox {
    let sandbox = repository();
    commit(&sandbox, "infergate.toml", "threshold = 1.02\nseed = 1\ncases = ['decode/p8', 'prefill/p8']\n", "strict");
    sandbox
}

#[test]
fn a_gate_that_head_loosens_is_named_in_the_verdict() {
    let sandbox = strict();
    sandbox.write("infergate.toml", "threshold = 1.5\ncases = ['decode/p8']\n[memory]\nruns = 0\n");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    let said = gate(&sandbox, "HEAD", &["--json=verdict.json"]).success();
    let (report, words) = (stdout(&said), stderr(&said));
    let verdict = fs::read_to_string(sandbox.path("verdict.json")).expect("a verdict");
    for change in
        ["threshold 1.02 -> 1.5", "memory.runs 100 -> 0", r#"cases ["decode/p8", "prefill/p8"] -> ["decode/p8"]"#]
    {
        let line = format!("head changes the gate: {change}");
        assert!(report.contains(&line), "{line}: {report}");
        assert!(words.contains(&line), "said before anything is built: {words}");
    }
    let verdict: serde_json::Value = serde_json::from_str(&verdict).expect("JSON");
    let threshold = serde_json::json!({"kind": "gate_changed", "key": "threshold", "was": "1.02", "is": "1.5"});
    assert!(verdict["notes"].as_array().is_some_and(|notes| notes.contains(&threshold)), "{verdict}");
    assert!(!report.contains("seed"), "the default, whether written or not: {report}");
    let note = report.find("head changes the gate").unwrap_or(usize::MAX);
    assert!(note < report.find("error rate").unwrap_or(0), "first of the notes: {report}");
}

#[test]
fn a_gate_that_head_leaves_as_it_is_says_nothing() {
    let sandbox = strict();
    let said = gate(&sandbox, "HEAD", &[]).success();
    assert!(!stdout(&said).contains("head changes the gate"), "{}", stdout(&said));
}

#[test]
fn a_file_that_head_deletes_is_a_change_and_one_that_cannot_be_read_is_said() {
    let sandbox = strict();
    fs::remove_file(sandbox.path("infergate.toml")).expect("there");
    let said = gate(&sandbox, "HEAD", &[]).success();
    assert!(stdout(&said).contains("head changes the gate: threshold 1.02 -> left out"), "{}", stdout(&said));

    commit(&sandbox, "infergate.toml", "a_key_of_another_version = 1\n", "other");
    fs::remove_file(sandbox.path("infergate.toml")).expect("there");
    let said = gate(&sandbox, "HEAD", &[]).success();
    let report = stdout(&said);
    assert!(report.contains("base's infergate.toml cannot be compared with head's"), "{report}");
    assert!(report.contains("unknown key 'a_key_of_another_version'"), "{report}");
}
