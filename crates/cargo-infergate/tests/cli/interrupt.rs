//! Ctrl-C keeps what was measured, marks it partial, and never passes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use infergate_receipts::{MemoryReceipt, Receipt, read};

use crate::paired::fakes;
use crate::repositories::{gate_in, repository};
use crate::sandbox::{Sandbox, ran, stderr};

/// Starts a gate that would take minutes, and sends SIGINT to `whom` when its second process starts.
fn interrupt(whom: Whom) {
    let sandbox = Sandbox::new();
    sandbox.write("infergate.toml", "runs = 1000\nseconds_per_case = 0\ncases = ['decode/p8']\nthreads = 1\n");
    let mut gate = sandbox.process(&["gate", "--model", "fake"]);
    gate.arg("--worker").arg(crate::support::example("fake_engine"));
    let (code, said) = signal(gate, &[("process 2 of 1000", whom)]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("interrupted; what was measured is kept in target/infergate/receipt.json"), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("verdict: partial (exit 3)")), "{said}");
    let receipt = read::<Receipt>(&sandbox.path("target/infergate/receipt.json")).expect("kept");
    assert!(receipt.partial && !receipt.cases.is_empty());
}

/// Whom a signal goes to: `PID`, or `-PID` for the whole group.
pub type Whom<'a> = &'a dyn Fn(u32) -> String;

/// Sends SIGINT each time `gate` has said the next of `moments`. A signal to the group ends the workers too, and the gate may
/// end before it says so.
pub fn signal(gate: Command, moments: &[(&str, Whom)]) -> (Option<i32>, String) {
    let moments: Vec<_> = moments.iter().map(|(moment, whom)| (*moment, "-INT", *whom)).collect();
    signals(gate, &moments)
}

fn signals(mut gate: Command, moments: &[(&str, &str, Whom)]) -> (Option<i32>, String) {
    gate.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut gate = gate.spawn().expect("starts");
    let mut stderr = BufReader::new(gate.stderr.take().expect("piped"));
    let mut said = String::new();
    for (moment, signal, whom) in moments {
        while !said.contains(moment) {
            assert!(stderr.read_line(&mut said).expect("readable") > 0, "it ended early: {said}");
        }
        let killed = Command::new("kill").args([signal, "--", &whom(gate.id())]).status().expect("kill");
        assert!(killed.success());
    }
    stderr.read_to_string(&mut said).expect("readable");
    let mut report = String::new();
    gate.stdout.take().expect("piped").read_to_string(&mut report).expect("readable");
    (gate.wait().expect("ends").code(), said + &report)
}

#[test]
fn a_signal_to_the_gate_keeps_a_partial_receipt() {
    interrupt(&|id| id.to_string());
}

#[test]
fn ctrl_c_in_a_terminal_reaches_the_worker_too() {
    interrupt(&|id| format!("-{id}"));
}

/// How a new process takes a signal: a shell's background jobs ignore SIGINT, `nohup` lets one ignore SIGHUP.
fn takes(process: &mut Command, signal: libc::c_int, how: libc::sighandler_t) {
    // SAFETY: between fork and exec it makes one system call, which may be made there.
    unsafe {
        process.pre_exec(move || {
            libc::signal(signal, how);
            Ok(())
        });
    }
}

#[test]
fn what_nohup_starts_goes_on_when_the_terminal_is_closed() {
    let sandbox = Sandbox::new();
    let mut bench = sandbox.process(&["bench", "--model=fake", "--runs=1000", "--threads=1", "--cases=decode/p8"]);
    bench.arg("--worker").arg(crate::support::example("fake_engine"));
    takes(&mut bench, libc::SIGHUP, libc::SIG_IGN);
    let itself = |id: u32| id.to_string();
    let (code, said) =
        signals(bench, &[("process 2 of 1000", "-HUP", &itself), ("process 20 of 1000", "-INT", &itself)]);
    assert_eq!(code, Some(3), "{said}");
}

/// A paired gate between two fakes, the second of which stops the gate at a moment of its own.
pub fn pair(sandbox: &Sandbox, head: &str) -> Command {
    let mut gate = fakes(sandbox, "fake", head, "prefill/p8,decode/p8,generate/p8-o64");
    gate.arg("--out=paired.json");
    gate
}

