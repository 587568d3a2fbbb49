//! `init`: what it adds to a package, and what it leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::revisions::empty_repository;
use crate::sandbox::{Sandbox, error, stdout};

pub const MANIFEST: &str = "# mine\n[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dev-dependencies] # for tests\n\
                        tempfile = \"3\"\n\n[[bench]]\nname = \"sorting\"\nharness = false\n";

const MADE: [&str; 7] = [
    ".github/workflows/infergate-comment.yml",
    ".github/workflows/infergate.yml",
    ".gitignore",
    "benches/engine/mod.rs",
    "benches/inference.rs",
    "benches/memory.rs",
    "infergate.toml",
];

pub fn package(manifest: &str) -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", manifest);
    sandbox.write("src/lib.rs", "");
    sandbox
}

/// All files but git's, with what is in them.
fn files(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let own = sandbox.files().into_iter().filter(|name| !name.starts_with(".git/"));
    own.map(|name| (name.clone(), fs::read_to_string(sandbox.path(&name)).expect("text"))).collect()
}

#[test]
fn a_package_gets_what_is_missing_and_keeps_what_it_has() {
    let sandbox = package(MANIFEST);
    let before = files(&sandbox);
    let shown = stdout(&sandbox.run(&["init", "--dry-run"]).success());
    assert!(shown.contains("nothing was written") && shown.contains("+ name = \"inference\""), "{shown}");
    assert_eq!(files(&sandbox), before);

    let shown = stdout(&sandbox.run(&["init", "--json", "init.json", "--from", "9.8.7"]).success());
    assert!(shown.contains("left as they are: the bench targets sorting"), "{shown}");
    let after = files(&sandbox);
    let new: Vec<&str> = after.keys().filter(|name| !before.contains_key(*name)).map(String::as_str).collect();
    assert_eq!(new, [&MADE[..], &["init.json"]].concat());
    let manifest = &after["Cargo.toml"];
    assert!(manifest.starts_with("# mine\n[package]"), "{manifest}");
    // Every line that was there is still there, in its order.
    let mut lines = manifest.lines();
    assert!(MANIFEST.lines().all(|line| lines.any(|kept| kept == line)), "{manifest}");
    assert!(
        manifest.contains("[dev-dependencies] # for tests\nanyhow = \"1\"\ninfergate = \"9.8.7\"\ntempfile"),
        "{manifest}"
    );
    for name in ["inference", "memory"] {
        assert!(manifest.contains(&format!("[[bench]]\nname = \"{name}\"\nharness = false\n")), "{manifest}");
    }
    let said: Value = serde_json::from_str(&after["init.json"]).expect("JSON");
    assert_eq!((said["schema"].as_str(), said["files"].as_array().map(Vec::len)), (Some("infergate.init/1"), Some(8)));

    let again = stdout(&sandbox.run(&["init"]).success());
    assert!(!again.contains("new") && !again.contains('+') && again.contains("Cargo.toml: as it is"), "{again}");
    assert_eq!(files(&sandbox), after);
}

/// What a command that was built in a clone wrote is of this machine alone.
#[test]
fn a_path_gives_way_to_what_is_asked_for_and_nothing_else_does() {
    let sandbox = package(MANIFEST);
    let shown = stdout(&sandbox.run(&["init", "--ci=none"]).success());
    let remedy = "cargo infergate init --from https://github.com/infergate/infergate";
    assert!(shown.contains(remedy), "{shown}");
    let with_path = files(&sandbox);
    assert!(with_path["Cargo.toml"].contains("infergate = { path = \""), "{}", with_path["Cargo.toml"]);
    sandbox.run(&["init", "--ci=none", "--from=https://example.com/it"]).success();
    let mut expected = with_path;
    let line = |text: &str| text.lines().find(|line| line.starts_with("infergate =")).expect("a line").to_owned();
    let manifest = expected.get_mut("Cargo.toml").expect("a manifest");
    *manifest = manifest.replace(&line(manifest), "infergate = { git = \"https://example.com/it\" }");
    assert_eq!(files(&sandbox), expected);
    let shown = stdout(&sandbox.run(&["init", "--ci=none", "--from=9.8.7"]).success());
    assert!(shown.contains("--from changes nothing"), "{shown}");
    assert_eq!(files(&sandbox), expected);
}

