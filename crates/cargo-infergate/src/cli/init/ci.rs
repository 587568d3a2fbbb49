//! What a CI is told: files that gate each pull request. They name one revision of infergate, that of this command: a branch would
//! be another program tomorrow.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use infergate_core::printable::printable;

use crate::builds::criterion_front::own_source;
use crate::cli::git::{commit_of, git};
use crate::cli::outputs;

/// What stands for the revision in the templates. It looks like one, so that linters read them as they are.
const REVISION: &str = "0000000000000000000000000000000000000000";
/// What stands for the package's folder.
const FOLDER: &str = "FOLDER";

/// Those that the templates name.
const USUAL_BRANCHES: [&str; 2] = ["main", "master"];

/// A file's path below the repository's root, and its template.
pub type CiFile = (&'static str, &'static str);

/// The files that each CI reads, the one that runs the gate first.
pub const GITHUB: [CiFile; 2] = [
    (".github/workflows/infergate.yml", include_str!("../../../templates/init/infergate.yml")),
    (".github/workflows/infergate-comment.yml", include_str!("../../../templates/init/infergate-comment.yml")),
];
pub const GITLAB: [CiFile; 1] = [(".gitlab-ci.yml", include_str!("../../../templates/init/gitlab-ci.yml"))];

/// What to do where there is a file of this name, with `text`, that does not gate a package in the folder `below`: the job for that.
pub fn advice((path, template): CiFile, text: &str, below: &str) -> Result<Option<String>> {
    let is_gitlab = path == GITLAB[0].0;
    let (step, enters) = if is_gitlab { ("gate/run.sh", "cd ") } else { ("uses: ", "working-directory:") };
    let is_root = below == "." && !text.contains(enters);
    if (!is_gitlab && path != GITHUB[0].0) || (text.contains(step) && (is_root || names(text, below))) {
        return Ok(None);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let suffix = if below == "." { String::new() } else { format!("-{}", below.replace(|c| !is_plain(c), "-")) };
    let job = fill((path, template), below)?;
    let job = match job.split_once("jobs:\n  gate:\n    name: gate\n") {
        Some((_, job)) => {
            format!("  gate{suffix}:\n    name: gate{suffix}\n{job}          artifact-name: gate{suffix}\n")
        }
        None => job.replacen("\ninfergate:\n", &format!("\ninfergate{suffix}:\n"), 1),
    };
    let what = match below {
        _ if !text.contains(step) => "run the gate".to_owned(),
        "." => "gate the package at the root".to_owned(),
        _ => format!("gate {below}"),
    };
    Ok(Some(format!("{path} does not {what}; add this job to it:\n{job}")))
}

/// Whether `text` has the path of this folder, and not as a part of another one's.
fn names(text: &str, folder: &str) -> bool {
    let is_of_path = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let folder = folder.replace('\'', "''");
    text.match_indices(&folder).any(|(at, _)| {
        let before = text[..at].trim_end_matches("./");
        let after = &text[at + folder.len()..];
        let after = after.strip_prefix('/').unwrap_or(after);
        !before.ends_with(|c: char| is_of_path(c) || c == '/') && !after.starts_with(is_of_path)
    })
}

/// The file of a package in the folder `below` the repository's root.
pub fn fill((path, template): CiFile, below: &str) -> Result<String> {
    let is_gitlab = path == GITLAB[0].0;
    // Both evaluate expressions inside quotes, too; and quotes do not keep line ends.
    if below.contains("${{") || printable(below) != below {
        bail!("{below}: the workflow cannot name a folder with ${{{{ or a control character in its path; rename it");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/ ".contains(c);
    ensure!(
        !is_gitlab || (below.chars().all(is_plain) && !below.starts_with('-')),
        "{below}: {path} can name a folder of letters, digits, spaces, dots, underscores and hyphens; rename it, or see --ci none"
    );
    let template = match below {
        "." if is_gitlab => template.replace(&format!("{FOLDER}/"), ""),
        _ => template.to_owned(),
    };
    Ok(template.replace(REVISION, &revision()).replace(FOLDER, &below.replace('\'', "''")))
}

/// The file where changes are merged into `branch`: pushes to it keep the build that they are compared with.
pub fn of_branch(text: String, branch: &str) -> String {
    if USUAL_BRANCHES.contains(&branch) {
        return text;
    }
    text.replace("branches: [main, master]", &format!("branches: ['{}']", branch.replace('\'', "''")))
}

/// The commit that this command was built from; where that is not known, the tag of its release.
fn revision() -> String {
    let given = option_env!("INFERGATE_COMMIT").and_then(commit);
    given.or_else(of_checkout).or_else(of_package).unwrap_or_else(|| concat!("v", env!("CARGO_PKG_VERSION")).into())
}

/// `text`, where it is a commit's name in full.
fn commit(text: &str) -> Option<String> {
    let is_one = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_owned())
}

/// Of the clone that this command was built in.
fn of_checkout() -> Option<String> {
    let top = |root: &Path| git(root, &["rev-parse", "--show-toplevel"]).ok().map(PathBuf::from);
    let root = own_source().filter(|root| top(root).is_some_and(|top| outputs::same_file(&top, root)))?;
    commit_of(&root, "HEAD").ok()
}

/// Of the package that it was built of: `cargo publish` writes it down there.
fn of_package() -> Option<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo_vcs_info.json")).ok()?;
    let info: serde_json::Value = serde_json::from_str(&text).ok()?;
    info["git"]["sha1"].as_str().and_then(commit)
}
