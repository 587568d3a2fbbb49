//! Whose infergate.toml judges: base's in what decides. Head cannot loosen the gate that it has to pass.

use std::fs;

use infergate_receipts::{Verdict, read};

use crate::repositories::{commit, repository, run};
use crate::sandbox::{Sandbox, decision, error, stderr, stdout};

/// Also of a receipt that was measured before, as a share on another machine was.
#[test]
fn a_receipt_is_judged_by_bases_settings_too() {
    let sandbox = repository();
    let target = "cases = ['decode/p8']\ntargets = ['decode/p8 tokens_per_s > 1000000']\n[memory]\nruns = 0\n";
    commit(&sandbox, "infergate.toml", target, "a target");
    sandbox.write("infergate.toml", "cases = ['decode/p8']\n[memory]\nruns = 0\n");
    run(&sandbox, &["gate", "--against", "HEAD"]).code(1);
    let said = sandbox.run(&["gate", "--receipt=target/infergate/paired.json"]).code(1);
    assert!(decision(&said).contains("target missed"), "{}", stdout(&said));
    // Where there is no base to ask, the folder's own file is not it.
    let outside = Sandbox::new();
    let receipt = format!("--receipt={}", sandbox.path("target/infergate/paired.json").display());
    let line = error(outside.run(&["gate", &receipt]));
    assert!(line.contains("judge it in a clone of the repository that has base's commit"), "{line}");
}

#[test]
fn where_base_has_no_file_the_defaults_are_its_limits_and_head_says_what_is_measured() {
    let sandbox = repository();
    sandbox.write("infergate.toml", "threshold = 1.5\ncases = ['decode/p8']\n");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    let said = run(&sandbox, &["gate", "--against", "HEAD", "--json=verdict.json"]).code(1);
    let report = stdout(&said);
    let changed = "threshold 1.02 -> 1.5 (after the merge; base's applies here)";
    assert!(report.contains(&format!("head changes the gate: {changed}")), "{report}");
    assert!(report.contains("head changes the gate: cases not set -> decode/p8 (it applies here)"), "{report}");
    let verdict: Verdict = read(&sandbox.path("verdict.json")).expect("a verdict");
    assert!(verdict.rows.iter().all(|row| ["decode/p8", "model"].contains(&&*row.subject.to_string())), "{verdict:?}");
}

/// Base's file says keys to servers and folders of a machine.
#[test]
fn no_note_has_a_key_or_a_folder() {
    let sandbox = repository();
    let of_base = "cases = ['decode/p8']\nmodel = '/home/hidden/tiny.gguf'\nprompt = '/home/hidden/a.txt'\n\
                   options = ['api_key=sk-hidden', 'hidden']\nbench.carry = ['/home/hidden/data']\n\
                   server.command = ['/home/hidden/serve', '--api-key', 'sk-hidden', '{port}']\n\
                   worker.build = ['make KEY=sk-hidden']\n";
    commit(&sandbox, "infergate.toml", of_base, "settings");
    sandbox.write("infergate.toml", "cases = ['decode/p8']\n");
    let said = run(&sandbox, &["gate", "--against", "HEAD", "--json=verdict.json"]).success();
    let report = stdout(&said);
    for change in [
        "model tiny.gguf -> synthetic:gpt2",
        "prompt a.txt -> not set",
        "options ..., ... -> not set",
        "bench.carry data -> not set",
        "server.command serve, ... -> not set",
        "worker.build ... -> not set",
    ] {
        assert!(report.contains(&format!("head changes the gate: {change}")), "{change}: {report}");
    }
    let file = |name: &str| fs::read_to_string(sandbox.path(name)).expect(name);
    for text in [report, stderr(&said), file("verdict.json"), file("target/infergate/paired.json")] {
        assert!(!text.contains("hidden"), "{text}");
    }
}
