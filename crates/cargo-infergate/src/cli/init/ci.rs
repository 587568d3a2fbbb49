//! The CI's files. They pin infergate at the commit of this command: a branch would be another program tomorrow.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::outputs;
use infergate_build::criterion_front::own_source;
use infergate_build::git::{commit_of, git};

/// What stands for the commit in the templates. It looks like one, so that linters read them as they are.
const COMMIT: &str = "0000000000000000000000000000000000000000";
/// What stands for the package's folder.
const FOLDER: &str = "FOLDER";

/// A file's path below the repository's root, and its template.
pub type CiFile = (&'static str, &'static str);

/// The files that each CI reads, the one that runs the gate first.
pub const GITHUB: [CiFile; 2] = [
    (".github/workflows/infergate.yml", include_str!("../../../templates/init/infergate.yml")),
    (".github/workflows/infergate-comment.yml", include_str!("../../../templates/init/infergate-comment.yml")),
];
pub const GITLAB: [CiFile; 1] = [(".gitlab-ci.yml", include_str!("../../../templates/init/gitlab-ci.yml"))];

/// Whether the text of a CI's file runs infergate.
pub fn is_own(text: &str) -> bool {
    text.contains("infergate/infergate")
}

/// Whether it does so in the folder `below`, as the `filled` template names it.
pub fn gates(text: &str, filled: &str, below: &str) -> bool {
    let line = filled.lines().find(|line| line.contains("working-directory: ") || line.contains("- cd "));
    is_own(text) && (below == "." || line.is_some_and(|line| text.contains(line)))
}

/// The template for a package in the folder `below` the repository's root, where changes are merged into `branch`.
pub fn fill(template: &str, below: &str, branch: &str) -> String {
    let text = match below {
        "." => template.replace(&format!("{FOLDER}/"), ""),
        _ => template.to_owned(),
    };
    let text = text.replace(FOLDER, &below.replace('\'', "''")).replace(COMMIT, &commit());
    // A push to this branch keeps the build that pull requests are compared with.
    if ["main", "master"].contains(&branch) {
        text
    } else {
        text.replace("branches: [main, master]", &format!("branches: ['{}']", branch.replace('\'', "''")))
    }
}

/// The address and the commit that `cargo install --git` built this command from, as cargo wrote them down beside it.
pub fn installed_from() -> Option<(String, String)> {
    let command = env::current_exe().ok()?;
    let text = fs::read_to_string(command.parent()?.parent()?.join(".crates2.json")).ok()?;
    let list: serde_json::Value = serde_json::from_str(&text).ok()?;
    list["installs"].as_object()?.keys().find_map(|key| {
        let source = key.strip_prefix("cargo-infergate ")?.split_once("(git+")?.1.strip_suffix(')')?;
        let (address, commit) = source.split_once('#')?;
        Some((address.split('?').next()?.to_owned(), commit.to_owned()))
    })
}

/// The commit that this command was built from; where that is not known, the tag of its release.
fn commit() -> String {
    let given = option_env!("INFERGATE_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned);
    let installed = || installed_from().map(|(_, commit)| commit);
    let known = given.or_else(installed).or_else(of_checkout);
    known.unwrap_or_else(|| concat!("v", env!("CARGO_PKG_VERSION")).into())
}

/// Of the clone that this command was built in.
fn of_checkout() -> Option<String> {
    let top = |root: &Path| git(root, &["rev-parse", "--show-toplevel"]).ok().map(PathBuf::from);
    let root = own_source().filter(|root| top(root).is_some_and(|top| outputs::same_file(&top, root)))?;
    commit_of(&root, "HEAD").ok()
}
