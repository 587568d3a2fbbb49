//! The files of reports: which are written, and where.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::outputs;
use infergate_build::output;
use infergate_receipts::write_text;
use infergate_report::export::{EXPORTERS, Exporter, File, chosen};
use infergate_report::inputs::{Inputs, Links};
use infergate_report::topics;
use infergate_report::units::many;
use infergate_report::verdict_file::verdict_file;

/// Empties the folder of `--report` of the pages of an earlier run: a comment that says "pass" must not outlive a gate that
/// failed to run.
pub fn begin(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let mut usual = EXPORTERS.iter().filter_map(Exporter::usual_file);
    usual.try_for_each(|name| outputs::remove_previous(&folder.join(name)))
}

/// Report inputs without files: program name and CI links.
pub fn inputs() -> Inputs {
    Inputs { links: links(), ..Inputs::new(output::named("cargo xtask")) }
}

/// The web addresses of repository and run, from the environment that GitHub and GitLab give their jobs.
fn links() -> Option<Links> {
    let is_of_address = |c: char| c.is_ascii_alphanumeric() || "-._/:".contains(c);
    let var = |name| std::env::var(name).ok().filter(|value| value.chars().all(is_of_address));
    if let Some(repository) = var("GITHUB_REPOSITORY") {
        let repository = format!("{}/{repository}", var("GITHUB_SERVER_URL")?);
        let run = format!("{repository}/actions/runs/{}", var("GITHUB_RUN_ID")?);
        return Some(Links { files: format!("{run}#artifacts"), repository, run });
    }
    let (project, run) = (var("CI_PROJECT_URL")?, var("CI_JOB_URL")?);
    Some(Links { repository: format!("{project}/-"), files: format!("{run}/artifacts/browse"), run })
}

/// Writes the verdict of `inputs` to `json`, with its comment, and the usual report into `folder`, each if requested. Gives the exit code.
pub fn conclude(inputs: &Inputs, json: Option<&Path>, folder: Option<&Path>) -> i32 {
    let Some(verdict) = &inputs.verdict else { return 0 };
    outputs::json(json, &verdict_file(verdict, inputs));
    if let Some(folder) = folder {
        outputs::is_written(write(folder, inputs, &[], &[]));
    }
    verdict.exit_code
}

/// Writes the files of these formats, each as a whole.
///
/// # Errors
/// An unknown format, a format that lacks its input, or a file that the report is made from: then nothing is written. The first file that
/// cannot be written, after all others were.
pub fn write(folder: &Path, inputs: &Inputs, formats: &[String], read: &[PathBuf]) -> Result<()> {
    let report = topics::report(inputs);
    let exported = chosen(formats, inputs)?.into_iter().map(|exporter| exporter.files(inputs, &report));
    let mut files: Vec<File> = exported.collect::<Result<Vec<_>>>()?.concat();
    // A page brings the pictures that it shows, which may be requested, too.
    let mut names = HashSet::new();
    files.retain(|file| names.insert(file.name.clone()));
    for file in &files {
        let path = folder.join(&file.name);
        ensure!(
            !read.iter().any(|read| outputs::same_file(&path, read)),
            "{}: is what the report is made from; name another place to write to",
            path.display()
        );
    }
    let (mut written, mut failed) = (Vec::<String>::new(), None);
    for File { name, text } in files {
        match write_text(&folder.join(&name), &text) {
            Ok(()) => written.push(name),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let (pictures, mut shown): (Vec<String>, Vec<String>) = written.into_iter().partition(|name| name.contains('/'));
    shown.extend((!pictures.is_empty()).then(|| many(pictures.len(), "picture")));
    if !shown.is_empty() {
        output::status_escaped(&format!("report: {} ({})", folder.display(), shown.join(", ")));
    }
    failed.map_or(Ok(()), Err)
}
