//! Bad input: one line saying what, where and how to mend it; exit 2; nothing half-written.

use std::fs;

use infergate_receipts::{Receipt, read};

use crate::sandbox::{Sandbox, error, stderr};

#[test]
fn an_unknown_case_is_refused() {
    let sandbox = Sandbox::new();
    for (case, why) in [
        ("embed/p8", "not a case id"),
        ("nothing*", "no case matches 'nothing*'"),
        ("prefill/p0", "zero tokens"),
        ("generate/p1000-o256", "1256 tokens"),
    ] {
        let mut process = sandbox.process(&["bench", "--model", "fake", "--cases", case, "--threads", "1"]);
        process.arg("--worker").arg(crate::support::example("fake_engine"));
        let line = error(assert_cmd::Command::from_std(process).assert());
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(sandbox.files(), [""; 0]);
}

#[test]
fn receipts_that_cannot_be_read_are_refused() {
    let sandbox = Sandbox::new();
    let line = error(sandbox.run(&["gate", "--receipt", "missing.json"]));
    assert!(line.starts_with("error: missing.json: cannot be read"), "{line}");

    sandbox.receipt("fake", "good.json");
    let good = fs::read_to_string(sandbox.path("good.json")).expect("kept");
    sandbox.write("newer.json", &good.replace("infergate.receipt/1", "infergate.receipt/2"));
    let line = error(sandbox.run(&["compare", "good.json", "newer.json"]));
    assert!(line.contains("newer.json") && line.contains("update infergate"), "{line}");

    sandbox.write("negative.json", &good.replacen("\"samples_ns\": [[", "\"samples_ns\": [[-", 1));
    let line = error(sandbox.run(&["compare", "good.json", "negative.json"]));
    assert!(line.contains("negative.json") && line.contains("invalid value"), "{line}");

    sandbox.write("cut.json", &good[..good.len() / 2]);
    let line = error(sandbox.run(&["gate", "--receipt", "cut.json"]));
    assert!(line.contains("cut.json") && line.contains("not JSON"), "{line}");
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "a regular file");
    for flag in ["--out", "--json"] {
        let assert = sandbox.measure("gate", "fake", &[flag, "file/below/it.json"]);
        assert!(!stderr(&assert).contains("process 1"), "{}", stderr(&assert));
        let line = error(assert);
        assert!(line.contains("it.json: cannot be written"), "{line}");
    }
    assert_eq!(sandbox.files(), ["file"]);
}

/// A run that ends between its phases must not leave what passes for a whole one.
#[cfg(unix)]
#[test]
fn a_receipt_is_partial_until_its_last_phase_is_in_it() {
    let sandbox = Sandbox::new();
    error(sandbox.measure("bench", "fake", &["--memory-worker", "/bin/false", "--out", "kept.json"]));
    let kept: Receipt = read(&sandbox.path("kept.json")).expect("what was measured is kept");
    assert!(kept.partial && kept.cases.len() == 2, "{kept:?}");
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let line = error(Sandbox::new().run(&["bench", "--worker", "no/such/worker"]));
    assert!(line.contains("no/such/worker: the worker cannot be started"), "{line}");
}

#[test]
fn outside_a_cargo_package_the_bench_target_cannot_be_built() {
    let said = stderr(&Sandbox::new().run(&["bench"]).code(2).stdout(""));
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: could not find `Cargo.toml` in "), "{said}");
}
