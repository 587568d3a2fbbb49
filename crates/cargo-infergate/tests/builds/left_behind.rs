//! What a measured program leaves behind is ended: after each sample, when the gate ends, and when the gate is killed.
//!
//! Each program here holds a named pipe open, and so does all that it starts: the pipe ends when none of them is left.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use infergate::engine::LoadRequest;
use infergate_core::process::Group;
use infergate_core::worker::{Client, Sampling, Timeouts, WorkerError, WorkerFile};

use crate::command_worker::{launched, launched_until};
use crate::interrupt::signal;
use crate::repositories::{commit, empty_repository, gate_in, repository};
use crate::sandbox::Sandbox;
use crate::support;

/// Starts two processes, one of which leaves the group and the session, and all of which hold `$1` open.
const LEAVES: &str = "exec 9<>\"$1\"; setsid sleep 1000 & sleep 1000 & echo one";

/// Whoever holds a pipe open.
pub struct Holders {
    pipe: PathBuf,
    began: Receiver<()>,
    all: JoinHandle<()>,
}

impl Holders {
    pub fn of(sandbox: &Sandbox) -> Self {
        let pipe = sandbox.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let (first, began) = channel();
        let path = pipe.clone();
        let all = thread::spawn(move || {
            // Waits for the first.
            let mut pipe = File::open(path).expect("a pipe");
            first.send(()).expect("somebody waits");
            pipe.read_to_end(&mut Vec::new()).expect("it ends");
        });
        Self { pipe, began, all }
    }

    pub fn pipe(&self) -> &str {
        self.pipe.to_str().expect("UTF-8")
    }

    /// Waits for the first one.
    pub fn begin(&self) {
        self.began.recv().expect("the first holder");
    }

