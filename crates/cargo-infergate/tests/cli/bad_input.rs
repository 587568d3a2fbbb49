//! Bad input: one line saying what, where and how to mend it; exit 2; nothing half-written.

use std::fs;

use cargo_infergate::receipt::{Receipt, read};

use crate::sandbox::{Sandbox, error, stderr};

#[test]
fn bad_toml_is_named_with_line_and_column() {
    let sandbox = Sandbox::new();
    sandbox.write("infergate.toml", "seed = 1\nruns = = 5\n");
    let line = error(sandbox.run(&["gate"]));
    assert!(line.contains("infergate.toml:2:8: not TOML"), "{line}");
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    let sandbox = Sandbox::new();
    sandbox.write("infergate.toml", "seed = 1\n\nrun = 5\n");
    let line = error(sandbox.run(&["doctor"]));
    assert!(line.contains("infergate.toml:3:1: unknown key 'run'; did you mean 'runs'?"), "{line}");
}

#[test]
fn a_value_out_of_range_names_key_and_range_wherever_it_stands() {
    let sandbox = Sandbox::new();
    let line = error(sandbox.run(&["gate", "--runs", "0"]));
    assert!(line.contains("--runs: runs takes a whole number from 1 to 1000"), "{line}");
    // The name of the key is a flag of `memory`, too.
    for flag in ["--runs", "--memory-runs"] {
        let line = error(sandbox.run(&["memory", flag, "1x"]));
        assert!(line.contains("error: --runs: '1x' is not a whole number"), "{line}");
    }
    let mut process = sandbox.process(&["doctor"]);
    let line = error(
        assert_cmd::Command::from_std({
            process.env("INFERGATE_COUNTER_TOLERANCE", "2");
            process
        })
        .assert(),
    );
    assert!(line.contains("INFERGATE_COUNTER_TOLERANCE: counter_tolerance takes a number from"), "{line}");
    sandbox.write("infergate.toml", "targets = ['prefill/p128 ttft < 5']\n");
    let line = error(sandbox.run(&["doctor"]));
    assert!(line.contains("infergate.toml:1:1: target 'prefill/p128 ttft < 5' cannot be read"), "{line}");
    assert!(line.contains("did you mean ttft_ms?"), "{line}");
}

#[test]
fn an_unknown_flag_or_command_is_bad_usage() {
    for arguments in [["gate", "--modle"], ["gaet", "--help"]] {
        let said = Sandbox::new().run(&arguments).code(2).stdout("");
        assert!(stderr(&said).contains("similar"), "{}", stderr(&said));
    }
}

#[test]
fn a_flag_that_would_have_no_effect_is_refused() {
    let without_effect: [(&[&str], &str); 6] = [
        (&["bench", "--bench-carry=data"], "unexpected argument '--bench-carry'"),
        (&["calibrate", "--bench-carry=data"], "unexpected argument '--bench-carry'"),
        (&["gate", "--bench-carry=data"], "required arguments"),
        (&["doctor", "--targets=decode/p8 itl_ms < 5"], "unexpected argument '--targets'"),
        (&["compare", "a.json", "b.json", "--baselines=other"], "unexpected argument '--baselines'"),
        (&["calibrate", "--layouts=2"], "unexpected argument '--layouts'"),
    ];
    for (arguments, why) in without_effect {
        let said = Sandbox::new().run(arguments).code(2).stdout("");
        assert!(stderr(&said).contains(why), "{}", stderr(&said));
    }
}

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
    assert!(line.contains("negative.json") && line.contains("non-negative"), "{line}");

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
    assert!(last.starts_with("error: bench target 'inference': the build failed, cargo's words are above"), "{said}");
}
