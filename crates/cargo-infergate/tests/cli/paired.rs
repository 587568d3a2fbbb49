//! Two workers in turn: `gate --base-bin --head-bin`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::Assert;

use crate::sandbox::{Sandbox, decision, ran, stderr, stdout};
use crate::support;

/// The fake engine under a name that says how it behaves: `fake+slow`.
pub fn program(sandbox: &Sandbox, name: &str) -> PathBuf {
    let path = sandbox.path(&format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let example = support::example("fake_engine");
    if !path.exists() && fs::hard_link(&example, &path).is_err() {
        fs::copy(&example, &path).expect("a copy");
    }
    path
}

/// `gate` between two programs.
pub fn between(sandbox: &Sandbox, base: &Path, head: &Path, cases: &str) -> Command {
    // One file under two names: what it does is in the name.
    let mut process = sandbox.process(&["gate", "--model=fake", "--threads=1", "--time-same-code", "--cases", cases]);
    process.arg("--base-bin").arg(base).arg("--head-bin").arg(head);
    process
}

/// The same with fakes of these names.
pub fn fakes(sandbox: &Sandbox, base: &str, head: &str, cases: &str) -> Command {
    between(sandbox, &program(sandbox, base), &program(sandbox, head), cases)
}

/// `gate` between two fakes on two quick cases.
pub fn gate(sandbox: &Sandbox, base: &str, head: &str, arguments: &[&str]) -> Assert {
    let mut process = fakes(sandbox, base, head, "prefill/p8,decode/p8");
    process.args(arguments);
    ran(process)
}

#[test]
fn a_head_that_ends_badly_is_said_where_base_does_not() {
    let note = "head's process fails on exit, base's does not: exit status: 9";
    for (base, is_said) in [("fake", true), ("fake+dies-at-end", false)] {
        let sandbox = Sandbox::new();
        let said = stdout(&gate(&sandbox, base, "fake+dies-at-end", &[]).success());
        assert_eq!(said.matches(note).count(), usize::from(is_said), "{said}");
    }
}

#[test]
fn a_generation_in_turns_is_judged_by_its_whole_time() {
    let sandbox = Sandbox::new();
    let mut process = fakes(&sandbox, "fake", "fake+slower", "generate/p8-o7");
    process.arg("--out=paired.json");
    let said = ran(process).code(1);
    assert!(decision(&said).contains("generate/p8-o7 +4."), "{}", stdout(&said));
    let receipt = sandbox.receipt();
    let tokens = receipt.blocks.iter().flat_map(|block| &block.cases).flat_map(|case| &case.head_tokens_ns);
    assert!(tokens.clone().count() > 0 && tokens.clone().all(|tokens| tokens.len() == 7), "each token's time is kept");
    assert!(stdout(&said).contains(" TTFT ") && stdout(&said).contains(" ITL "), "{}", stdout(&said));
    // 8 prompt tokens of 1 ms, 6 steps of 20 ms, their jitter and the first sample.
    let times_ns = receipt.blocks.iter().flat_map(|block| &block.cases).flat_map(|case| &case.base_ns);
    assert!(times_ns.clone().all(|ns| (128_050_000..129_050_000).contains(ns)), "{:?}", times_ns.collect::<Vec<_>>());
}

#[test]
fn a_worker_that_hangs_is_ended_after_the_limit_of_the_pilot() {
    let sandbox = Sandbox::new();
    let said = gate(&sandbox, "fake", "fake+hangs", &[]).code(2);
    let words = stderr(&said);
    assert!(
        words.contains("head: ") && words.contains("gave no answer within") && words.contains("was ended"),
        "{words}"
    );
}
