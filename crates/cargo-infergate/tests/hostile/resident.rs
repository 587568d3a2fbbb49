//! The command itself in little memory: what a file or a worker sends it ends in one line, and not in an allocation that fails.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const MIB: usize = 1 << 20;
/// What the command takes of its address space for a small file: code, stacks of threads, room that the allocator reserves.
const USUAL_MIB: usize = 320;

/// What the command says of `arguments` where its address space has room for eight times `bytes` and 16 MiB more than usual.
fn refused(folder: &Path, bytes: usize, arguments: &[&str]) -> String {
    let most_kib = (USUAL_MIB + 16 + 8 * bytes.div_ceil(MIB)) << 10;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {most_kib} && exec \"$0\" infergate \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_cargo-infergate")).args(arguments).current_dir(folder);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INFERGATE_")) {
        command.env_remove(name);
    }
    // Each thread would reserve a room of its own.
    let output = command.env("MALLOC_ARENA_MAX", "1").output().expect("starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    said
}

fn dense(bytes: usize) -> String {
    vec!["{\"\":0}"; bytes / 7].join(",")
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("the search for infergate.toml ends here");
    folder
}

/// A worker that answers with these lines, one a request.
fn worker(folder: &Path, answers: &[String]) -> String {
    let mut script = "#!/bin/sh\n".to_owned();
    for (number, answer) in answers.iter().enumerate() {
        let place = folder.join(format!("answer-{number}"));
        fs::write(&place, format!("{answer}\n")).expect("a file");
        script += &format!("read -r _\ncat '{}'\n", place.display());
    }
    let place = folder.join("worker.sh");
    fs::write(&place, script + "read -r _\n").expect("a file");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("it is ours");
    place.to_str().expect("UTF-8").to_owned()
}

const HELLO: &str = r#"{"ok":{"protocol":2,"tool":"0","machine":{"class":"c","os":"o","arch":"a","cpu_vendor":"v","cpu_model":"m","logical_cores":1,"memory_bytes":1},"build":{"rustc":"","flags":"","opt_level":"","target":""}}}"#;

#[test]
fn of_a_worker() {
    let folder = folder();
    let junk = dense(15 * MIB);
    let gate = |answers: &[String]| {
        let place = worker(folder.path(), answers);
        refused(folder.path(), 16 * MIB, &["gate", "--worker", &place, "--runs", "1", "--memory-runs", "0"])
    };
    let said = gate(&[format!("{{\"ok\":[{junk}]}}")]);
    assert!(said.contains("are the most"), "{said}");
    let said = gate(&[HELLO.replace("\"tool\"", &format!("\"x\":[{junk}],\"tool\""))]);
    assert!(said.contains("are the most"), "{said}");
    let said = gate(&[HELLO.to_owned(), format!("{{\"ok\":{{\"benches\":[{junk}]}}}}")]);
    assert!(said.contains("are the most"), "{said}");
}

#[test]
fn of_files() {
    let folder = folder();
    let place = folder.path().join("file.json");
    let name = place.to_str().expect("UTF-8");
    let junk = dense(16 * MIB);
    for (content, arguments) in [
        (format!("[{junk}]"), vec!["gate", "--receipt", name]),
        (format!("{{\"schema\":\"infergate.receipt/1\",\"cases\":[{junk}]}}"), vec!["gate", "--receipt", name]),
        (
            format!("{{\"schema\":\"infergate.verdict/2\",\"rows\":[{{\"kind\":0,\"x\":[{junk}]}}]}}"),
            vec!["report", name, "--out", "r"],
        ),
        (format!("{{\"request_rate\":[{junk}]}}"), vec!["report", name, "--out", "r"]),
        (format!("[{junk}]"), vec!["report", name, "--out", "r"]),
    ] {
        fs::write(&place, &content).expect("a file");
        refused(folder.path(), content.len(), &arguments);
    }
}

#[test]
fn of_settings() {
    let folder = folder();
    for text in [
        "[[scenario]]\n".repeat(MIB / 16 / 13),
        format!("scenario=[{}]", "{},".repeat(MIB / 16 / 3 - 8)),
        format!("x=[{}]", "0,".repeat(MIB / 16 / 2 - 8)),
    ] {
        fs::write(folder.path().join("infergate.toml"), &text).expect("a file");
        refused(folder.path(), text.len(), &["load", "--target", "http://127.0.0.1:9", "--model", "m", "--users", "1"]);
    }
}
