//! `--swap`: HEAD as it is locked against HEAD on another version of a dependency.

use std::fs;
use std::process::Command as Process;

use assert_cmd::assert::Assert;

use crate::bench_targets::with_benches;
use crate::repositories::{MANIFEST, commit, left_behind, repository};
use crate::sandbox::{Sandbox, decision, error, ran, stderr, stdout};

/// A crate of the registry that the workspace depends on, so that it is here without a network, and its speed is the engine's.
const ENGINE: &str = "use std::fmt;\n\npub struct Step;\n\nimpl fmt::Display for Step {\n    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {\n        \
                      write!(f, \"{}\", 1_000_000 * strsim::levenshtein(\"a\", \"b\"))\n    }\n}\n\npub const STEP_NS: Step = Step;\n";

/// A repository whose engine is `engine`, with these dependencies, locked.
fn on(engine: &str, dependencies: &str) -> Sandbox {
    locked(repository(), engine, dependencies)
}

fn locked(sandbox: Sandbox, engine: &str, dependencies: &str) -> Sandbox {
    sandbox.write("engine.rs", engine);
    lock(&sandbox, &format!("{MANIFEST}\n[dependencies]\n{dependencies}\n"));
    sandbox
}

/// Commits all with this manifest and the versions for it.
fn lock(sandbox: &Sandbox, manifest: &str) {
    sandbox.write("Cargo.toml", manifest);
    sandbox.write(".gitignore", "/target\n/cache\n");
    let mut cargo = Process::new("cargo");
    cargo.args(["generate-lockfile", "--offline"]).current_dir(sandbox.path(""));
    assert!(cargo.output().expect("cargo").status.success());
    commit(sandbox, "notes.txt", "", "on dependencies");
}

fn on_a_dependency() -> Sandbox {
    on(ENGINE, "strsim = '0.11'")
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Assert {
    let mut process = sandbox.process(arguments);
    process.args(["--model=m", "--threads=1", "--base-folder=cache"]).env("CARGO_NET_OFFLINE", "true");
    ran(process)
}

fn swap(sandbox: &Sandbox, what: &str) -> Assert {
    run(sandbox, &["gate", "--swap", what, "--cases=decode/p8"])
}

/// A folder with a crate of this name.
fn another(name: &str, version: &str, source: &str) -> Sandbox {
    let other = Sandbox::new();
    other.write("src/lib.rs", source);
    let package = format!("[package]\nname = '{name}'\nversion = '{version}'\nedition = '2021'\n");
    other.write("Cargo.toml", &package);
    other
}

/// strsim, for which all texts are this far apart: as slow is the engine.
fn strsim(version: &str, distance: usize) -> Sandbox {
    another("strsim", version, &format!("pub fn levenshtein(_: &str, _: &str) -> usize {{\n    {distance}\n}}\n"))
}

#[test]
fn head_takes_what_base_built_of_other_peoples_packages() {
    let sandbox = on_a_dependency();
    let said = stderr(&run(&sandbox, &["gate", "--against=HEAD", "--cases=decode/p8"]));
    let of_head = said.split("building bench target 'inference' (").nth(1).expect("head is built");
    assert!(of_head.contains("Compiling engine") && !of_head.contains("Compiling strsim"), "{said}");
}

#[test]
fn base_builds_what_lies_in_its_repository_from_its_own_sources() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = steps::STEP_NS;\n");
    let package = "[package]\nname = 'steps'\nversion = '0.1.0'\nedition = '2021'\n[workspace]\n";
    sandbox.write("steps/Cargo.toml", package);
    sandbox.write("Cargo.toml", &format!("{MANIFEST}\n[dependencies]\nsteps = {{ path = 'steps' }}\n"));
    commit(&sandbox, "steps/src/lib.rs", "pub const STEP_NS: u64 = 1_000_000;\n", "steps");
    sandbox.write("steps/src/lib.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    let said = run(&sandbox, &["gate", "--against=HEAD", "--cases=decode/p8"]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +5.0 %"), "{}", stdout(&said));
}

/// Cargo's home with a registry of two crates, both in 1.0.0 and 1.0.1. `front` needs `back` of at least its own version; the
/// older `back` is slower.
pub fn two_crates() -> Sandbox {
    let home = Sandbox::new();
    for (version, step_ns) in [("1.0.0", "1_050_000"), ("1.0.1", "1_000_000")] {
        let needs = format!("[dependencies]\nback = '{version}'\n");
        let back = format!("pub const STEP_NS: u64 = {step_ns};\n");
        for (name, needs, source) in [("front", &*needs, "pub use back::STEP_NS;\n"), ("back", "", &back)] {
            let package = format!("[package]\nname = '{name}'\nversion = '{version}'\nedition = '2021'\n{needs}");
            home.write(&format!("crates/{name}-{version}/Cargo.toml"), &package);
            home.write(&format!("crates/{name}-{version}/src/lib.rs"), source);
            home.write(&format!("crates/{name}-{version}/.cargo-checksum.json"), "{\"files\":{}}");
        }
    }
    let folder = home.path("crates");
    let source =
        format!("[source.crates-io]\nreplace-with = 'here'\n[source.here]\ndirectory = '{}'\n", folder.display());
    home.write("config.toml", &source);
    home
}