/// What cargo reads of the manifest: names of dependencies, and of bench targets.
fn as_cargo_reads_it(sandbox: &Sandbox) -> (Vec<String>, Vec<String>) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(sandbox.path(""));
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let package = serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["packages"][0].clone();
    let names = |list: &Value, wanted: &dyn Fn(&Value) -> bool| {
        let list = list.as_array().into_iter().flatten().filter(|one| wanted(one));
        let mut names: Vec<String> = list.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    (names(&package["dependencies"], &|_| true), names(&package["targets"], &|target| target["kind"][0] == "bench"))
}

/// A manifest can be written in many ways.
#[test]
fn what_cargo_reads_is_added_to_however_it_is_written() {
    const PACKAGE: &str = "[package]\nname = 'mine'\nversion = '0.1.0'\nedition = '2021'\n";
    for (before, after, line) in [
        (
            "dev-dependencies = { tempfile = '3' } # for tests\n",
            "",
            "dev-dependencies = { anyhow = \"1\", infergate = \"9.8.7\", tempfile = '3' } # for tests",
        ),
        ("dev-dependencies.tempfile = '3' # for tests\n", "", "dev-dependencies.infergate = \"9.8.7\""),
        ("", "[dev-dependencies.tempfile] # for tests\nversion = '3'\n", "[dev-dependencies]"),
        ("", "[ dev-dependencies ] # for tests\ntempfile = '3'\n", "infergate = \"9.8.7\""),
        ("", "['dev-dependencies'] # for tests\n\ntempfile = '3'\n", "infergate = \"9.8.7\""),
        ("", "[dev_dependencies] # for tests\ntempfile = '3'\n", "infergate = \"9.8.7\""),
        ("", "[dev-dependencies] # for tests\ntempfile.version = '3'\n", "infergate = \"9.8.7\""),
        ("", "[dev-dependencies] # for tests\r\ntempfile = '3'\r\n\r\n[features]\r\n", "infergate = \"9.8.7\""),
        ("", "[target.'cfg(all())'.dev-dependencies] # for tests\ntempfile = '3'\n", "[dev-dependencies]"),
        (
            "",
            "[dependencies.infergate] # for tests\npath = '.'\n[dependencies]\nanyhow = '1'\ntempfile = '3'",
            "path = '.'",
        ),
        (
            "",
            "[dependencies] # for tests\nanyhow = { version = '1', optional = true }\ntempfile = '3'\n",
            "anyhow = \"1\"",
        ),
        (
            "bench = [{ name = 'sorting', harness = false }] # for tests\n",
            "[dev-dependencies]\ntempfile = '3'\n",
            "bench = [{ name = 'sorting', harness = false }, { name = \"inference\", harness = false }, { name = \"memory\", harness = false }] # for tests",
        ),
        (
            "bench = [\n    # for tests\n    { name = 'sorting', harness = false },\n]\n",
            "[dev-dependencies]\ntempfile = '3'\n",
            "    # for tests",
        ),
    ] {
        let mut manifest = format!("# mine\n{before}{PACKAGE}{after}");
        let is_crlf = manifest.contains('\r');
        if is_crlf {
            manifest = manifest.replace('\r', "").replace('\n', "\r\n");
        }
        let sandbox = package(&manifest);
        sandbox.write("benches/sorting.rs", "fn main() {}\n");
        let shown = stdout(&sandbox.run(&["init", "--ci=none", "--from=9.8.7"]).success());
        let grown = files(&sandbox)["Cargo.toml"].clone();
        assert!(grown.lines().next() == Some("# mine") && grown.contains("# for tests"), "{grown}");
        assert!(grown.lines().any(|known| known == line), "{line}\n{grown}");
        let line_ends = if is_crlf { grown.matches('\n').count() } else { 0 };
        assert_eq!(grown.matches("\r\n").count(), line_ends, "{grown:?}");
        assert!(shown.contains("+ name = \"memory\"") || before.starts_with("bench"), "{shown}");
        let (dependencies, benches) = as_cargo_reads_it(&sandbox);
        let mut known = vec!["anyhow", "infergate", "tempfile"];
        known.extend(grown.contains("optional").then_some("anyhow"));
        known.sort_unstable();
        assert_eq!(dependencies, known, "{grown}");
        assert_eq!(benches, ["inference", "memory", "sorting"], "{grown}");
        let again = stdout(&sandbox.run(&["init", "--ci=none"]).success());
        assert!(again.contains("Cargo.toml: as it is"), "{again}");
        assert_eq!(files(&sandbox)["Cargo.toml"], grown);
    }
}