    /// Returns when the last one is gone.
    pub fn end(self) {
        self.all.join().expect("read");
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_the_sample_and_holds_nothing_up() {
    let sandbox = Sandbox::new();
    let holders = Holders::of(&sandbox);
    let (mut client, case) = launched("/bin/sh", &["-c", LEAVES, "it", holders.pipe()], true);
    // They hold the command's output open, too.
    client.prepare(case, None).expect("an output");
    holders.end();
    assert_eq!(client.sample(case, Sampling::of(3, 1)).expect("samples").samples_ns.len(), 3);
}

#[test]
fn a_command_that_is_waited_for_ends_with_all_it_started_when_the_run_does() {
    static CANCELLED: AtomicBool = AtomicBool::new(false);
    let sandbox = Sandbox::new();
    let holders = Holders::of(&sandbox);
    let waits = format!("{LEAVES}; wait");
    let (mut client, case) = launched_until("/bin/sh", &["-c", &waits, "it", holders.pipe()], true, &CANCELLED);
    let run = thread::spawn(move || client.prepare(case, None).expect_err("cancelled"));
    holders.begin();
    CANCELLED.store(true, Ordering::Relaxed);
    assert!(matches!(run.join().expect("ends"), WorkerError::Interrupted(_)));
    holders.end();
}

/// Each process holds `argv[1]` open, starts the next one in a session of its own and ends, for as long as the pipe has its name.
const CHAIN: &str = "import os, sys\nos.open(sys.argv[1], os.O_RDWR)\nos.write(1, b'one')\n\
                     while os.path.exists(sys.argv[1]):\n    if os.fork(): os._exit(0)\n    os.setsid()\n";

#[test]
fn a_chain_of_processes_that_each_start_the_next_one_is_ended() {
    let sandbox = Sandbox::new();
    let holders = Holders::of(&sandbox);
    let (mut client, case) =
        launched("/bin/sh", &["-c", "exec python3 -c \"$2\" \"$1\"", "it", holders.pipe(), CHAIN], true);
    client.prepare(case, None).expect("an output");
    holders.end();
}

/// It alone knows all that it watches.
#[test]
fn a_watcher_that_is_suspended_ends_what_it_watches_all_the_same() {
    static CANCELLED: AtomicBool = AtomicBool::new(false);
    let sandbox = Sandbox::new();
    let holders = Holders::of(&sandbox);
    // The watcher is the parent of the worker that runs this.
    let stops = format!("set -- \"$1\" $(cat /proc/$PPID/stat); kill -STOP \"$5\"; {LEAVES}; wait");
    let (mut client, case) = launched_until("/bin/sh", &["-c", &stops, "it", holders.pipe()], true, &CANCELLED);
    let run = thread::spawn(move || client.prepare(case, None).expect_err("cancelled"));
    holders.begin();
    CANCELLED.store(true, Ordering::Relaxed);
    assert!(matches!(run.join().expect("ends"), WorkerError::Interrupted(_)));
    holders.end();
}

#[test]
fn a_worker_of_another_language_ends_with_what_it_started() {
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    let sandbox = Sandbox::new();
    let holders = Holders::of(&sandbox);
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
    let text = format!("#!/bin/sh\nexec 9<>'{}'\nsleep 1000 &\nexec '{}' \"$@\"\n", holders.pipe(), worker.display());
    let file = WorkerFile::open(&sandbox.program("worker.sh", &text)).expect("a program");
    let client = Client::spawn(&file, &LoadRequest::default(), Timeouts::default(), &GOES_ON).expect("a worker").0;
    holders.begin();
    drop(client);
    holders.end();
}

/// Kills a gate of `settings`, which hold `PIPE`, when the first process that it should end holds the pipe.
fn kill(settings: &str) {
    let sandbox = empty_repository();
    let holders = Holders::of(&sandbox);
    sandbox.write("it.sh", &format!("#!/bin/sh\n{LEAVES}\nwait\n"));
    sandbox.write("infergate.toml", &settings.replace("PIPE", holders.pipe()));
    commit(&sandbox, ".gitignore", "target\npipe\n", "base");
    let cache = Sandbox::new();
    let mut gate = sandbox.process(&["gate", "--against=HEAD"]);
    gate.arg(format!("--base-folder={}", cache.path("base").display()));
    if settings.contains("[server]") {
        gate.arg("--server");
    }
    let mut gate = gate.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    holders.begin();
    gate.kill().expect("SIGKILL");
    gate.wait().expect("ends");
    holders.end();
}

#[test]
fn a_killed_gate_leaves_no_command_and_nothing_of_it() {
    kill("[worker]\ncommand = ['sh', 'it.sh', 'PIPE']\n");
}

#[test]
fn a_killed_gate_leaves_no_build_and_nothing_of_it() {
    kill("[worker]\ncommand = ['sh', 'it.sh', 'PIPE']\nbuild = ['sh', 'it.sh', 'PIPE']\n");
}

#[test]
fn a_killed_gate_leaves_no_server_and_nothing_of_it() {
    kill(
        "[server]\ncommand = ['sh', 'it.sh', 'PIPE', '{port}']\nmodel = 'timed'\n\
         [[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n",
    );
}

/// A filter, a server or a disk can hold git up for as long as it likes.
#[test]
fn a_gate_that_is_asked_to_end_leaves_no_git() {
    let sandbox = repository();
    let holders = Holders::of(&sandbox);
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'worktree add'*) set -- '{}'; {LEAVES}; wait ;; esac\nPATH=${{PATH#*:}}; exec git \"$@\"\n",
        holders.pipe()
    );
    let git = Sandbox::new();
    git.program("git", &script);
    let mut gate = gate_in(&sandbox, sandbox.path("cache"));
    gate.env("PATH", git.on_path(""));
    let gate = gate.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    holders.begin();
    assert!(Command::new("kill").arg(gate.id().to_string()).status().expect("kill").success());
    holders.end();
    let said = gate.wait_with_output().expect("ends").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.ends_with("error: interrupted before the first block; nothing was measured\n"), "{said}");
}

/// A container's client that is killed leaves its container running.
#[test]
fn an_interrupted_gate_asks_its_servers_to_end() {
    let sandbox = empty_repository();
    let serve = support::example("serve");
    let script = format!(
        "trap 'echo $2 >>{0}/ended; kill $!; exit' TERM\necho $2 >>{0}/started\n'{1}' --port $1 --timed 200,20 & wait\n",
        sandbox.path("").display(),
        serve.display()
    );
    sandbox.write("start.sh", &script);
    sandbox.write(
        "infergate.toml",
        "[server]\ncommand = ['sh', 'start.sh', '{port}', 'of-{side}']\nmodel = 'timed'\n\
         [[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n",
    );
    commit(&sandbox, ".gitignore", "target\nstarted\nended\n", "base");
    let cache = Sandbox::new();
    let mut gate = sandbox.process(&["gate", "--against=HEAD", "--server", "--budget=10m"]);
    gate.arg(format!("--base-folder={}", cache.path("base").display()));
    let (code, said) = signal(gate, &[("block 1", &|id| id.to_string())]);
    assert_ne!(code, Some(0), "{said}");
    let lines = |file: &str| {
        let text = std::fs::read_to_string(sandbox.path(file)).expect("a file");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines("started"), lines("ended"), "{said}");
    assert!(lines("ended").contains(&"of-base".into()) && lines("ended").contains(&"of-head".into()), "{said}");
}

/// So a signal to the group meets nobody who was given its number.
#[test]
fn a_leader_keeps_its_number_until_its_group_was_ended() {
    let mut group = Group::spawn(&mut Command::new("true")).expect("starts");
    let place = PathBuf::from(format!("/proc/{}", group.id()));
    group.wait();
    assert!(group.has_ended() && place.exists(), "nobody waited for it");
    let status = group.end().expect("a status");
    assert!(status.success() && !place.exists());
    assert_eq!(group.end().expect("the same"), status);
}
