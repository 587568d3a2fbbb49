//! Which compiler builds base: the one that base's files choose, also where this command runs by head's.

use std::fs;
use std::path::Path;

use crate::repositories::{commit, gate_in, repository};
use crate::sandbox::{Sandbox, error, ran};

/// A file that chooses a toolchain: the one that runs this test.
fn file() -> String {
    let cargo = std::env::var("CARGO").expect("tests are run by cargo");
    let toolchain = Path::new(&cargo).ancestors().nth(2).expect("it lies in a folder");
    format!("[toolchain]\npath = '{}'\n", toolchain.display())
}

/// The working tree names a toolchain, and base does not: rustup's choice for the working tree is not base's. Another one than the file's
/// is the user's choice, and builds both. So does one by a file that git ignores.
#[cfg(unix)]
#[test]
fn a_build_command_does_not_inherit_heads_toolchain() {
    let (sandbox, outside) = (repository(), Sandbox::new());
    let worker = "[worker]\nbuild = ['sh', '-c', 'echo ${RUSTUP_TOOLCHAIN:-none} > said']\ncommand = ['./none']\n";
    sandbox.write(".git/info/exclude", "rust-toolchain\n");
    commit(&sandbox, "infergate.toml", worker, "a command");
    // What rustup takes in the working tree.
    outside.program("bin/rustup", "#!/bin/sh\necho \"${RUSTUP_TOOLCHAIN:-heads}-host (overridden)\"\n");
    for (name, running, expected) in [
        ("rust-toolchain", "heads-host", "heads-host"),
        ("rust-toolchain.toml", "heads-host", "none"),
        ("rust-toolchain.toml", "heads", "none"),
        ("rust-toolchain.toml", "mine", "mine"),
    ] {
        sandbox.write(name, &file());
        let mut process = sandbox.process(&["gate", "--against=HEAD", "--model=m", "--threads=1", "--base-folder"]);
        process.arg(outside.path("cache")).env("RUSTUP_TOOLCHAIN", running).env("PATH", outside.on_path("bin"));
        error(ran(process));
        let said = fs::read_to_string(outside.path("cache/base/tree/said")).expect("base was built");
        assert_eq!(said.trim(), expected, "{name} {running}");
    }
}

/// The cargo that runs this command is of head's toolchain.
#[cfg(unix)]
#[test]
fn base_is_not_built_by_heads_cargo_where_head_names_a_toolchain() {
    let (sandbox, outside) = (repository(), Sandbox::new());
    sandbox.write("rust-toolchain.toml", &file());
    let cargo = std::env::var("CARGO").expect("tests are run by cargo");
    let script = format!("#!/bin/sh\npwd >> '{}'\nexec '{cargo}' \"$@\"\n", sandbox.path("target/ran").display());
    let mut process = gate_in(&sandbox, outside.path(""));
    process.env("CARGO", sandbox.program("target/cargo", &script)).env_remove("RUSTUP_TOOLCHAIN");
    ran(process).success();
    let folders = fs::read_to_string(sandbox.path("target/ran")).expect("head is built by it");
    let base = |line: &&str| Path::new(line).ends_with("base/tree");
    assert_eq!(folders.lines().find(base), None, "{folders}");
}