#[test]
fn an_empty_file_is_there_and_gets_its_lines() {
    let sandbox = package(MANIFEST);
    sandbox.write(".gitignore", "");
    let shown = stdout(&sandbox.run(&["init"]).success());
    assert!(shown.contains(".gitignore: lines added"), "{shown}");
    assert_eq!(files(&sandbox)[".gitignore"], "/target\n");
    let again = stdout(&sandbox.run(&["init"]).success());
    assert!(!again.contains("lines added") && !again.contains('+'), "{again}");
}

#[test]
fn a_member_of_a_workspace_has_its_workflow_at_the_root() {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", "[workspace]\nmembers = ['engines/mine']\n");
    sandbox.write("engines/mine/Cargo.toml", MANIFEST);
    sandbox.write("engines/mine/src/lib.rs", "");
    let line = error(sandbox.run(&["init"]));
    assert!(line.contains("has no package; run init in the folder of the package"), "{line}");
    let mut process = sandbox.process(&["init"]);
    process.current_dir(sandbox.path("engines/mine"));
    assert!(process.status().expect("it starts").success());
    let workflow = fs::read_to_string(sandbox.path(".github/workflows/infergate.yml")).expect("a workflow");
    assert!(workflow.contains("          working-directory: 'engines/mine'\n"), "{workflow}");
    assert!(sandbox.path("engines/mine/benches/inference.rs").is_file());

    // Another package has to be named there, too.
    for (folder, job, says) in [
        ("engines/mine", "", false),
        ("engines/mine/own", "gate-engines-mine-own", true),
        ("engines", "gate-engines", true),
    ] {
        sandbox.write(&format!("{folder}/Cargo.toml"), MANIFEST);
        let mut process = sandbox.process(&["init", "--dry-run"]);
        process.current_dir(sandbox.path(folder));
        let shown = stdout(&assert_cmd::Command::from_std(process).assert().success());
        let note = format!("infergate.yml does not gate {folder}; add this job to it:\n  {job}:\n");
        let end = format!("          working-directory: '{folder}'\n          artifact-name: {job}\n");
        assert_eq!(shown.contains(&note) && shown.contains(&end), says, "{folder}: {shown}");
    }
}

/// What is imported in edition 2015 is declared first.
#[test]
fn a_package_of_edition_2015_declares_the_crates_of_its_benches() {
    for (edition, declares) in [("", true), ("edition = '2015'", true), ("edition = '2018'", false)] {
        let sandbox = package(&format!("[package]\nname = 'mine'\nversion = '0.1.0'\n{edition}\n"));
        sandbox.run(&["init"]).success();
        for bench in ["inference", "memory"] {
            let text = files(&sandbox)[&format!("benches/{bench}.rs")].clone();
            let declared = "\n\nextern crate anyhow;\nextern crate infergate;\n\nmod engine;\n\n";
            assert_eq!(text.contains(declared), declares, "{edition}: {text}");
        }
        // Cargo goes on finding those that are not named.
        sandbox.write("benches/sorting.rs", "fn main() {}\n");
        assert_eq!(as_cargo_reads_it(&sandbox).1, ["inference", "memory", "sorting"], "{edition}");
    }
}