#[test]
fn crates_that_move_together_are_swapped_together() {
    let both = ENGINE.replace("\"b\"))", "\"b\") * libm::sqrt(1.0) as usize)");
    let sandbox = on(&both, "strsim = '0.11'\nlibm = '0.2'");
    let (one, two) = (strsim("0.11.9", 2), another("libm", "0.2.99", "pub fn sqrt(_: f64) -> f64 {\n    3.0\n}\n"));
    let (one, two) = (format!("strsim={}", one.path("").display()), format!("libm={}", two.path("").display()));
    let said = run(&sandbox, &["gate", "--swap", &one, "--swap", &two, "--cases=decode/p8"]).code(1);
    assert!(decision(&said).contains("decode/p8 +500 %"), "{}", stdout(&said));
}

#[test]
fn a_bisection_over_versions_names_the_first_slower_one() {
    let sandbox = on_a_dependency();
    let versions = [("0.11.2", 1), ("0.11.3", 1), ("0.11.4", 2), ("0.11.5", 2)];
    let versions = versions.map(|(version, distance)| strsim(version, distance));
    let places: Vec<String> = versions.iter().map(|version| version.path("").display().to_string()).collect();
    let bisect =
        |versions: &str| run(&sandbox, &["bisect", "--swap=strsim", "--versions", versions, "--case=decode/p8"]);
    let before = left_behind(&sandbox);
    let said = bisect(&places.join(",")).success();
    let line = decision(&said);
    assert!(line.contains("first slower version") && line.contains(&places[2]), "{}", stdout(&said));
    assert_eq!(stderr(&said).matches("step ").count(), 3, "{}", stderr(&said));
    let said = bisect(&places[..2].join(",")).code(3);
    assert!(stdout(&said).contains("not shown to be slower"), "{}", stdout(&said));
    let line = error(bisect(&places[0]));
    assert!(line.contains("name at least two"), "{line}");
    // Of a patch that fits nothing cargo only warns.
    let other = strsim("0.9.0", 1);
    let line = error(bisect(&format!("{},{}", other.path("").display(), places[2])));
    assert!(line.contains("--swap strsim: nothing changes"), "{line}");
    assert_eq!(left_behind(&sandbox), before);
}

#[test]
fn a_version_that_does_not_build_is_named() {
    let sandbox = on_a_dependency();
    let other = another("strsim", "0.11.9", "pub fn other() {}\n");
    let asked = format!("strsim={}", other.path("").display());
    let said = stderr(&swap(&sandbox, &asked).code(2));
    let line = said.lines().last().unwrap_or_default();
    assert!(line.contains(&format!(" with --swap {asked} does not build: error")), "{line}");
}

/// HEAD as it is does not build it either.
#[test]
fn a_bench_target_that_is_broken_anyway_fails_no_swap() {
    let (sandbox, _infergate) = with_benches(&[("first", ""), ("broken", "")]);
    sandbox.write("benches/broken.rs", "fn main() {\n    broken()\n}\n");
    let manifest = fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    let depends = "[dependencies]\nstrsim = '0.11'\n[dev-dependencies]\n";
    lock(&sandbox, &manifest.replace("[dev-dependencies]\n", depends));
    let other = strsim("0.11.9", 1);
    let said = run(&sandbox, &["gate", "--swap", &format!("strsim={}", other.path("").display())]).success();
    let line = "- bench target 'broken' is not compared, it fails in base: ";
    assert!(stdout(&said).contains(line), "{}", stdout(&said));
}

/// A folder of a repository can be a link to somebody's files.
#[cfg(unix)]
#[test]
fn a_manifest_outside_the_checkout_is_not_changed() {
    let member = another("member", "0.1.0", "");
    let manifest = "[package]\nname = 'member'\nversion = '0.1.0'\n[dependencies]\nstrsim = '0.11'\n";
    member.write("Cargo.toml", manifest);
    let sandbox = repository();
    std::os::unix::fs::symlink(member.path(""), sandbox.path("linked")).expect("a link");
    let sandbox = locked(sandbox, ENGINE, "strsim = '0.11'\n[workspace]\nmembers = ['linked']");
    let line = error(swap(&sandbox, "strsim=0.10.0"));
    assert!(line.contains("linked/Cargo.toml: a link leads there out of the checkout"), "{line}");
    assert_eq!(fs::read_to_string(member.path("Cargo.toml")).expect("a manifest"), manifest);
}
