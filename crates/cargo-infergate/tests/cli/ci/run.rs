//! `gate/run.sh`: the same command for a shell, GitLab and GitHub.

use std::fs;

use crate::ci::place::{Place, assert_refused, stderr, stdout};

/// The words behind those that the script itself gives.
fn own_words(place: &Place, base: &str) -> Vec<String> {
    let words = place.gate_words();
    let given = ["infergate", "gate", "--against", base, "--out", "target/gate/paired.json", "--json"];
    let files = ["target/gate/verdict.json", "--report", "target/gate/report"];
    let (given, own) = (given.into_iter().chain(files), words.get(10..).expect("the script's own words"));
    assert!(words.iter().take(10).eq(given), "{words:?}");
    own.to_vec()
}

#[test]
fn words_reach_the_gate_as_they_are() {
    let (place, [_, second, _]) = Place::with_repository();
    // What the patterns below match.
    place.write("work/decode/p128", "");
    let lines = [
        "--cases",
        "*/p128*",
        "",
        "--targets",
        "decode/* tokens_per_s > 20",
        "$(touch evil); `touch evil` & touch evil | touch evil > evil",
        "'one' \"two\" \\ \\n ~ $HOME {a,b}",
        "  spaces around  ",
        "-x",
    ];
    let given = ["two words", "*", "$(touch evil)", "a\\tb"];
    let mut sh = place.script("gate/run.sh");
    sh.args(given).env("GATE_COMMAND", place.path("command")).env("GATE_ARGUMENTS", lines.join("\n"));
    let output = sh.output().expect("sh");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    assert_eq!(own_words(&place, &second), given.into_iter().chain(lines).collect::<Vec<_>>());
    assert!(!place.path("work/evil").exists() && !place.path("evil").exists());
}

#[test]
fn a_verdict_is_the_exit_code_and_its_files_are_kept_whatever_it_is() {
    let (place, _) = Place::with_repository();
    for code in 0..5 {
        place.write("code.txt", code.to_string());
        place.write("work/target/gate/of-before.txt", "pass");
        fs::remove_file(place.path("summary.md")).unwrap_or_default();
        let mut sh = place.script("gate/run.sh");
        sh.env("GATE_COMMAND", place.path("command")).env("GITHUB_STEP_SUMMARY", place.path("summary.md"));
        let output = sh.output().expect("sh");
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        for file in ["paired.json", "verdict.json", "report/comment.md", "report/annotations.txt"] {
            assert!(place.path("work/target/gate").join(file).is_file(), "{code}: {file}");
        }
        assert!(!place.path("work/target/gate/of-before.txt").exists());
        assert_eq!(place.read("summary.md"), "the verdict in words\n");
        assert!(stdout(&output).contains("::error::a row\n"), "{}", stdout(&output));
    }
    // A summary that cannot be written is no verdict; elsewhere than on GitHub there is none.
    place.write("code.txt", "0");
    let mut sh = place.script("gate/run.sh");
    sh.env("GATE_COMMAND", place.path("command")).env("GITHUB_STEP_SUMMARY", place.path("no-such-folder/summary.md"));
    assert_eq!(sh.output().expect("sh").status.code(), Some(0));
    let alone = place.script("gate/run.sh").env("GATE_COMMAND", place.path("command")).output().expect("sh");
    assert!(alone.status.success() && !stdout(&alone).contains("::"), "{}", stdout(&alone));
}

#[test]
fn it_installs_the_command_for_itself_and_leaves_nothing_of_it() {
    let (place, [_, second, _]) = Place::with_repository();
    place.write("code.txt", "3");
    let output = place.script("gate/run.sh").arg("--time-same-code").output().expect("sh");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(own_words(&place, &second), ["--time-same-code"]);
    assert_eq!(place.read("gate-folder.txt").trim(), place.path("work").to_string_lossy());
    place.assert_tidy();

    place.write("cargo-fails", "");
    let refused = place.script("gate/run.sh").output().expect("sh");
    assert_refused(&refused, "error: the command was not built; what cargo said stands above");
    place.assert_tidy();
    let mut sh = place.script("gate/run.sh");
    sh.env("GATE_COMMAND", place.path("command")).env("GATE_AGAINST", "nowhere");
    assert_eq!(sh.output().expect("sh").status.code(), Some(2));
}
