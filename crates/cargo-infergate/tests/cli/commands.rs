//! What each command does when all is well.

use std::fs;

use infergate_receipts::{RECEIPT_SCHEMA, Receipt, read};
use serde_json::Value;

use crate::sandbox::{Sandbox, decision, stdout};

#[test]
fn the_version_says_how_the_command_was_built() {
    let said = stdout(&Sandbox::new().run(&["--version"]).success());
    let build = infergate_core::build_info::build();
    let (first, second) = said.split_once('\n').expect("two lines");
    assert_eq!(first, format!("cargo infergate {}", env!("CARGO_PKG_VERSION")));
    let flags = if build.flags.is_empty() { "none" } else { &build.flags };
    assert_eq!(second.trim_end(), format!("{}, {}, flags: {flags}", build.rustc, build.target));
    assert!(build.rustc.starts_with("rustc ") && build.target.contains('-'), "{said}");
    let short = stdout(&Sandbox::new().run(&["-V"]).success());
    assert_eq!(short.trim_end(), first);
}

#[test]
fn every_command_explains_itself_with_examples_under_the_name_it_was_started_by() {
    for command in ["gate", "bench", "compare", "bless", "doctor"] {
        let said = Sandbox::new().run(&[command, "--help"]).success();
        let help = stdout(&said);
        assert!(help.contains(&format!("Examples:\n  cargo infergate {command}")), "{help}");
        assert!(!help.contains("xtask"), "{help}");
        assert!(help.contains("--json <FILE>"), "{help}");
    }
}

#[test]
fn bench_keeps_a_receipt_and_shows_it() {
    let sandbox = Sandbox::new();
    let said = sandbox.measure("bench", "fake", &["--json", "copy.json"]).success();
    let receipt = read::<Receipt>(&sandbox.path("target/infergate/receipt.json")).expect("kept");
    assert_eq!(receipt.schema, RECEIPT_SCHEMA);
    assert_eq!(receipt, read::<Receipt>(&sandbox.path("copy.json")).expect("kept twice"));
    assert_eq!(receipt.cases.len(), 2);
    assert!(receipt.cases.iter().all(|case| case.processes.len() == 2));
    let report = stdout(&said);
    for word in ["prefill/p8", "decode/p8", "TTFT", "ITL p50", "tok/s", "cold", "warm"] {
        assert!(report.contains(word), "{word} is missing in {report}");
    }
    assert!(!report.contains('\u{1b}'), "no colours in a pipe: {report}");
}

#[test]
fn a_flag_wins_over_the_environment_and_the_environment_over_the_file() {
    let sandbox = Sandbox::new();
    sandbox.baseline(1);
    sandbox.write("infergate.toml", "baselines = 'nowhere'\n");
    let has_baseline = |environment: Option<&str>, flags: &[&str]| {
        let mut process = sandbox.process(&["doctor"]);
        process.args(flags).envs(environment.map(|folder| ("INFERGATE_BASELINES", folder)));
        stdout(&assert_cmd::Command::from_std(process).assert().success()).contains("7 more days needed")
    };
    assert!(!has_baseline(None, &[]));
    assert!(has_baseline(Some("baselines"), &[]));
    assert!(!has_baseline(Some("baselines"), &["--baselines", "elsewhere"]));
}

#[test]
fn compare_judges_two_files_and_measures_nothing() {
    let sandbox = Sandbox::new();
    sandbox.receipt("fake", "base.json");
    sandbox.receipt("fake:slow", "slow.json");
    sandbox.receipt("fake:other-output", "other.json");

    let same = sandbox.run(&["compare", "base.json", "base.json"]).success();
    assert!(
        decision(&same).starts_with("verdict: pass (exit 0): 2 cases with the same output, "),
        "{}",
        decision(&same)
    );
    assert!(decision(&same).contains("time is advisory"), "{}", decision(&same));

    let slow = sandbox.run(&["compare", "base.json", "slow.json", "--json", "verdict.json"]).success();
    assert!(stdout(&slow).contains("time is advisory"), "{}", stdout(&slow));
    let verdict: Value =
        serde_json::from_str(&fs::read_to_string(sandbox.path("verdict.json")).expect("kept")).unwrap();
    assert_eq!(verdict["schema"], "infergate.verdict/1");
    let rows = verdict["rows"].as_array().unwrap();
    let step = &rows.iter().find(|row| row["evidence"]["metric"] == "itl_ns").expect("decode")["evidence"];
    assert!(step["ratio"].as_f64().unwrap() > 1.9, "{step}");
    assert!(step["p_adjusted"].is_null(), "undefined is null: {step}");

    let other = sandbox.run(&["compare", "base.json", "other.json"]).code(1);
    assert!(
        decision(&other).starts_with("verdict: output changed (exit 1): the model says something else from token 1 on")
    );
}

#[test]
fn doctor_says_what_it_sees_and_what_it_cannot() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["doctor", "--json", "doctor.json"]).success();
    assert!(stdout(&said).contains("unknown: this machine class has no baseline"), "{}", stdout(&said));
    let found: Value = serde_json::from_str(&fs::read_to_string(sandbox.path("doctor.json")).expect("kept")).unwrap();
    assert!(!found["findings"].as_array().unwrap().is_empty());

    sandbox.baseline(3);
    let said = sandbox.run(&["doctor"]).success();
    assert!(stdout(&said).contains("unknown, 5 more days needed"), "{}", stdout(&said));
    let sandbox = Sandbox::new();
    sandbox.baseline(8);
    let said = sandbox.run(&["doctor"]).success();
    assert!(stdout(&said).contains("+10.0 %"), "sessions without spread leave the floor: {}", stdout(&said));
}
