//! `cargo infergate report`, as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

/// A folder of its own, where the search for infergate.toml ends.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    /// Runs the command; what it says on stderr, and its exit code.
    fn run(&self, command: &str, files: &[PathBuf], flags: &[&str]) -> (i32, String) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
        process.current_dir(self.0.path()).arg("infergate").arg(command).args(files).args(flags);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INFERGATE_")) {
            process.env_remove(name);
        }
        let output = process.output().expect("it runs");
        (output.status.code().expect("a code"), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn report(&self, names: &[&str], flags: &[&str]) -> (i32, String) {
        let files: Vec<PathBuf> = names.iter().map(|name| golden(name)).collect();
        self.run("report", &files, flags)
    }
}

#[test]
fn usual_formats_are_written_and_named() {
    let folder = Folder::new();
    let (code, said) = folder.report(&["paired-1.json"], &["--out", "report"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        said,
        "report: report (comment.md, report.md, report.html, report.json, report.csv, junit.xml, annotations.txt and 2 pictures)\n"
    );
    // A paired receipt without a verdict is judged by the gate's own function.
    assert!(folder.read("report/comment.md").contains("infergate: inconclusive"));
    assert!(folder.read("report/report.html").contains("verdict: inconclusive"));
    assert!(folder.read("report/pictures/changes.svg").starts_with("<?xml"));
}

#[test]
fn a_load_receipt_is_reported_without_a_verdict() {
    let folder = Folder::new();
    let (code, said) = folder.report(&["load-1.json"], &["--out", "report"]);
    assert_eq!(code, 0, "{said}");
    let pages = "report: report (report.md, report.html, report.json, report.csv and ";
    assert!(said.starts_with(pages), "{said}");
    let text = folder.read("report/report.md");
    assert!(text.contains("\n\n**verdict: invalid** (exit 3)\n\nA (m), B (other) under load\n"), "{text}");
    assert!(text.contains("## Targets side by side"), "{text}");
    let (code, said) = folder.report(&["load-1.json"], &["--out", "comment", "--format", "comment"]);
    assert_eq!(code, 2);
    assert!(said.contains("--format comment: it needs a verdict, and a load receipt has none"), "{said}");
    let (code, said) = folder.report(&["load-1.json", "load-1.json"], &["--out", "two"]);
    assert!(code == 2 && said.contains("a report has room for one file of this kind"), "{said}");
}

#[test]
fn two_receipts_are_compared_the_first_being_the_earlier() {
    let folder = Folder::new();
    let (code, said) = folder.report(&["baseline-1.json", "receipt-1.json"], &["--out=r", "--format=md"]);
    assert_eq!(code, 0, "{said}");
    let text = folder.read("r/report.md");
    assert!(text.contains("## Comparison with the earlier run"), "{text}");
    assert!(text.contains("## Verdict"), "{text}");
}

#[test]
fn targets_are_judged_without_a_baseline() {
    let folder = Folder::new();
    let flags = ["--out=r", "--format=md,comment", "--targets", "prefill/* ttft_ms < 1"];
    let (code, said) = folder.report(&["receipt-1.json"], &flags);
    assert_eq!(code, 0, "a report reports: {said}");
    let comment = folder.read("r/comment.md");
    assert!(
        comment.contains("| prefill/p8 | `prefill/* ttft_ms < 1` | 1.00 ms | 1.23 ms | target missed |"),
        "{comment}"
    );
}

#[test]
fn a_file_that_is_none_is_one_clear_line() {
    let folder = Folder::new();
    for (name, text) in [
        ("newer.json", "{\"schema\": \"infergate.receipt/9\"}"),
        ("other.json", "{\"schema\": \"infergate.checkup/1\"}"),
        ("none.json", "not JSON"),
    ] {
        fs::write(folder.path(name), text).expect("a file");
        let (code, said) = folder.run("report", &[folder.path(name)], &["--out=r"]);
        assert_eq!(code, 2, "{name}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1 && said.len() < 1_000, "{said}");
        assert!(said.contains(name), "{said}");
        assert!(!folder.path("r").exists(), "{name}: nothing is written");
    }
}

#[test]
fn what_cannot_be_done_says_why() {
    let folder = Folder::new();
    for (names, flags, words) in [
        (&["receipt-1.json"][..], &["--out=r", "--format=junit"][..], "--format junit: it needs a verdict"),
        (&["receipt-1.json"], &["--out=r", "--format=pdf"], "'pdf' is no format; there are comment, md"),
        (&["receipt-1.json"; 3], &["--out=r"], "3 receipts and baselines were given; a report has room for two"),
        (&["paired-1.json"; 2], &["--out=r"], "a report has room for one file of this kind"),
        (&["receipt-1.json"], &[], "--out <DIR>"),
    ] {
        let (code, said) = folder.report(names, flags);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// `gate --report`: everything in one go, and nothing of an earlier run where this one fails.
#[test]
fn a_gate_writes_its_report() {
    let folder = Folder::new();
    let receipt = format!("--receipt={}", golden("receipt-1.json").display());
    let (code, said) = folder.run("gate", &[], &[&receipt, "--report=r"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("report: r (comment.md, "), "{said}");
    assert!(folder.read("r/comment.md").contains("infergate: pass"));
    let (code, said) = folder.run("gate", &[], &["--receipt=missing.json", "--report=r"]);
    assert_eq!(code, 2, "{said}");
    assert!(!folder.path("r/comment.md").exists(), "a comment of an earlier run would be posted");
}

#[test]
fn what_it_reads_is_not_what_it_writes() {
    let folder = Folder::new();
    let receipt = folder.path("report.json");
    fs::copy(golden("receipt-1.json"), &receipt).expect("a copy");
    for flags in [&["--out=."][..], &["--json=report.json"]] {
        let (code, said) = folder.run("report", std::slice::from_ref(&receipt), flags);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("report.json: is what the report is made from; name another place"), "{said}");
    }
    assert!(folder.read("report.json").contains("infergate.receipt/1"), "it is still there");
    let (code, said) = folder.run("report", &[receipt], &["--json=tables.json"]);
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(folder.read("tables.json").contains("\"schema\": \"infergate.report/1\""));
}

/// Anything else says of itself what it likes: a memory receipt alone would be a pass.
#[test]
fn of_a_pull_request_only_a_paired_receipt_is_judged() {
    let folder = Folder::new();
    for name in ["memory-1.json", "receipt-1.json", "baseline-1.json", "load-1.json", "verdict-1.json"] {
        for names in [&[name][..], &["paired-1.json", name]] {
            let (code, said) = folder.report(names, &["--pull-request", "--out=r", "--format=comment"]);
            assert_eq!(code, 2, "{said}");
            assert!(said.contains(name) && said.contains("infergate.paired/1 is needed"), "{said}");
            assert!(!folder.path("r").exists(), "{name}: nothing is written");
        }
    }
    let (code, said) = folder.report(&["paired-1.json"], &["--pull-request", "--out=r", "--format=comment"]);
    assert_eq!(code, 0, "{said}");
    assert!(folder.read("r/comment.md").contains("infergate: inconclusive"));
    // Noise lets nothing pass beside what is missing, nor a heap that still grows.
    let text = fs::read_to_string(golden("paired-1.json")).expect("a receipt");
    let mut receipt: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    receipt["blocks"].as_array_mut().expect("blocks").truncate(3);
    let mut heap = receipt.clone();
    receipt.as_object_mut().expect("an object").remove("memory");
    heap["blocks"] = serde_json::json!([]);
    for (receipt, asked, passes) in
        [(&receipt, "", true), (&receipt, "cases = ['prefill/p9']\n", false), (&heap, "", false)]
    {
        fs::write(folder.path("infergate.toml"), format!("undecided = 'warn'\n{asked}")).expect("settings");
        fs::write(folder.path("noise.json"), receipt.to_string()).expect("a receipt");
        let flags = ["--pull-request", "--out=r", "--format=comment"];
        let (code, said) = folder.run("report", &[folder.path("noise.json")], &flags);
        assert_eq!(code, 0, "{said}");
        assert_eq!(folder.read("r/comment.md").contains("lets it pass"), passes, "{asked}");
    }
}
