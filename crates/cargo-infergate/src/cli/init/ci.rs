//! The CI's files. They pin infergate at the commit of this command: a branch would be another program tomorrow.

use anyhow::{Context, Result, ensure};

use infergate_build::git::{commit_of, prefix};
use infergate_build::origin::{Origin, origin};

/// The placeholder for the commit in the templates. It looks like a commit, so that linters accept the templates.
const COMMIT: &str = "0000000000000000000000000000000000000000";
/// The placeholder for the package's folder.
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

/// Whether it runs infergate in the folder `below`, as the `filled` template does.
pub fn gates(text: &str, filled: &str, below: &str) -> bool {
    let line = filled.lines().find(|line| line.contains("working-directory: ") || line.contains("- cd "));
    is_own(text) && (below == "." || line.is_some_and(|line| text.contains(line)))
}

/// The template for a package in the folder `below` the repository's root, where changes are merged into `branch`.
pub fn fill(template: &str, below: &str, branch: &str) -> Result<String> {
    let text = match below {
        "." => template.replace(&format!("{FOLDER}/"), ""),
        _ => template.to_owned(),
    };
    let quoted = |name: &str| name.replace('\'', "''");
    let text = text.replace(FOLDER, &quoted(below)).replace(COMMIT, &commit()?);
    // A push to this branch keeps the build that pull requests are compared with.
    Ok(text.replace("[main, master]", &format!("['{}']", quoted(branch))))
}

/// The commit that this command was built from, or the tag of its release.
fn commit() -> Result<String> {
    let root = match origin().context("no commit to pin in the CI's files; give --ci none")? {
        Origin::Commit { commit, .. } => return Ok(commit),
        Origin::Registry => return Ok(concat!("v", env!("CARGO_PKG_VERSION")).into()),
        Origin::Folder(root) => root,
    };
    ensure!(
        prefix(&root).is_ok_and(|below| below.is_empty()),
        "{}: is no clone with a commit to pin in the CI's files; build infergate in one, or give --ci none",
        root.display()
    );
    commit_of(&root, "HEAD")
}