/// A branch would be another program tomorrow.
#[test]
fn what_a_ci_runs_stays_what_it_is() {
    let mut revisions = Vec::new();
    for (ci, pins) in [
        (
            "github",
            vec![
                (".github/workflows/infergate.yml", "        uses: infergate/infergate@"),
                (".github/workflows/infergate-comment.yml", "        uses: infergate/infergate/comment@"),
            ],
        ),
        ("gitlab", vec![(".gitlab-ci.yml", "    GATE_REVISION: ")]),
    ] {
        let sandbox = package(MANIFEST);
        sandbox.run(&["init", "--ci", ci]).success();
        let made = files(&sandbox);
        assert_eq!(made.keys().any(|name| name.starts_with(".github")), ci == "github", "{ci}");
        for (name, pin) in pins {
            let revision = made[name].lines().find_map(|line| line.strip_prefix(pin)).expect("it is pinned");
            revisions.push(revision.trim_matches('"').to_owned());
            assert!(!made[name].contains("FOLDER") && !made[name].contains(&"0".repeat(40)), "{}", made[name]);
        }
    }
    let is_commit = |text: &str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // The tag is for a build that knows no commit.
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    assert!(revisions.iter().all(|revision| *revision == revisions[0]), "{revisions:?}");
    assert!(is_commit(&revisions[0]) || revisions[0] == tag, "{revisions:?}");

    let sandbox = package(MANIFEST);
    sandbox.run(&["init", "--ci", "none"]).success();
    assert!(!files(&sandbox).keys().any(|name| name.starts_with(".git") && name != ".gitignore"));
}

/// The comment would speak of a gate that it knows nothing of.
#[test]
fn who_has_a_workflow_of_that_name_gets_none_of_the_others() {
    let sandbox = package(MANIFEST);
    sandbox.write(".github/workflows/infergate.yml", "name: mine\n");
    sandbox.run(&["init"]).success();
    assert!(!sandbox.path(".github/workflows/infergate-comment.yml").exists());
    sandbox.write(".gitlab-ci.yml", "mine:\n  script: make\n");
    let shown = stdout(&sandbox.run(&["init", "--ci", "gitlab"]).success());
    assert!(shown.contains(".gitlab-ci.yml does not run the gate; add this job to it:\n# Compares"), "{shown}");
    assert!(shown.contains("\n    - cd '.'\n") && !shown.contains("FOLDER"), "{shown}");
    assert_eq!(files(&sandbox)[".gitlab-ci.yml"], "mine:\n  script: make\n");
}

/// `init` in a package in this folder of a repository.
#[cfg(unix)]
fn init_in(folder: &str, ci: &str) -> (Sandbox, assert_cmd::assert::Assert) {
    let sandbox = empty_repository();
    sandbox.write(&format!("{folder}/Cargo.toml"), MANIFEST);
    let mut process = sandbox.process(&["init", "--ci", ci]);
    process.current_dir(sandbox.path(folder));
    (sandbox, assert_cmd::Command::from_std(process).assert())
}

