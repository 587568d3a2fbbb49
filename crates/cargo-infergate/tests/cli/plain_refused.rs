//! What of plain criterion is refused, in one line.

use std::ffi::OsString;
use std::fs;

use crate::plain_criterion::{BENCH, MANIFEST, gate, repository};
use crate::revisions::{commit, empty_repository, git};
use crate::sandbox::{Sandbox, error, stderr};

#[test]
fn benches_of_something_else_are_named() {
    let sandbox = repository();
    sandbox.write("Cargo.toml", &MANIFEST.replace("criterion = { version = '0.5', features = ['html_reports'] }", ""));
    commit(&sandbox, "benches/parse.rs", "fn main() {}\n", "a bench of its own");
    let said = gate(&sandbox, &[]).code(4);
    let expected = "no bench target that can be gated; there is parse, which uses neither criterion nor divan";
    assert!(stderr(&said).contains(expected), "{}", stderr(&said));
    let rustcs = "#![feature(test)]\nextern crate test;\n#[bench]\nfn it(b: &mut test::Bencher) { b.iter(|| 1) }\n";
    sandbox.write("Cargo.toml", &MANIFEST.replace("harness = false", ""));
    sandbox.write("benches/parse.rs", rustcs);
    let said = gate(&sandbox, &[]).code(4);
    assert!(stderr(&said).contains("there is parse, which is of rustc's own #[bench]"), "{}", stderr(&said));
    // One whose main would never run.
    sandbox.write("benches/parse.rs", BENCH);
    let line = error(gate(&sandbox, &["--bench-target=parse"]));
    assert!(line.contains("bench target 'parse' has no 'harness = false' in Cargo.toml"), "{line}");
}

#[test]
fn a_folder_of_all_packages_without_the_front_is_named() {
    let (sandbox, elsewhere) = (repository(), Sandbox::new());
    let manifest = "[package]\nname = 'criterion'\nversion = '0.5.1'\n[features]\nhtml_reports = []\n";
    sandbox.write("vendor/criterion/Cargo.toml", manifest);
    sandbox.write("vendor/criterion/src/lib.rs", "");
    sandbox.write("vendor/criterion/.cargo-checksum.json", "{\"files\":{}}");
    let settings = "[source.crates-io]\nreplace-with = 'here'\n[source.here]\ndirectory = 'vendor'\n";
    commit(&sandbox, ".cargo/config.toml", settings, "vendored");
    let refused = |path: Option<OsString>| {
        let mut process = sandbox.process(&["gate", "--against=HEAD"]);
        process.arg("--base-folder").arg(elsewhere.path("cache"));
        process.envs(path.map(|path| ("PATH", path)));
        error(assert_cmd::Command::from_std(process).assert())
    };
    let why = "infergate's front, which is not in 'vendor'";
    let line = refused(None);
    assert!(line.contains(why) && line.contains("cargo vendor again"), "{line}");
    // The reason of each bench target.
    sandbox.write("Cargo.toml", &format!("{MANIFEST}[[bench]]\nname = 'text'\nharness = false\n"));
    sandbox.write("benches/text.rs", BENCH);
    let line = refused(None);
    assert!(line.contains(why), "{line}");
    git(&sandbox, &["checkout", "--quiet", "--", "Cargo.toml"]);

    // Whatever cargo stumbles over, by an old compiler it is that: this one only says that it is one.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let says = "[ \"$*\" = --version ] && echo 'rustc 1.80.0 (051478957 2024-07-21)' && exit";
        let old = elsewhere.write("old/rustc", &format!("#!/bin/sh\n{says}\nPATH=${{PATH#*:}} exec rustc \"$@\"\n"));
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let mut path = elsewhere.path("old").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let line = refused(Some(path));
        assert!(line.contains("infergate's front, which needs Rust 1.85 or newer"), "{line}");
    }
}

