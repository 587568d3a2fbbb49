//! `--swap`: HEAD as it is locked against HEAD on another version of a dependency.

use std::fs;
use std::process::Command as Process;

use assert_cmd::assert::Assert;

use crate::revisions::{MANIFEST, commit, git, left_behind, repository};
use crate::sandbox::{Sandbox, decision, error, stdout};

/// A crate of the registry that the workspace depends on, so that it is here without a network, and its speed is the engine's.
const ENGINE: &str = "use std::fmt;\n\npub struct Step;\n\nimpl fmt::Display for Step {\n    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {\n        \
                      write!(f, \"{}\", 1_000_000 * strsim::levenshtein(\"a\", \"b\"))\n    }\n}\n\npub const STEP_NS: Step = Step;\n";

fn on_a_dependency() -> Sandbox {
    let sandbox = repository();
    sandbox.write("engine.rs", ENGINE);
    sandbox.write("Cargo.toml", &format!("{MANIFEST}\n[dependencies]\nstrsim = '0.11'\n"));
    sandbox.write(".gitignore", "/target\n/cache\n");
    let mut cargo = Process::new("cargo");
    cargo.args(["generate-lockfile", "--offline"]).current_dir(sandbox.path(""));
    assert!(cargo.output().expect("cargo").status.success());
    commit(&sandbox, "notes.txt", "", "on strsim");
    sandbox
}

fn swap(sandbox: &Sandbox, what: &str) -> Assert {
    let mut process = sandbox.process(&["gate", "--swap", what, "--cases=decode/p8", "--model=m", "--threads=1"]);
    process.arg("--base-folder=cache").env("CARGO_NET_OFFLINE", "true");
    assert_cmd::Command::from_std(process).assert()
}

#[test]
fn a_slower_dependency_is_called_and_named() {
    let sandbox = on_a_dependency();
    let other = Sandbox::new();
    other.write("src/lib.rs", "pub fn levenshtein(_: &str, _: &str) -> usize {\n    2\n}\n");
    // What is not committed is on neither side.
    sandbox.write("engine.rs", "this is no Rust\n");
    let before = left_behind(&sandbox);
    // A version that does not fit is not used, and must not pass as no change.
    other.write("Cargo.toml", "[package]\nname = 'strsim'\nversion = '0.12.0'\nedition = '2021'\n");
    let line = error(swap(&sandbox, &format!("strsim={}", other.path("").display())));
    assert!(line.contains("nothing changes") || line.contains("--swap strsim"), "{line}");
    other.write("Cargo.toml", "[package]\nname = 'strsim'\nversion = '0.11.9'\nedition = '2021'\n");
    let said = swap(&sandbox, &format!("strsim={}", other.path("").display())).code(1);
    let report = stdout(&said);
    assert!(decision(&said).contains("regressed (exit 1), decode/p8: itl_ns +100.0 %"), "{report}");
    assert!(report.contains("dependencies differ: strsim none in head, 0.11.1 in base"), "{report}");
    assert!(report.contains("what is not committed is not in it"), "{report}");
    assert_eq!(left_behind(&sandbox), before);
}

#[test]
fn what_cannot_be_swapped_is_one_line() {
    let sandbox = on_a_dependency();
    for (what, why) in [
        ("strsim", "write CRATE=VERSION, CRATE=PATH or CRATE=URL"),
        ("=1.0", "write CRATE=VERSION"),
        ("a b=1.0", "write CRATE=VERSION"),
        ("strsim=0.11.1", "nothing changes"),
        ("no-such-crate=1.0.0", "no manifest of this repository names it"),
        ("strsim=./no-such-folder", "holds no Cargo.toml"),
        ("strsim=99.0.0", "--swap strsim"),
    ] {
        let line = error(swap(&sandbox, what));
        assert!(line.contains(why), "{what}: {line}");
    }
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    assert!(fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest").ends_with("strsim = '0.11'\n"));
}