/// The blocks in the receipt of an interrupted paired gate, which is partial and did not pass.
fn blocks_kept(sandbox: &Sandbox, (code, said): (Option<i32>, String)) -> usize {
    assert_eq!(code, Some(3), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("verdict: partial (exit 3)")), "{said}");
    let receipt = sandbox.receipt();
    assert!(receipt.partial);
    receipt.blocks.len()
}

#[test]
fn a_signal_to_a_paired_gate_keeps_its_blocks_and_ends_the_running_one_at_once() {
    let sandbox = Sandbox::new();
    let outcome = signal(pair(&sandbox, "fake+waits"), &[("waits", &|id| id.to_string())]);
    assert_eq!(blocks_kept(&sandbox, outcome), 1);
}

#[test]
fn a_signal_to_the_gate_alone_ends_a_worker_that_hangs_as_ctrl_c_does() {
    for group in ["", "-"] {
        let sandbox = Sandbox::new();
        let outcome = signal(pair(&sandbox, "fake+hangs"), &[("hangs", &|id| format!("{group}{id}"))]);
        assert_eq!(blocks_kept(&sandbox, outcome), 0);
    }
}

#[test]
fn a_quick_look_that_is_cut_short_says_so() {
    let sandbox = Sandbox::new();
    let mut gate = fakes(&sandbox, "fake", "fake+hangs", "prefill/p8,decode/p8,generate/p8-o64");
    gate.arg("--quick");
    let (code, said) = signal(gate, &[("hangs", &|id| id.to_string())]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.ends_with("quick look, no verdict: cut short after 0 blocks\n"), "{said}");
    assert!(!sandbox.path("target/infergate/paired.json").exists(), "a quick look keeps nothing");
}

#[test]
fn a_signal_to_a_memory_phase_keeps_its_runs() {
    let sandbox = Sandbox::new();
    let mut phase = sandbox.process(&["memory", "--model=control:steady", "--cases=prefill/p8", "--runs=5000"]);
    phase.arg("--out=memory.json").arg("--worker").arg(crate::support::example("leaky_engine"));
    let (code, said) = signal(phase, &[("memory, 5000 runs", &|id| id.to_string())]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("verdict: partial (exit 3)")), "{said}");
    let record = read::<MemoryReceipt>(&sandbox.path("memory.json")).expect("kept").memory;
    assert!(record.partial && record.runs.len() < 5000, "{} runs", record.runs.len());
}

/// Interrupts the command from a program that it started: its parent is the watcher, whose parent is the command.
pub const INTERRUPTS: &str = "read -r _ _ _ command _ < /proc/$PPID/stat && kill -INT \"$command\"";

/// A program of this name in a folder of its own, which interrupts the command that starts it first, and goes on with `then`.
fn interrupts(name: &str, then: &str) -> Sandbox {
    let folder = Sandbox::new();
    let once = folder.path("once");
    let text = format!("#!/bin/sh\nif mkdir '{}' 2> /dev/null; then {INTERRUPTS}; fi\n{then}\n", once.display());
    folder.program(name, &text);
    folder
}

/// The settings of base are read before anything is built.
#[test]
fn a_signal_before_anything_is_built_is_a_sentence() {
    let sandbox = repository();
    let git = interrupts("git", "PATH=${PATH#*:}; exec git \"$@\"");
    let mut gate = gate_in(&sandbox, sandbox.path("cache"));
    gate.env("PATH", git.on_path(""));
    let said = stderr(&ran(gate).code(2));
    assert!(said.ends_with("error: interrupted before the first block; nothing was measured\n"), "{said}");
}

/// Cargo waits for another cargo for as long as that takes.
#[test]
fn a_signal_ends_what_cargo_is_asked() {
    let sandbox = Sandbox::new();
    let cargo = interrupts("cargo", "exec sleep 1000");
    let mut bench = sandbox.process(&["bench", "--model=m"]);
    bench.env("CARGO", cargo.path("cargo"));
    let said = stderr(&ran(bench).code(2));
    assert!(said.ends_with("error: the run: interrupted\n"), "{said}");
}
