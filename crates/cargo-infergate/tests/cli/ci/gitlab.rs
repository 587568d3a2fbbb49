//! The job for GitLab: its lines, in one shell as GitLab runs them.

use std::fs;
use std::process::Output;

use crate::ci::place::{Place, root, stderr};
use crate::ci::yaml::{parse, text, texts};

/// In `work/` a package for which `init` wrote the job; in `upstream/` the repository of which the job takes infergate. Gives the
/// commits of the first and the commit of the second.
fn package(folder: &str) -> (Place, [String; 3], String) {
    let (place, commits) = Place::with_repository();
    place.write(&format!("work/{folder}/Cargo.toml"), "[package]\nname = \"engine\"\nversion = \"0.1.0\"\n");
    let mut init = place.process(env!("CARGO_BIN_EXE_cargo-infergate"));
    init.current_dir(place.path("work").join(folder)).args(["infergate", "init", "--ci", "gitlab"]);
    let said = init.output().expect("the command");
    assert!(said.status.success(), "{}", stderr(&said));
    for script in ["base.sh", "install.sh", "run.sh"] {
        let text = fs::read(root().join("gate").join(script)).expect("a script");
        place.write(&format!("upstream/gate/{script}"), text);
    }
    place.git("upstream", &["init", "--quiet"]);
    let wanted = place.commit("upstream", "the revision that is pinned");
    // The branch goes on.
    place.write("upstream/gate/run.sh", "exit 99\n");
    place.commit("upstream", "later");
    (place, commits, wanted)
}

/// Runs the job's lines on a merge request that started at `started`.
fn run(place: &Place, revision: &str, started: &str) -> Output {
    let file = parse(".gitlab-ci.yml", &place.read("work/.gitlab-ci.yml"));
    let job = &file["infergate"];
    let lines: Vec<String> = job["script"].as_array().expect("lines").iter().map(text).collect();
    let mut bash = place.process("bash");
    bash.args(["-e", "-o", "pipefail", "-c", &lines.join("\n")]);
    bash.envs(texts(&job["variables"])).env("CI_MERGE_REQUEST_DIFF_BASE_SHA", started);
    bash.env("GATE_REPOSITORY", format!("file://{}", place.path("upstream").display())).env("GATE_REVISION", revision);
    bash.output().expect("bash")
}

#[test]
fn the_job_gates_by_the_pinned_revision_and_keeps_its_files_whatever_the_verdict() {
    for folder in [".", "engines/my own"] {
        let (place, [first, ..], revision) = package(folder);
        let job = parse(".gitlab-ci.yml", &place.read("work/.gitlab-ci.yml"));
        let artifacts = &job["infergate"]["artifacts"];
        assert_eq!(artifacts["when"].as_str(), Some("always"));
        for code in ["0", "1", "3"] {
            place.write("code.txt", code);
            let output = run(&place, &revision, &first);
            assert_eq!(output.status.code().map(|code| code.to_string()).as_deref(), Some(code), "{}", stderr(&output));
            assert_eq!(place.gate_words()[..4], ["infergate", "gate", "--against", &*first]);
            assert!(place.read("cargo-variables.txt").contains(&format!("INFERGATE_COMMIT={revision}\n")));
            let kept = artifacts["paths"][0].as_str().expect("a path");
            assert!(place.path("work").join(kept).join("paired.json").is_file(), "{kept}");
            let junit = artifacts["reports"]["junit"].as_str().expect("a path");
            assert_eq!(junit, format!("{kept}/report/junit.xml"));
        }
    }
}

#[test]
fn a_revision_that_is_not_there_runs_nothing() {
    let (place, [first, ..], _) = package(".");
    let output = run(&place, &"f".repeat(40), &first);
    assert!(!output.status.success() && !place.path("gate.txt").exists(), "{}", stderr(&output));
}
