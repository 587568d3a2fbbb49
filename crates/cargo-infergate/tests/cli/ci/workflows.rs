//! Every workflow and action of this repository, and those that `init` writes: what they run is pinned, and nothing that somebody
//! else says becomes a part of a script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::ci::place::root;
use crate::ci::yaml::{parse, text};

/// The templates name infergate's own actions by this.
const NO_COMMIT: &str = "0000000000000000000000000000000000000000";
const TEMPLATES: &str = "crates/cargo-infergate/templates/init";

/// Paths below the repository's root, and what is there.
fn all() -> Vec<(String, String)> {
    let mut names = vec!["action.yml".to_owned(), "comment/action.yml".to_owned()];
    for folder in [".github", ".github/workflows", TEMPLATES] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        let names_there = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let is_yaml = |name: &String| Path::new(name).extension().is_some_and(|end| end == "yml" || end == "yaml");
        names.extend(names_there.filter(is_yaml).map(|name| format!("{folder}/{name}")));
    }
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(root().join(name)).expect("text"))).collect()
}

fn is_workflow(yaml: &Value) -> bool {
    !yaml["jobs"].is_null()
}

/// What each key called `wanted` has, wherever it stands.
fn every<'y>(yaml: &'y Value, wanted: &str, found: &mut Vec<&'y Value>) {
    for (key, value) in yaml.as_object().into_iter().flatten() {
        if key == wanted && value.is_string() {
            found.push(value);
        }
        every(value, wanted, found);
    }
    for value in yaml.as_array().into_iter().flatten() {
        every(value, wanted, found);
    }
}

fn found<'y>(yaml: &'y Value, wanted: &str) -> Vec<&'y Value> {
    let mut found = Vec::new();
    every(yaml, wanted, &mut found);
    found
}

/// A commit that is pinned here is pinned everywhere, also in the files that `init` writes, which no bot looks at.
#[test]
fn what_they_use_is_pinned_by_commit_and_they_say_what_they_may_do() {
    let mut pinned: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, file) in all() {
        let yaml = parse(&name, &file);
        assert!(!is_workflow(&yaml) || !yaml["permissions"].is_null(), "{name}: says nothing of permissions");
        for uses in found(&yaml, "uses").into_iter().map(text) {
            // Of the same checkout.
            if ["./", "./comment"].contains(&&*uses) && name.starts_with(".github/") {
                continue;
            }
            let (action, commit) = uses.split_once('@').unwrap_or_else(|| panic!("{name}: {uses}: has no commit"));
            let is_full = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_full, "{name}: {uses}: is no full commit");
            if action.starts_with("infergate/") {
                assert!(name.starts_with(TEMPLATES) && commit == NO_COMMIT, "{name}: {uses}");
                continue;
            }
            let version = file.lines().find_map(|line| line.split_once(&*uses)?.1.strip_prefix(" # v"));
            let version = version.unwrap_or_else(|| panic!("{name}: {uses}: has no version"));
            let folder = action.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
            pinned.entry(folder).or_default().insert(format!("{commit} {version}"));
        }
    }
    assert!(pinned.contains_key("actions/checkout") && pinned.contains_key("actions/cache"), "{pinned:?}");
    assert!(pinned.values().all(|commits| commits.len() == 1), "{pinned:?}");
}

/// GitHub puts what an expression says into the script before a shell reads it. What is said comes by a variable.
#[test]
fn no_script_has_an_expression_in_it() {
    let mut count = 0;
    for (name, file) in all() {
        let yaml = parse(&name, &file);
        for script in found(&yaml, "run").into_iter().map(text) {
            assert!(!script.contains("${{"), "{name}: {script}");
            count += 1;
        }
    }
    assert!(count > 20, "only {count} scripts were found");
}

/// A run of a pull request's code has no secret and no token that can write; what may write checks nothing of it out.
#[test]
fn what_runs_a_pull_requests_code_can_only_read() {
    for (name, file) in all().into_iter().filter(|(name, _)| !name.ends_with("release.yml")) {
        let yaml = parse(&name, &file);
        if !is_workflow(&yaml) {
            continue;
        }
        assert!(!file.contains("${{ secrets") && !file.contains("pull_request_target"), "{name}");
        let on_completion = !yaml["on"]["workflow_run"].is_null();
        let writes =
            file.lines().any(|line| line.trim_start().split_once(": ").is_some_and(|(_, to)| to.starts_with("write")));
        assert_eq!(writes, on_completion, "{name}");
        let checkouts = found(&yaml, "ref").into_iter().map(text);
        for checkout in checkouts.filter(|_| on_completion) {
            assert_eq!(checkout, "${{ github.event.repository.default_branch }}", "{name}");
        }
    }
}

/// Each comments on what the other one keeps.
#[test]
fn the_comment_follows_the_gate() {
    for (gate, comment) in [("bench.yml", "comment.yml"), ("infergate.yml", "infergate-comment.yml")] {
        let of = |name: &str| {
            let all = all();
            let (path, file) = all.iter().find(|(path, _)| path.ends_with(&format!("/{name}"))).expect("a workflow");
            parse(path, file)
        };
        let (gate, comment) = (of(gate), of(comment));
        let waited = comment["on"]["workflow_run"]["workflows"][0].as_str().expect("a workflow");
        assert_eq!(gate["name"].as_str(), Some(waited));
    }
    let action = parse("action.yml", &fs::read_to_string(root().join("action.yml")).expect("an action"));
    let fetch = fs::read_to_string(root().join("comment/fetch.sh")).expect("a script");
    let kept = action["inputs"]["artifact-name"]["default"].as_str().expect("a name");
    assert!(fetch.contains(&format!("artifacts?name={kept}&")), "{kept}");
}

/// The names that are said to others are those that are there.
#[test]
fn a_release_is_found_where_the_script_looks_for_it() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("text");
    let (install, release, archive) =
        (read("gate/install.sh"), read(".github/workflows/release.yml"), read(".ci/archive"));
    assert!(install.contains("name=cargo-infergate-$(target)\n") && archive.contains("name=cargo-infergate-$target\n"));
    assert!(install.contains("archive=$name.tar.gz\n") && archive.contains("\"$folder.tar.gz\" \"$name\""));
    assert!(
        install.contains("fetch \"$release/SHA256SUMS\"") && release.contains("sha256sum -- *.tar.gz | tee SHA256SUMS")
    );
    let targets = ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
    for target in targets.into_iter().chain(["x86_64-apple-darwin", "aarch64-apple-darwin"]) {
        assert!(release.contains(&format!("target: {target}\n")), "{target}");
        let (machine, libc) = target.rsplit_once('-').expect("a target");
        let is_named = install.contains(&format!("echo {target}")) || install.contains(&format!("{machine}-$libc"));
        assert!(is_named && (libc != "musl" || install.contains("libc=musl")), "{target}");
    }
    for file in ["gate/install.sh", "crates/cargo-infergate/templates/init/gitlab-ci.yml"] {
        assert!(read(file).contains(env!("CARGO_PKG_REPOSITORY")), "{file}");
    }
    // What `init` of such a command pins.
    assert!(archive.contains("export INFERGATE_COMMIT\n"), "{archive}");
}
