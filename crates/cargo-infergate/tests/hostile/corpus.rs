//! The committed corpus: files that once ended in a panic, an abort, a hang or a lie, through the real command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Runs the command on `arguments` in an empty folder below which nothing is found.
fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("the search for infergate.toml ends here");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
    command.current_dir(folder.path()).arg("infergate").args(arguments).env_remove("CARGO_TARGET_DIR");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("INFERGATE_")) {
        command.env_remove(name);
    }
    let output = command.output().expect("the command starts");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left behind: {arguments:?}");
    output
}

/// The one line that `arguments` are refused with.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    let line = said.strip_suffix('\n').expect("a line");
    assert!(line.starts_with("error: ") && !line.chars().any(char::is_control), "{arguments:?}: {line:?}");
    assert!(!line.ends_with('.') && line.chars().count() < 2_500, "{arguments:?}: {line}");
    line.to_owned()
}

#[test]
fn every_file_of_the_corpus_is_refused_in_one_line() {
    let mut tried = 0;
    for entry in fs::read_dir(corpus()).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let name = path.to_str().expect("UTF-8");
        if !name.ends_with(".json") {
            continue;
        }
        for arguments in
            [vec!["gate", "--receipt", name], vec!["compare", name, name], vec!["bless", "--receipt", name]]
        {
            let line = refused(&arguments);
            assert!(line.contains(path.file_name().expect("a name").to_str().expect("UTF-8")), "{line}");
        }
        tried += 1;
    }
    assert!(tried >= 15, "{tried} files in the corpus");
}

/// A name that would write a verdict of its own is shown as what it is.
#[test]
fn a_name_cannot_write_on_the_terminal() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/receipt-1.json");
    let text = fs::read_to_string(golden).expect("a golden file");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("named.json");
    let name = r#""x\n\nverdict: pass (exit 0)\n\u001b[8m\u001b[2A\u202e\u009b1A""#;
    let text = text.replacen("\"synthetic:tiny\"", name, 1).replacen("\"linux-x86_64-amd-epyc-2\"", name, 1);
    fs::write(&path, text).expect("a file");
    let output = run(&["gate", "--receipt", path.to_str().expect("UTF-8"), "--require-baseline"]);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(4), "{said}");
    let verdicts: Vec<&str> = said.lines().filter(|line| line.starts_with("verdict:")).collect();
    assert_eq!(verdicts.len(), 1, "{said}");
    assert!(verdicts[0].starts_with("verdict: not comparable (exit 4)"), "{said}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n') && !said.contains('\u{202e}'), "{said:?}");
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    assert!(Command::new("mkfifo").arg(place("pipe")).status().expect("mkfifo").success());
    std::os::unix::fs::symlink(place("loop"), place("loop")).expect("a link");
    fs::write(place("empty"), "").expect("a file");
    for file in [place("pipe"), place("loop"), place("empty"), place("none"), "/dev/zero".into(), "/".into()] {
        let line = refused(&["gate", "--receipt", &file]);
        assert!(line.contains(&file), "{line}");
        refused(&["compare", &file, &file]);
    }
}

/// Passed over in silence, a baseline that cannot be read would be no baseline, and the gate would pass.
#[cfg(unix)]
#[test]
fn a_baseline_that_cannot_be_read_is_not_passed_over() {
    let golden = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let receipt = golden("receipt-1.json");
    let receipt = receipt.to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a folder");
    let class = folder.path().join("linux-x86_64-amd-epyc-2");
    let baselines = folder.path().to_str().expect("UTF-8");
    fs::create_dir(&class).expect("a folder");
    let place = class.join("candle-synthetic-tiny.json");
    let arguments = ["gate", "--receipt", receipt, "--baselines", baselines];
    fs::create_dir(&place).expect("a folder in its place");
    assert!(refused(&arguments).contains("candle-synthetic-tiny.json: cannot be read"));
    fs::remove_dir(&place).expect("removed");
    std::os::unix::fs::symlink("nowhere", &place).expect("a link");
    assert!(refused(&arguments).contains("candle-synthetic-tiny.json: cannot be read"));
    let file = golden("baseline-1.json");
    let file = file.to_str().expect("UTF-8");
    assert!(refused(&["gate", "--receipt", receipt, "--baselines", file]).contains("baseline-1.json: cannot be read"));
}
