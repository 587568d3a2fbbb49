//! Nothing in the harness changes the engine under test: with infergate as a dev-dependency cargo resolves what candle computes
//! with exactly as with plain criterion, versions and features included.
//!
//! Cargo joins the features of everything in one build. If infergate asked for one more of `gemm`, a user's engine would run
//! other kernels in its benchmarks than in its release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Criterion, without its plots, which the lock file does not have.
const CRITERION: &str =
    r#"criterion = { version = "0.8", default-features = false, features = ["cargo_bench_support"] }"#;

/// What cargo resolves for somebody's engine on candle with `dev_dependency`, from this repository's lock file: each crate
/// with its version and features. `edges` are those that `cargo tree` follows; the tree begins at `from`.
fn resolved(dev_dependency: &str, edges: &str, from: &str) -> BTreeMap<String, BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        "[package]\nname = \"engine\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\ncandle-core = \"0.11.1\"\n\n\
         [dev-dependencies]\n{dev_dependency}\n"
    );
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), "").unwrap();
    fs::copy(Path::new(ROOT).join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(&folder)
        .args(["tree", "--offline", "--prefix", "none", "--no-dedupe", "-e", edges, "-p", from, "-f", "{p}|{f}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (package, features) = line.split_once('|').expect(line);
        let package = package.split(' ').take(2).collect::<Vec<_>>().join(" ");
        crates.entry(package).or_default().extend(features.split(',').map(str::to_owned));
    }
    crates
}

/// Crates that candle computes with, or is otherwise built of, as an engine with `dev_dependency` gets them.
fn under_candle(dev_dependency: &str) -> BTreeMap<String, BTreeSet<String>> {
    let candle = resolved(CRITERION, "normal", "candle-core");
    assert!(candle.keys().any(|package| package.starts_with("gemm-f32 ")), "{:?}", candle.keys());
    let mut all = resolved(dev_dependency, "normal,build,dev", "engine");
    let names: BTreeSet<&str> = candle.keys().filter_map(|package| package.split(' ').next()).collect();
    all.retain(|package, _| package.split(' ').next().is_some_and(|name| names.contains(name)));
    all
}

#[test]
fn candle_is_built_as_with_plain_criterion() {
    let with_infergate = under_candle(&format!("infergate = {{ path = {ROOT:?} }}"));
    assert_eq!(with_infergate, under_candle(CRITERION));
}

#[test]
fn a_feature_more_would_be_seen() {
    let with_kernels = under_candle(&format!("{CRITERION}\ngemm = {{ version = \"0.19\", features = [\"x86-v4\"] }}"));
    let changed: Vec<String> = under_candle(CRITERION)
        .into_iter()
        .filter(|(package, features)| with_kernels.get(package) != Some(features))
        .map(|(package, _)| package)
        .collect();
    assert!(changed.iter().any(|package| package.starts_with("gemm-f32 ")), "{changed:?}");
}
