//! The invariants of ARCHITECTURE.md that a machine can check.

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file of this repository: its path with forward slashes, and its lines without comments.
struct Source {
    path: String,
    lines: Vec<String>,
}

impl Source {
    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path == format!("{place}.rs") || self.path.starts_with(&format!("{place}/")))
    }
}

/// Every Rust file below `folders`, this one left out: it has to spell what it forbids.
fn sources(folders: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                waiting.push(path);
            } else if name.ends_with(".rs") && name != "tests/tidy.rs" {
                let text = fs::read_to_string(&path).unwrap();
                let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned()).collect();
                found.push(Source { path: name, lines });
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {folders:?}");
    found
}

/// Fails with every line of `sources` that contains one of `words`.
#[track_caller]
fn assert_absent<'a>(sources: impl IntoIterator<Item = &'a Source>, words: &[&str], why: &str) {
    let mut offences = Vec::new();
    for source in sources {
        for (number, line) in source.lines.iter().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(offences.is_empty(), "{why}:\n{}", offences.join("\n"));
}

#[test]
fn only_models_name_candle() {
    let sources = sources(&["src", "xtask"]);
    let others = || sources.iter().filter(|source| !source.is_in(&["src/models"]));
    assert_absent(others(), &["candle_core", "candle_nn", "candle_transformers"], "candle belongs to src/models");
    let reach = |source: &&Source| source.path != "src/lib.rs";
    assert_absent(
        others().filter(reach),
        &["crate::models", "infergate::models"],
        "only benches and examples reach models",
    );
}

#[test]
fn what_judges_builds_without_candle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let xtask = fs::read_to_string(root.join("xtask/Cargo.toml")).unwrap();
    assert!(xtask.contains(r#"infergate = { path = "..", default-features = false, features = ["cli"] }"#), "{xtask}");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let cli = manifest.split_once("\ncli = [").and_then(|(_, rest)| rest.split_once(']')).expect("a feature `cli`").0;
    for heavy in ["candle", "gemm", "criterion", "tokenizers", "\"models\"", "\"bench\""] {
        assert!(!cli.contains(heavy), "feature `cli` pulls in {heavy}");
    }
    for line in manifest.lines().filter(|line| line.starts_with("candle-") && line.contains("version")) {
        assert!(line.contains("optional = true"), "{line}");
    }
}

#[test]
fn rooms_that_judge_are_pure() {
    let sources = sources(&["src"]);
    let pure = sources.iter().filter(|s| s.is_in(&["src/case", "src/trace", "src/stats", "src/gate"]));
    let impure = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
        "Command::new",
        "println!",
    ];
    assert_absent(pure, &impure, "case, trace, stats and gate do no IO, read no clock and start nothing");
}

#[test]
fn only_receipt_names_schemas() {
    let sources = sources(&["src"]);
    let others = sources.iter().filter(|source| !source.is_in(&["src/receipt"]));
    assert_absent(
        others,
        &["\"infergate.receipt/", "\"infergate.baseline/", "\"infergate.verdict/"],
        "file formats belong to src/receipt",
    );
}

#[test]
fn files_stay_small() {
    let long: Vec<String> = sources(&["src", "xtask"])
        .iter()
        .filter(|source| source.lines.len() > 400)
        .map(|source| format!("{}: {} lines", source.path, source.lines.len()))
        .collect();
    assert!(long.is_empty(), "split these by idea; 300 lines are plenty:\n{}", long.join("\n"));
}

#[test]
fn nothing_is_left_undone() {
    let all = sources(&["src", "tests", "benches", "examples", "xtask"]);
    assert_absent(&all, &["todo!", "unimplemented!", "dbg!", "#[ignore"], "finish it or leave it out");
    assert_absent(&all, &["set_var(", "remove_var("], "the environment is set by the parent, before a process starts");
}

#[test]
fn tests_do_not_wait_for_the_clock() {
    let tests = sources(&["tests"]);
    assert_absent(&tests, &["thread::sleep", "Instant::now", "SystemTime::now"], "a test must not depend on time");
}

#[test]
fn only_a_bench_and_its_controls_install_an_allocator() {
    let sources = sources(&["src", "tests", "examples", "xtask"]);
    let control = |path: &str| ["examples/leaky_engine.rs", "tests/counting_allocator.rs"].contains(&path);
    let others = sources.iter().filter(|source| !control(&source.path));
    assert_absent(others, &["#[global_allocator]"], "counting allocations belongs to a process of its own");
}
