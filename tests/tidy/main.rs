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
    let paths = folders.iter().flat_map(|folder| files(&root.join(folder), ".rs"));
    let source = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned()).collect();
        (name != "tests/tidy/main.rs").then_some(Source { path: name, lines })
    };
    let found: Vec<Source> = paths.filter_map(source).collect();
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

/// What measures and what judges.
const HOUSE: &[&str] = &[
    "src",
    "crates/cargo-infergate/src",
    "crates/infergate-build/src",
    "crates/infergate-candle/src",
    "crates/infergate-core/src",
    "crates/infergate-criterion/src",
    "crates/infergate-divan/src",
    "crates/infergate-judge/src",
    "crates/infergate-load/src",
    "crates/infergate-probes/src",
    "crates/infergate-receipts/src",
    "crates/infergate-report/src",
    "xtask",
];

/// The lines of the table `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let (_, table) = text.split_once("\n[dependencies]\n").expect("a table of dependencies");
    let lines = table.lines().take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Whoever links the harness must not get another engine by it: a crate that computes, or one of its features.
#[test]
fn the_harness_and_the_judge_depend_on_nothing_that_computes() {
    let heavy = ["candle", "tokenizers", "hf-hub", "rayon", "half"];
    for (manifest, more) in [
        ("Cargo.toml", &["gemm", "tokio"][..]),
        ("crates/infergate-core/Cargo.toml", &["gemm", "tokio", "criterion"]),
        ("crates/infergate-load/Cargo.toml", &["gemm", "criterion"]),
        ("crates/cargo-infergate/Cargo.toml", &["criterion", "hyper", "tokio"]),
    ] {
        for line in dependencies(manifest) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(!heavy.iter().chain(more).any(|part| name.contains(part)), "{manifest}: {line}");
        }
    }
    let xtask = dependencies("xtask/Cargo.toml");
    assert_eq!(
        xtask.iter().filter(|line| !line.is_empty()).count(),
        1,
        "xtask is the command and nothing else: {xtask:?}"
    );
}

/// `cargo xtask` is a build for development, and a case is compared with what its probes found.
#[test]
fn probes_are_as_fast_as_in_a_release() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let line = "\ninfergate-probes = { opt-level = 3, debug-assertions = false }\n";
    assert!(manifest.contains(line), "Cargo.toml, profile.dev.package: {line}");
}

#[test]
fn rooms_that_judge_are_pure() {
    let sources = sources(HOUSE);
    let rooms = [
        "infergate-core/src/case",
        "infergate-core/src/memory/leak",
        "infergate-core/src/stats",
        "infergate-core/src/trace",
        "infergate-judge/src",
        "infergate-load/src/plan/search",
        "infergate-load/src/summary",
        "infergate-load/src/validity",
    ];
    let rooms = rooms.map(|room| format!("crates/{room}"));
    let rooms = rooms.each_ref().map(String::as_str);
    let pure = sources.iter().filter(|s| s.is_in(&rooms));
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
    assert_absent(pure, &impure, "what judges does no IO, reads no clock and starts nothing");
}

#[test]
fn only_receipt_names_schemas() {
    let sources = sources(HOUSE);
    let others = sources.iter().filter(|s| !s.path.contains("/src/receipt") && !s.path.contains("infergate-receipts/"));
    assert_absent(
        others,
        &["\"infergate.receipt/", "\"infergate.baseline/", "\"infergate.verdict/"],
        "file formats belong to infergate-receipts and the rooms called receipt",
    );
}

/// Only `cli` and `output` know how the command was started, and put that name into what is printed.
#[test]
fn only_the_command_line_names_the_command() {
    let own = ["crates/cargo-infergate/src/cli", "crates/infergate-build/src/output"];
    let elsewhere = sources(HOUSE).into_iter().filter(|source| !source.is_in(&own));
    let elsewhere: Vec<Source> = elsewhere.collect();
    assert_absent(&elsewhere, &["cargo xtask"], "what an installed command exports would name another one");
}

#[test]
fn nothing_is_left_undone() {
    let all = sources(&["src", "tests", "benches", "examples", "crates", "xtask"]);
    assert_absent(&all, &["todo!", "unimplemented!", "dbg!", "#[ignore"], "finish it or leave it out");
    assert_absent(&all, &["set_var(", "remove_var("], "the environment is set by the parent, before a process starts");
}

#[test]
fn tests_do_not_wait_for_the_clock() {
    let all = sources(&["tests", "crates"]);
    let tests = all.iter().filter(|source| source.path.starts_with("tests/") || source.path.contains("/tests/"));
    assert_absent(tests, &["thread::sleep", "Instant::now", "SystemTime::now"], "a test must not depend on time");
}

#[test]
fn only_a_bench_and_its_controls_install_an_allocator() {
    let sources = sources(&["src", "tests", "examples", "crates", "xtask"]);
    // Templates are bench targets of others.
    let control = |path: &str| {
        let counts = ["tests/programs/leaky_engine.rs", "tests/counting_allocator.rs"].contains(&path);
        // The gate asks for it in builds of their own; and a bench that has one.
        let counting =
            ["crates/infergate-criterion/src/lib.rs", "crates/cargo-infergate/tests/criterion/as_they_are.rs"];
        counts || counting.contains(&path) || path.contains("/templates/")
    };
    let others = sources.iter().filter(|source| !control(&source.path));
    assert_absent(others, &["#[global_allocator]"], "counting allocations belongs to a process of its own");
}

/// The files of `folder` and its folders whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path, end),
            false if path.to_string_lossy().ends_with(end) => vec![path],
            false => Vec::new(),
        })
        .collect()
}

#[test]
fn links_of_pages_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root.join(name));
    let pages: Vec<PathBuf> =
        files(&root.join("docs"), ".md").into_iter().chain(top.map(|name| root.join(name))).collect();
    assert!(pages.len() > 30, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            if !file.contains("://") && !file.is_empty() {
                assert!(page.parent().unwrap().join(file).exists(), "{}: no file at {link}", page.display());
            }
        }
    }
}
