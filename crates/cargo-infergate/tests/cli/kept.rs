//! What was measured is kept: a full disk costs no verdict, and a gate that was killed leaves its blocks.

use std::io::Read;
use std::process::Command;

use assert_cmd::assert::Assert;
use infergate_receipts::{Outcome, Receipt, Verdict, read};

use crate::init::files;
use crate::interrupt::pair;
use crate::paired::{between, fakes, program};
use crate::sandbox::{QUICK, Sandbox, decision, error, ran, stderr, stdout, until};

/// The same command where no file can be longer than so many blocks of 512 bytes, as on a disk that is full then. By itself a signal
/// would end it.
fn on_a_disk_of(blocks: u32, command: &Command) -> Assert {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().expect("a sandbox"));
    ran(limited)
}

#[test]
fn a_full_disk_costs_no_verdict() {
    for (head, code, words) in [("fake", 2, "verdict: pass"), ("fake+slower", 1, "verdict: regressed (exit 1)")] {
        let sandbox = Sandbox::new();
        let mut gate = fakes(&sandbox, "fake", head, "decode/p8");
        gate.args(["--out=paired.json", "--json=verdict.json", "--report=report"]);
        let said = on_a_disk_of(0, &gate).code(code);
        assert!(decision(&said).starts_with(words), "{}", stdout(&said));
        let words = stderr(&said);
        assert_eq!(words.matches("not kept yet: paired.json: cannot be written").count(), 1, "{words}");
        for name in ["paired.json", "verdict.json", "report/comment.md"] {
            assert!(words.contains(&format!("error: {name}: cannot be written")), "{name}: {words}");
        }
        let made = ["fake", "fake+slower"];
        assert!(sandbox.files().iter().all(|file| made.contains(&file.as_str())), "{:?}", sandbox.files());
    }
}

#[test]
fn a_file_that_cannot_be_written_stops_no_other() {
    let sandbox = Sandbox::new();
    // What stands in the receipt's place, once the gate measures.
    let engine = program(&sandbox, "fake");
    let script = format!(
        "#!/bin/sh\nmkdir -p '{}'\nexec '{}' \"$@\"\n",
        sandbox.path("paired.json").display(),
        engine.display()
    );
    let mut gate = between(&sandbox, &engine, &sandbox.program("head.sh", &script), "decode/p8");
    gate.args(["--out=paired.json", "--json=verdict.json", "--report=report"]);
    let said = ran(gate).code(2);
    assert!(
        stderr(&said).contains("error: paired.json: cannot be written, a folder, link or device"),
        "{}",
        stderr(&said)
    );
    assert_eq!(read::<Verdict>(&sandbox.path("verdict.json")).expect("written").verdict, Outcome::Pass);
    assert!(sandbox.path("report/comment.md").exists());
}

#[test]
fn a_suite_that_cannot_be_kept_is_shown() {
    let sandbox = Sandbox::new();
    let said = on_a_disk_of(0, &sandbox.measuring("bench", "fake", &["--out=receipt.json"])).code(2);
    assert!(stdout(&said).contains("decode/p8"), "{}", stdout(&said));
    assert!(stderr(&said).contains("error: receipt.json: cannot be written"), "{}", stderr(&said));
    let said = on_a_disk_of(0, &sandbox.measuring("gate", "fake", &["--out=receipt.json", "--json=verdict.json"]));
    assert!(decision(&said).starts_with("verdict: "), "{}", stdout(&said));
    assert!(stderr(&said).contains("error: verdict.json: cannot be written"), "{}", stderr(&said));
    assert_eq!(sandbox.files(), [""; 0], "nothing half written");
}

#[test]
fn a_suite_whose_worker_ends_is_kept_as_far_as_it_came() {
    let sandbox = Sandbox::new();
    let mut bench = sandbox.process(&["bench", "--model=fake", "--out=receipt.json"]);
    bench.arg("--worker").arg(program(&sandbox, "fake+dies-later")).args(QUICK);
    let said = ran(bench);
    assert!(stderr(&said).contains("what was measured before is kept in receipt.json"), "{}", stderr(&said));
    assert!(error(said).contains("the worker ended early (exit status: 9)"));
    let receipt = read::<Receipt>(&sandbox.path("receipt.json")).expect("kept");
    // It ends at the first token behind a prompt.
    let processes: Vec<usize> = receipt.cases.iter().map(|case| case.processes.len()).collect();
    assert_eq!((receipt.partial, processes), (true, vec![2, 1]));
}

#[test]
fn a_worker_that_the_system_ends_costs_no_block_before() {
    let sandbox = Sandbox::new();
    let (engine, started) = (program(&sandbox, "fake"), sandbox.path("started"));
    // The pilot's is the first process, and that of the second block the third.
    let script = format!(
        "#!/bin/sh\necho >>'{0}'\n[ $(wc -l <'{0}') -lt 3 ] || kill -KILL $$\nexec '{1}' \"$@\"\n",
        started.display(),
        engine.display()
    );
    let mut gate = between(&sandbox, &engine, &sandbox.program("head.sh", &script), "decode/p8");
    gate.arg("--out=paired.json");
    let said = ran(gate);
    assert!(stderr(&said).contains("what was measured before is kept in paired.json"), "{}", stderr(&said));
    assert!(error(said).contains("(signal: 9 (SIGKILL); if nobody killed it, the system was out of memory)"));
    let receipt = sandbox.receipt();
    assert_eq!((receipt.partial, receipt.blocks.len()), (true, 1));
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_full_disk_does_not_take_of_stdout_is_no_success() {
    let sandbox = Sandbox::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let said = sandbox.process(&["schema"]).stdout(full).output().expect("runs");
    let words = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{words}");
    assert!(words.starts_with("error: stdout: cannot be written"), "{words}");
}

/// A gate that was killed in its second block.
#[test]
fn a_killed_gate_leaves_a_partial_receipt() {
    let sandbox = Sandbox::new();
    let (mut gate, mut words, _) = until(pair(&sandbox, "fake+waits"), "waits");
    gate.kill().expect("SIGKILL");
    gate.wait().expect("ends");
    // Its workers share stderr: it ends when none is left.
    words.read_to_string(&mut String::new()).expect("readable");
    let receipt = sandbox.receipt();
    assert!(receipt.partial);
    assert_eq!(receipt.blocks.len(), 1);
}

#[test]
fn init_on_a_full_disk_leaves_no_empty_file_and_once_more_completes_it() {
    let manifest = "[package]\nname = \"engine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let (sandbox, whole) = (crate::repositories::empty_repository(), crate::repositories::empty_repository());
    let init = ["init"];
    for sandbox in [&sandbox, &whole] {
        sandbox.write("Cargo.toml", manifest);
    }
    whole.run(&init).success();
    let whole = files(&whole);
    // None of them, and some of them.
    for blocks in [0, 2] {
        let said = on_a_disk_of(blocks, &sandbox.process(&init)).code(2);
        assert!(stderr(&said).contains("cannot be written"), "{}", stderr(&said));
        for (name, text) in files(&sandbox) {
            assert!(whole.get(&name) == Some(&text) || text == manifest, "{blocks}: {name}");
        }
    }
    sandbox.run(&init).success();
    assert_eq!(files(&sandbox), whole);
}
