//! `--quiet` leaves the verdict alone, and `--json -` leaves stdout to JSON, whatever the command.

use std::process::Command as Process;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

use crate::sandbox::{QUICK, Sandbox, decision, stderr, stdout};
use crate::support;

/// Commands that take no time on a sandbox with two receipts, and how each ends.
const AT_ONCE: [(&[&str], i32); 6] = [
    (&["gate", "--receipt=head.json"], 0),
    (&["compare", "base.json", "head.json"], 0),
    (&["bless", "--receipt=head.json", "--dry-run"], 0),
    (&["report", "head.json"], 0),
    (&["doctor"], 0),
    (&["init", "--dry-run"], 0),
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.receipt("fake", "base.json");
    sandbox.receipt("fake", "head.json");
    sandbox.write("Cargo.toml", "[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    sandbox
}

/// `bench` and `memory` of the fake engine.
fn measuring(sandbox: &Sandbox, command: &str, more: &[&str]) -> Assert {
    let mut process: Process = sandbox.process(&[command, "--model=fake"]);
    process.arg("--worker").arg(support::example("fake_engine"));
    match command {
        "bench" => process.args(QUICK),
        _ => process.args(["--threads=1", "--runs=25"]),
    };
    process.args(more);
    Command::from_std(process).assert()
}

/// What stands on stdout is JSON and nothing else.
#[track_caller]
fn json(assert: &Assert) -> Value {
    let said = stdout(assert);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn json_on_stdout_stands_alone() {
    for (arguments, code) in AT_ONCE {
        let said = sandbox().run(&[arguments, &["--json", "-"]].concat()).code(code);
        assert!(json(&said).is_object(), "{arguments:?}");
    }
    for command in ["bench", "memory"] {
        let sandbox = sandbox();
        let said = measuring(&sandbox, command, &["--json=-"]).success();
        assert!(json(&said)["schema"].as_str().is_some_and(|schema| schema.starts_with("infergate.")), "{command}");
        let of_report = if command == "bench" { "decode/p8" } else { "verdict: pass" };
        assert!(stderr(&said).contains(of_report), "the report is not lost: {}", stderr(&said));
        assert!(!sandbox.path("-").exists());
    }
}

#[test]
fn quiet_leaves_the_verdict_alone() {
    for (arguments, code) in AT_ONCE {
        let sandbox = sandbox();
        let usual = sandbox.run(&[arguments, &["--json=usual.json"]].concat()).code(code);
        let more: &[&str] = if arguments[0] == "report" { &["--out=pages", "--quiet"] } else { &["--quiet"] };
        let said = sandbox.run(&[arguments, more].concat()).code(code);
        assert_eq!(stderr(&said), "", "{arguments:?}");
        let expected = match arguments[0] {
            "gate" | "compare" => decision(&usual) + "\n",
            _ => String::new(),
        };
        assert_eq!(stdout(&said), expected, "{arguments:?}");
    }
    let sandbox = sandbox();
    let said = measuring(&sandbox, "memory", &["-q"]).success();
    assert_eq!((stdout(&said).lines().count(), stderr(&said)), (1, String::new()));
    assert!(stdout(&said).starts_with("verdict: pass (exit 0): no leak in 25 runs"), "{}", stdout(&said));
    let said = measuring(&sandbox, "bench", &["-q"]).success();
    assert_eq!((stdout(&said), stderr(&said)), (String::new(), String::new()));
}