/// Each means something else to YAML.
#[cfg(unix)]
#[test]
fn a_workflow_names_a_folder_as_it_is_called() {
    for (folder, line) in [
        ("a: b", "'a: b'"),
        ("x #1", "'x #1'"),
        ("it's/*mine", "'it''s/*mine'"),
        ("true", "'true'"),
        ("a\\nb", "'a\\nb'"),
    ] {
        let (sandbox, said) = init_in(folder, "github");
        said.success();
        let workflow = fs::read_to_string(sandbox.path(".github/workflows/infergate.yml")).expect("a workflow");
        assert!(workflow.contains(&format!("          working-directory: {line}\n")), "{folder}: {workflow}");
    }
    for folder in ["${{ secrets.TOKEN }}", "two\nlines", "bell\u{7}"] {
        let (sandbox, said) = init_in(folder, "github");
        let before = files(&sandbox);
        let line = error(said);
        assert!(line.contains("the workflow cannot name a folder with ${{ or a control character"), "{line}");
        assert_eq!(before.keys().map(String::as_str).collect::<Vec<_>>(), [&*format!("{folder}/Cargo.toml")]);
    }
}

/// GitLab reads variables and patterns in the names of folders, and a shell reads them, too.
#[cfg(unix)]
#[test]
fn gitlab_is_told_a_folder_that_nothing_else_is_read_in() {
    let (sandbox, said) = init_in("engines/my own", "gitlab");
    said.success();
    let job = fs::read_to_string(sandbox.path(".gitlab-ci.yml")).expect("a job");
    for line in ["    - cd 'engines/my own'\n", "      - engines/my own/target/gate\n"] {
        assert!(job.contains(line), "{job}");
    }
    for folder in ["$HOME", "a*", "it's", "-x", "a: b", "x #1"] {
        let line = error(init_in(folder, "gitlab").1);
        assert!(line.contains(".gitlab-ci.yml can name a folder of letters"), "{folder}: {line}");
    }
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_written() {
    let taken = package(MANIFEST);
    taken.write("benches/inference.rs", "fn main() { println!(\"mine\") }\n");
    let before = files(&taken);
    let line = error(taken.run(&["init"]));
    assert!(line.contains("benches/inference.rs: is another bench already"), "{line}");
    assert_eq!(files(&taken), before);
    let module = package(MANIFEST);
    module.write("benches/engine.rs", "");
    let line = error(module.run(&["init"]));
    assert!(line.contains("benches/engine.rs: is a module `engine` already"), "{line}");

    // A target of ours may lie elsewhere.
    for (text, is_ours) in [("infergate::bench::memory_main(&load)", true), ("mine()", false)] {
        let elsewhere =
            package(&format!("{MANIFEST}\n[[bench]]\nname = 'memory'\npath = 'heap.rs'\nharness = false\n"));
        elsewhere.write("heap.rs", text);
        if is_ours {
            elsewhere.run(&["init"]).success();
            assert!(!elsewhere.path("benches/memory.rs").exists());
        } else {
            let line = error(elsewhere.run(&["init"]));
            assert!(line.contains("heap.rs: is another bench already"), "{line}");
        }
    }
    for (manifest, said) in [
        ("[package\n", "Cargo.toml: not TOML"),
        ("[workspace]\n", "has no package"),
        ("dev-dependencies = 3\n[package]\nname = 'mine'\n", "dev-dependencies cannot be added to: it is no table"),
        ("bench = { name = 'a' }\n[package]\nname = 'mine'\n", "bench is no list of targets"),
        ("[package]\nname = 'mine'\n[[bench]]\nname = 'memory'\n", "the bench target memory has no `harness = false`"),
    ] {
        let broken = package(manifest);
        let before = files(&broken);
        let line = error(broken.run(&["init", "--from", "1.0.0"]));
        assert!(line.contains(said), "{manifest}: {line}");
        assert_eq!(files(&broken), before);
    }
    let sound = package(MANIFEST);
    let before = files(&sound);
    for from in ["", "../no-such-folder"] {
        let line = error(sound.run(&["init", "--from", from]));
        assert!(line.contains("is no folder, URL or version"), "{line}");
        assert_eq!(files(&sound), before);
    }
    let empty = Sandbox::new();
    assert!(error(empty.run(&["init"])).contains("there is no Cargo.toml in this folder"));
}