#[test]
fn a_bench_target_of_several_packages_is_none_that_is_chosen() {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", "[workspace]\nresolver = '2'\nmembers = ['a', 'b']\n");
    for name in ["a", "b"] {
        sandbox.write(&format!("{name}/Cargo.toml"), &MANIFEST.replace("'parser'", &format!("'{name}'")));
        sandbox.write(&format!("{name}/benches/parse.rs"), BENCH);
        commit(&sandbox, &format!("{name}/src/lib.rs"), "pub const STEP_NS: u64 = 1_000;\n", name);
    }
    let line = error(gate(&sandbox, &["--bench-target=parse"]));
    assert!(line.contains("is one of several packages: a, b; name one with --bench-package"), "{line}");
    let line = error(gate(&sandbox, &["--bench-target=*", "--bench-features=txet"]));
    assert!(line.contains("'txet' is a feature of no package here"), "{line}");
    // Below a package's folder it is that one, as it is for cargo.
    let mut process = sandbox.process(&["gate", "--against=HEAD", "--bench-target=prase*"]);
    process.current_dir(sandbox.path("a/src"));
    let line = error(assert_cmd::Command::from_std(process).assert());
    assert!(line.ends_with("names no bench target that can be gated; there are a/parse"), "{line}");
    // A glob in the folder of a root package is of the workspace.
    sandbox.write("Cargo.toml", &format!("{MANIFEST}\n[workspace]\nmembers = ['a', 'b']\n"));
    sandbox.write("benches/parse.rs", BENCH);
    sandbox.write("src/lib.rs", "");
    let line = error(gate(&sandbox, &["--bench-target=prase*"]));
    assert!(line.ends_with("there are a/parse, b/parse, parser/parse"), "{line}");
    sandbox.write("Cargo.toml", "[workspace]\nresolver = '2'\nmembers = ['a', 'b']\n");
    for name in ["a", "b"] {
        let manifest = MANIFEST.replace("'parser'", &format!("'{name}'"));
        sandbox.write(&format!("{name}/Cargo.toml"), &format!("{manifest}bench = false\n"));
    }
    let line = error(gate(&sandbox, &["--bench-target=*"]));
    let each = ["a/parse, which has 'bench = false'", "b/parse, which has 'bench = false'"];
    assert!(each.iter().all(|one| line.contains(one)), "each with its package: {line}");
}

/// Cargo does not see it from the repository's own package.
#[test]
fn benches_in_a_package_apart_are_found() {
    let sandbox = repository();
    for (from, to) in [("Cargo.toml", "bench/Cargo.toml"), ("benches", "bench/benches")] {
        fs::create_dir_all(sandbox.path("bench")).expect("a folder");
        fs::rename(sandbox.path(from), sandbox.path(to)).expect("moved");
    }
    let manifest = "[package]\nname = 'parser'\nversion = '0.1.0'\n\n[workspace]\nexclude = ['bench']\n";
    commit(&sandbox, "Cargo.toml", manifest, "apart");
    let said = stderr(&gate(&sandbox, &[]).code(4));
    let line = "error: there are no benches of criterion or divan here; run it in a folder that has some: bench\n";
    assert!(said.ends_with(line), "{said}");
}

#[test]
fn a_folder_without_a_package_says_where_some_are() {
    let sandbox = empty_repository();
    sandbox.write("rust/parser/Cargo.toml", MANIFEST);
    sandbox.write("rust/parser/benches/parse.rs", BENCH);
    commit(&sandbox, "rust/parser/src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n", "first");
    let line = error(gate(&sandbox, &[]));
    assert!(
        line.contains("no Cargo.toml in this folder or above it; go to the folder of a package: rust/parser"),
        "{line}"
    );
}

/// What measures in the working tree cannot put anything in criterion's place there.
#[test]
fn other_commands_say_what_to_write() {
    let sandbox = repository();
    let line = error(sandbox.run(&["bench", "--bench-target=parse"]));
    assert!(line.contains("uses criterion itself") && line.contains("package = \"infergate-criterion\""), "{line}");
}
