//! Two commands at once: those that measure wait for each other, a checkout belongs to one gate until its end, and no session of a
//! baseline is lost.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use infergate_receipts::{Baseline, Receipt, read, write_json};

use crate::interrupt::signal;
use crate::left_behind::Holders;
use crate::repositories::{commit, empty_repository};
use crate::sandbox::{Sandbox, error, ran, stderr, until};

const WAITS: &str = "waiting: another infergate command measures on this machine";

/// Another process that has the machine's lock, until it is dropped.
struct Holder(Child);

impl Holder {
    fn of(sandbox: &Sandbox) -> Self {
        Self::by(sandbox, "--exclusive")
    }

    /// As `flock` is told.
    fn by(sandbox: &Sandbox, how: &str) -> Self {
        let mut shell = Command::new("sh");
        let script = "exec 9>\"$1\"; flock \"$2\" 9; echo locked; read -r line";
        shell.args(["-c", script, "holder"]).arg(sandbox.lock()).arg(how);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("piped")).read_line(&mut line).expect("a word");
        assert_eq!(line, "locked\n");
        Self(shell)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_that_measures_waits_for_another_one() {
    let sandbox = Sandbox::new();
    let holder = Holder::of(&sandbox);
    let (mut bench, mut words, mut said) = until(sandbox.measuring("bench", "fake", &[]), "waiting");
    assert!(said.contains(WAITS) && said.contains("--no-wait"), "{said}");
    assert!(!sandbox.path("target/infergate/receipt.json").exists());
    drop(holder);
    words.read_to_string(&mut said).expect("readable");
    assert!(bench.wait().expect("ends").success(), "{said}");
    assert_eq!(said.matches(WAITS).count(), 1, "{said}");
}

/// They may be the other one's.
#[test]
fn a_gate_that_waits_removes_nothing() {
    let sandbox = Sandbox::new();
    let holder = Holder::of(&sandbox);
    let kept = ["target/infergate/paired.json", "out.json", "pages/comment.md"].map(|path| sandbox.write(path, "kept"));
    let [usual, named] = [&[][..], &["--out=out.json"]].map(|more| {
        let mut gate = sandbox.process(&["gate", "--base-bin=none", "--head-bin=none", "--report=pages"]);
        gate.args(more);
        until(gate, "waiting")
    });
    assert!(kept.iter().all(|path| path.exists()));
    drop(holder);
    for (mut gate, mut words, mut said) in [usual, named] {
        words.read_to_string(&mut said).expect("readable");
        assert_eq!(gate.wait().expect("ends").code(), Some(2), "{said}");
    }
    assert!(!kept.iter().any(|path| path.exists()));
}

#[test]
fn who_does_not_want_to_wait_does_not() {
    let sandbox = Sandbox::new();
    let _holder = Holder::of(&sandbox);
    let said = ran(sandbox.measuring("bench", "fake", &["--no-wait"])).success();
    assert!(!stderr(&said).contains(WAITS), "{}", stderr(&said));
}

#[test]
fn a_wait_ends_at_once_when_its_user_wants() {
    let sandbox = Sandbox::new();
    let _holder = Holder::of(&sandbox);
    let (code, said) = signal(sandbox.measuring("bench", "fake", &[]), &[(WAITS, &|id| id.to_string())]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.ends_with("error: the run: interrupted\n"), "{said}");
}

/// A shard of a load by two clients. What it asks for is refused once it has its turn.
fn shard(sandbox: &Sandbox) -> Command {
    let mut load = sandbox.process(&["load", "--target=http://127.0.0.1:1", "--model=m", "--users=1", "--requests=4"]);
    load.args(["--input-tokens=8", "--output-tokens=4", "--shard=1/2", "--start-at=2200-01-01T00:00:00Z"]);
    load
}

/// They may run on one machine; whatever else measures waits for all of them, and they for it.
#[test]
fn shards_of_one_load_measure_side_by_side_and_with_nobody_else() {
    let sandbox = Sandbox::new();
    let other_shard = Holder::by(&sandbox, "--shared");
    let said = stderr(&ran(shard(&sandbox)).code(2));
    assert!(said.contains("error: --users 1: fewer than the 2 shards") && !said.contains(WAITS), "{said}");
    let (code, said) = signal(sandbox.measuring("bench", "fake", &[]), &[(WAITS, &|id| id.to_string())]);
    assert_eq!(code, Some(2), "{said}");
    drop(other_shard);

    let _holder = Holder::of(&sandbox);
    let (code, said) = signal(shard(&sandbox), &[(WAITS, &|id| id.to_string())]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.ends_with("error: the run: interrupted\n"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_checkout_belongs_to_one_gate_until_its_end() {
    let sandbox = empty_repository();
    let holders = Holders::of(&sandbox);
    sandbox.write("it.sh", "#!/bin/sh\nexec 9<>\"$1\"\nsleep 1000\n");
    sandbox.write("infergate.toml", &format!("[worker]\ncommand = ['sh', 'it.sh', '{}']\n", holders.pipe()));
    commit(&sandbox, ".gitignore", "target\npipe\n", "base");
    let cache = Sandbox::new();
    let folder = format!("--base-folder={}", cache.path("base").display());
    let gate = |more: &[&str]| sandbox.process(&[&["gate", "--against=HEAD", &folder], more].concat());
    let mut first = gate(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    // It measures: what it built is needed until the end.
    holders.begin();
    let line = error(ran(gate(&["--no-wait"])));
    assert!(line.contains("another gate uses it now"), "{line}");
    first.kill().expect("SIGKILL");
    first.wait().expect("ends");
    holders.end();
}

#[test]
fn a_session_that_another_bless_adds_meanwhile_is_kept() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/receipt-1.json");
    let mut receipt = read::<Receipt>(&golden).expect("a golden receipt");
    write_json(&sandbox.path("receipt.json"), &receipt).expect("a file");
    let file = format!("baselines/{}", Baseline::file_name(&receipt));
    receipt.created = "2026-01-01T00:00:00Z".into();
    write_json(&other.path("receipt.json"), &receipt).expect("a file");
    other.run(&["bless", "--receipt=receipt.json"]).success();

    fs::create_dir_all(sandbox.path(&file).parent().expect("a class")).expect("a folder");
    let folder = File::open(sandbox.path("baselines")).expect("a folder");
    folder.lock().expect("as a bless locks it");
    let bless = sandbox.process(&["bless", "--receipt=receipt.json"]);
    let (mut bless, mut words, mut said) = until(bless, "waiting: another command writes baselines");
    fs::copy(other.path(&file), sandbox.path(&file)).expect("the other one's session");
    folder.unlock().expect("unlocked");
    words.read_to_string(&mut said).expect("readable");
    assert!(bless.wait().expect("ends").success(), "{said}");
    assert_eq!(read::<Baseline>(&sandbox.path(&file)).expect("a baseline").sessions.len(), 2);
}
