//! A bench target understands criterion's flags.

use std::path::Path;
use std::process::{Command, Output};

use infergate_core::receipt::{MemoryReceipt, read};

/// The foreign engine of examples/own_engine.rs as cargo would start it, in a folder of its own.
fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::support::example("own_engine"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").env_remove("CRITERION_HOME");
    command.arg("--bench").args(arguments).output().expect("the bench starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn list_names_the_whole_grid_and_measures_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = stdout(&bench(folder.path(), &["--list"]));
    for id in ["prefill/p128", "prefill/p768", "decode/p512", "generate/p128-o64", "generate/p1024-o256"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{id}:"))), "{id} is missing in {text}");
    }
}

#[test]
fn a_filter_measures_what_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = stdout(&bench(folder.path(), &["--measurement-time", "0.01", "--nresamples", "1000", "decode/p128"]));
    assert!(text.contains("decode/p128") && !text.contains("prefill/"), "{text}");
}

#[test]
fn test_mode_runs_each_bench_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = stdout(&bench(folder.path(), &["--test", "prefill"]));
    assert_eq!(text.matches("Success").count(), 3, "{text}");
}

#[test]
fn a_case_beyond_the_context_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("infergate.toml"), "cases = [\"generate/p2000-o256\"]\n").expect("written");
    let output = bench(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("generate/p2000-o256 needs 2256 tokens"), "{error}");
}

#[test]
fn a_worker_reads_no_settings_of_the_folder_it_runs_in() {
    // Base of a paired gate runs in head's folder, whose infergate.toml may have keys that base does not know.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("infergate.toml"), "a_key_of_tomorrow = 1\n").expect("a file");
    let mut worker = Command::new(crate::support::example("own_engine"));
    let output =
        worker.current_dir(folder.path()).arg("--infergate-worker").stdin(std::process::Stdio::null()).output();
    let output = output.expect("the worker starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The memory bench of a control, as cargo would start it.
fn memory_bench(folder: &Path, control: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::support::example("leaky_engine"));
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR").env("INFERGATE_MODEL", format!("control:{control}"));
    command.env("INFERGATE_CASES", "prefill/p8").arg("--bench").args(arguments).output().expect("the bench starts")
}

#[test]
fn the_memory_bench_runs_when_it_is_named_and_its_exit_code_is_the_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let receipt = folder.path().join("target/infergate/memory.json");
    assert_eq!(stdout(&memory_bench(folder.path(), "heap", &["--list"])), "memory: benchmark\n");
    for skipped in [["decode"].as_slice(), &["--load-baseline", "before"]] {
        assert_eq!(stdout(&memory_bench(folder.path(), "heap", skipped)), "");
    }
    std::fs::write(folder.path().join("infergate.toml"), "[memory]\nruns = 0\n").expect("written");
    assert_eq!(stdout(&memory_bench(folder.path(), "heap", &[])), "", "no run is wanted");
    std::fs::remove_file(folder.path().join("infergate.toml")).expect("removed");
    assert!(!receipt.exists(), "nothing ran");
    assert_eq!(stdout(&memory_bench(folder.path(), "heap", &["--test"])), "", "one run gives no verdict");

    let leaks = memory_bench(folder.path(), "heap", &["memory"]);
    assert_eq!(leaks.status.code(), Some(1), "{}", String::from_utf8_lossy(&leaks.stderr));
    let said = String::from_utf8(leaks.stdout).expect("UTF-8");
    assert!(said.contains("verdict: leak") && !said.contains('\u{1b}'), "no colours in a pipe: {said}");
    assert_eq!(
        read::<MemoryReceipt>(&receipt).expect("a receipt").memory.runs.len(),
        200,
        "as many runs again confirm it"
    );
    assert!(stdout(&memory_bench(folder.path(), "steady", &[])).contains("verdict: pass"));
}

/// The heap passes in both, of one with a plateau.
#[test]
fn a_memory_bench_that_passes_and_cannot_be_kept_ends_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("target"), "").expect("a file where the folder would be");
    for control in ["steady", "cache"] {
        let output = memory_bench(folder.path(), control, &[]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("verdict: pass"), "{control}");
        assert_eq!(output.status.code(), Some(2), "{control}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
