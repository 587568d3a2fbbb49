//! Load receipts in `compare`, `bless`, `gate --receipt` and `report`, as a user gives them.

use std::fs;

use infergate_receipts::{LoadBaseline, LoadReceipt, Outcome, Verdict, read, write_json};

use crate::load_runs::run;
use crate::sandbox::{Sandbox, decision, error, stderr, stdout};

const BASELINE: &str = "baselines/linux-x86_64-amd-epyc-2/load/small-chat.json";

/// Said of each of its times.
const LONGER: &str = " of chatbot/2 users 50 % longer (";

fn save(sandbox: &Sandbox, name: &str, receipt: &LoadReceipt) {
    write_json(&sandbox.path(name), receipt).expect("a file");
}

/// A sandbox with a baseline of so many sessions.
fn blessed(sessions: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (1..=sessions).map(|day| format!("{day}.json")).collect();
    for (day, name) in (1..).zip(&names) {
        save(&sandbox, name, &run(day, 100));
    }
    let flags = names.iter().flat_map(|name| ["--receipt", name]);
    sandbox.run(&["bless"].into_iter().chain(flags).collect::<Vec<_>>()).success();
    sandbox
}

fn verdict(sandbox: &Sandbox, name: &str) -> Verdict {
    read(&sandbox.path(name)).expect("a verdict")
}

#[test]
fn bless_shows_and_appends_sessions_below_the_machine_class() {
    let sandbox = Sandbox::new();
    save(&sandbox, "1.json", &run(1, 100));
    save(&sandbox, "2.json", &run(2, 110));
    let said = sandbox.run(&["bless", "--receipt", "2.json", "--receipt", "1.json"]).success();
    for words in [BASELINE, "sessions: 0 -> 1", "sessions: 1 -> 2", "chatbot/2 users", "110 ms, +10.0 %", "0 of 40"] {
        assert!(stdout(&said).contains(words), "{words} is not in {}", stdout(&said));
    }
    let baseline = read::<LoadBaseline>(&sandbox.path(BASELINE)).expect("a baseline");
    let days: Vec<&str> = baseline.sessions.iter().map(|session| session.created.as_str()).collect();
    assert_eq!(days, ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], "the oldest first");
    let text = fs::read_to_string(sandbox.path(BASELINE)).expect("a file");
    assert!(!text.contains("secret.example"), "{text}");

    let twice = error(sandbox.run(&["bless", "--receipt", "1.json"]));
    assert!(twice.contains("not blessed: the session of 2026-01-01T00:00:00Z is in it already"), "{twice}");
    save(&sandbox, "3.json", &run(3, 100));
    let said = sandbox.run(&["bless", "--receipt", "3.json", "--dry-run"]).success();
    assert!(stderr(&said).contains("dry run: no baseline was written"), "{}", stderr(&said));
    save(&sandbox, "3.json", &LoadReceipt { partial: true, ..run(3, 100) });
    assert!(error(sandbox.run(&["bless", "--receipt", "3.json"])).contains("cut short"));
    assert_eq!(fs::read_to_string(sandbox.path(BASELINE)).expect("a file"), text, "nothing was written since");
}

#[test]
fn the_same_run_passes_and_a_slower_one_fails() {
    let sandbox = blessed(8);
    save(&sandbox, "same.json", &run(20, 100));
    save(&sandbox, "slow.json", &run(21, 150));
    let same = sandbox.run(&["compare", BASELINE, "same.json", "--json", "verdict.json"]).success();
    for words in ["model small", "chatbot/2 users", "TTFT", "50.0 to 50.0 tok/s", "+10 %", "within limit"] {
        assert!(stdout(&same).contains(words), "{words} is not in {}", stdout(&same));
    }
    assert_eq!(decision(&same), "verdict: pass (exit 0): 1 load level, none slower by more than 10 %");
    assert_eq!(verdict(&sandbox, "verdict.json").verdict, Outcome::Pass);
    let slow = sandbox.run(&["compare", BASELINE, "slow.json", "--json", "verdict.json"]).code(1);
    let expected = decision(&slow);
    assert!(expected.starts_with("verdict: regressed (exit 1): ") && expected.contains(LONGER), "{expected}");
    let rows = verdict(&sandbox, "verdict.json").rows;
    assert_eq!(rows.iter().filter(|row| row.outcome == Outcome::Regressed).count(), 4);

    let gate = sandbox.run(&["gate", "--receipt", "slow.json", "--report", "pages"]).code(1);
    assert_eq!(decision(&gate), expected, "gate finds the baseline");
    let page = fs::read_to_string(sandbox.path("pages/comment.md")).expect("a page");
    assert!(page.contains("infergate: regressed") && page.contains(LONGER), "{page}");
    sandbox.run(&["report", BASELINE, "slow.json", "--out", "again"]).success();
    let page = fs::read_to_string(sandbox.path("again/comment.md")).expect("a page");
    assert!(page.contains("infergate: regressed"), "report judges too: {page}");
}

#[test]
fn an_invalid_run_gives_no_verdict() {
    let sandbox = blessed(8);
    let invalid = LoadReceipt { invalid: vec!["the client used 99 % of its core".into()], ..run(20, 150) };
    save(&sandbox, "invalid.json", &invalid);
    let said = sandbox.run(&["compare", BASELINE, "invalid.json"]).code(3);
    assert!(decision(&said).contains("invalid (exit 3)") && decision(&said).contains("99 % of its core"), "{said}");
}
