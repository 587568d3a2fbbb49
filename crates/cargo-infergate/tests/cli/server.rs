//! Two builds of a server: `gate --against REV --server`, and two that run already.
#![cfg(unix)]

use cargo_infergate::receipt::{Outcome, Verdict, read};

use crate::revisions::{commit, empty_repository};
use crate::sandbox::{Sandbox, error, stdout};
use crate::support;

/// A repository whose server is the one with set token times, told `base` in the commit and `head` in the working tree.
fn repository(base: &str, head: &str) -> Sandbox {
    let sandbox = empty_repository();
    let script = |options: &str| {
        let serve = support::example("serve");
        format!("#!/bin/sh\nexec '{}' --port \"$1\" --option ttft_ms=2 --option itl_ms=1 {options}\n", serve.display())
    };
    sandbox.write(
        "infergate.toml",
        "[server]\ncommand = ['sh', 'start.sh', '{port}']\nmodel = 'timed'\n[[scenario]]\nname = 'chat'\ninput_tokens = 8\noutput_tokens = 4\n",
    );
    sandbox.write("start.sh", &script(base));
    commit(&sandbox, ".gitignore", "target\n", "base");
    sandbox.write("start.sh", &script(head));
    sandbox
}

fn gate(sandbox: &Sandbox, more: &[&str]) -> assert_cmd::assert::Assert {
    let cache = Sandbox::new();
    let folder = format!("--base-folder={}", cache.path("base").display());
    sandbox.run(&[&["gate", "--against=HEAD", "--server", &folder], more].concat())
}

#[test]
fn a_server_that_says_something_else_is_a_changed_output() {
    let sandbox = repository("--option salt=0", "--option salt=1");
    let said = gate(&sandbox, &["--json=verdict.json", "--out=paired.json"]).code(1);
    let report = stdout(&said);
    assert!(report.contains("timed on server") && report.contains("output changed"), "{report}");
    let verdict = read::<Verdict>(&sandbox.path("verdict.json")).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::OutputChanged);
    let subjects: Vec<String> = verdict.rows.iter().map(|row| row.subject.to_string()).collect();
    for case in ["chat/ttft", "chat/itl"] {
        assert!(subjects.iter().any(|subject| subject == case), "{case}: {subjects:?}");
    }
}

#[test]
fn a_server_that_does_not_get_ready_is_one_line() {
    let sandbox = repository("", "");
    let line = error(gate(&sandbox, &["--server-command=sh,-c,echo no model; exit 3 # {port}"]));
    assert!(line.contains("ended before it was ready (exit status: 3); its last words: no model"), "{line}");
    let line = error(gate(&sandbox, &["--server-command=sh,-c,sleep 60 # {port}", "--server-ready-s=1"]));
    assert!(line.contains("does not answer 2xx on /health within 1 s"), "{line}");
    let line = error(gate(&sandbox, &["--server-command=./nosuch,{port}"]));
    assert!(line.contains("base: server.command: there is no program './nosuch'"), "{line}");
    let line = error(gate(&sandbox, &["--server-command=sh,start.sh,8080"]));
    assert!(line.contains("no argument holds {port}"), "{line}");
    let line = error(gate(&sandbox, &["--server-ready=health"]));
    assert!(line.contains("server.ready takes a path such as /health"), "{line}");
}

#[test]
fn a_gate_without_a_server_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let line = error(sandbox.run(&["gate", "--base-url=http://127.0.0.1:1", "--head-url=http://127.0.0.1:1"]));
    assert!(line.contains("the server did not answer a request"), "{line}");
    let repository = repository("", "");
    repository.write("infergate.toml", "");
    let line = error(gate(&repository, &[]));
    assert!(line.contains("infergate.toml names no server.command; add [server] with one"), "{line}");
}
