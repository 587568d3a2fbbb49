//! `init`: what it adds to a package, and what it leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::repositories::empty_repository;
use crate::sandbox::{Sandbox, ran, stdout};

const MANIFEST: &str = "# mine\n[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dev-dependencies] # for tests\n\
                        tempfile = \"3\"\n\n[[bench]]\nname = \"sorting\"\nharness = false\n";
const WORKFLOWS: [&str; 2] = [".github/workflows/infergate-comment.yml", ".github/workflows/infergate.yml"];

fn package(manifest: &str) -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", manifest);
    sandbox.write("src/lib.rs", "");
    sandbox
}

/// All files but git's, with what is in them.
pub fn files(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let own = sandbox.files().into_iter().filter(|name| !name.starts_with(".git/"));
    own.map(|name| (name.clone(), fs::read_to_string(sandbox.path(&name)).expect("text"))).collect()
}

#[test]
fn a_package_gets_what_is_missing_and_keeps_what_it_has() {
    let sandbox = package(MANIFEST);
    let before = files(&sandbox);
    sandbox.run(&["init", "--dry-run"]).success();
    assert_eq!(files(&sandbox), before);

    let shown = stdout(&sandbox.run(&["init"]).success());
    assert!(shown.contains("before you push, write infergate = { git ="), "a clone's path is of this machine: {shown}");
    let manifest = &files(&sandbox)["Cargo.toml"];
    // Every line that was there is still there, in its order.
    let mut lines = manifest.lines();
    assert!(MANIFEST.lines().all(|line| lines.any(|kept| kept == line)), "{manifest}");
    let read: toml_edit::DocumentMut = manifest.parse().expect("TOML");
    assert!(read["dev-dependencies"]["infergate"]["path"].is_str(), "{manifest}");
    let benches = read["bench"].as_array_of_tables().expect("benches");
    let names: Vec<_> = benches.iter().filter_map(|bench| bench["name"].as_str()).collect();
    assert_eq!(names, ["sorting", "inference", "memory"]);
}

/// Of a command that lies where `cargo install --git` would have put it, beside what cargo writes down.
#[test]
fn the_address_and_commit_of_an_installed_command_are_written() {
    let (sandbox, cargo) = (package(MANIFEST), Sandbox::new());
    let command = cargo.path("bin/cargo-infergate");
    fs::create_dir_all(command.parent().expect("a folder")).expect("a folder");
    let built = Path::new(env!("CARGO_BIN_EXE_cargo-infergate"));
    fs::hard_link(built, &command).or_else(|_| fs::copy(built, &command).map(drop)).expect("the command");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let key = format!("cargo-infergate 0.1.0 (git+https://example.com/it?branch=main#{commit})");
    cargo.write(".crates2.json", &serde_json::json!({"installs": {key: {}}}).to_string());
    let mut process = std::process::Command::new(command);
    process.args(["infergate", "init"]).current_dir(sandbox.path(""));
    let shown = stdout(&ran(process).success());
    assert!(!shown.contains("before you push"), "{shown}");
    let made = files(&sandbox);
    let line = format!("infergate = {{ git = \"https://example.com/it\", rev = \"{commit}\" }}\n");
    assert!(made["Cargo.toml"].contains(&line), "{}", made["Cargo.toml"]);
    for workflow in WORKFLOWS {
        assert!(made[workflow].contains(&format!(".yml@{commit}\n")), "{}", made[workflow]);
    }
}
