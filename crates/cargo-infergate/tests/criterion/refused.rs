//! What of plain criterion is refused, in one line.

use std::fs;

use crate::as_they_are::{BENCH, MANIFEST, gate, repository};
use crate::repositories::{commit, empty_repository};
use crate::sandbox::{error, ran, stderr};

/// Its main would never run.
#[test]
fn a_bench_target_with_the_harness_of_rustc_is_named() {
    let sandbox = repository();
    sandbox.write("Cargo.toml", &MANIFEST.replace("harness = false", ""));
    let said = gate(&sandbox, &[]).code(4);
    assert!(stderr(&said).contains("there are parse (no 'harness = false' in Cargo.toml)"), "{}", stderr(&said));
    let line = error(gate(&sandbox, &["--bench-target=parse"]));
    assert!(line.contains("bench target 'parse': no 'harness = false' in Cargo.toml"), "{line}");
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
    let line = error(ran(process));
    assert!(line.ends_with("names no bench target that can be gated; there are a/parse"), "{line}");
    // A glob in the folder of a root package is of the workspace.
    sandbox.write("Cargo.toml", &format!("{MANIFEST}\n[workspace]\nmembers = ['a', 'b']\n"));
    sandbox.write("benches/parse.rs", BENCH);
    sandbox.write("src/lib.rs", "");
    let line = error(gate(&sandbox, &["--bench-target=prase*"]));
    assert!(line.ends_with("there are a/parse; b/parse; parser/parse"), "{line}");
    sandbox.write("Cargo.toml", "[workspace]\nresolver = '2'\nmembers = ['a', 'b']\n");
    for name in ["a", "b"] {
        let manifest = MANIFEST.replace("'parser'", &format!("'{name}'"));
        sandbox.write(&format!("{name}/Cargo.toml"), &format!("{manifest}bench = false\n"));
    }
    let line = error(gate(&sandbox, &["--bench-target=*"]));
    let each = ["a/parse ('bench = false'", "b/parse ('bench = false'"];
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
    let line = "or go to another package: bench\n";
    assert!(said.ends_with(line), "{said}");
}

/// What measures in the working tree cannot put anything in criterion's place there.
#[test]
fn other_commands_say_what_to_write() {
    let sandbox = repository();
    let line = error(sandbox.run(&["bench", "--bench-target=parse"]));
    assert!(line.contains("uses criterion itself") && line.contains("package = \"infergate-criterion\""), "{line}");
}
