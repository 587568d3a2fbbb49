//! `init`: a bench target, settings and a CI's files for the package in the current folder.
//!
//! What is there stays as it is: files are made, lines are added, nothing is overwritten. Running it again changes nothing.

mod ci;
mod manifest;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::files;
use crate::config::{current_folder, one_of};
use ci::CiFile;
use infergate_build::git::{git, prefix, root};
use infergate_build::origin::{Origin, origin};
use infergate_build::output;
use infergate_build::workspace::REPLACEMENTS;
use infergate_core::text_file::read_text;
use infergate_receipts::{ensure_writable, shell, write_text};
use infergate_report::model::Tone;
use infergate_report::terminal::{bold, paint};
use manifest::{Manifest, new_lines};

/// No file that is added to is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Add bench targets, settings and CI to a package
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo infergate init --dry-run\n  cargo infergate init\n  cargo infergate init --ci-only --ci gitlab"
)]
pub struct Init {
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write the CI's files alone [default where the benches are criterion's or divan's]
    #[arg(long, conflicts_with = "engine")]
    ci_only: bool,
    /// Add bench targets for an engine, also beside criterion's or divan's benches
    #[arg(long)]
    engine: bool,
    /// The CI that runs the gate on each pull request
    #[arg(
        long, value_name = "NAME", default_value = "github",
        value_parser = one_of([("github", &ci::GITHUB[..]), ("gitlab", &ci::GITLAB), ("none", &[])]),
    )]
    ci: &'static [CiFile],
}

/// Shows, then writes.
pub fn run(options: &Init) -> Result<i32> {
    let plan = plan(&current_folder()?, options)?;
    output::report(&plan.text(options.dry_run));
    if !options.dry_run {
        // All are checked before the first is written. The file that names the others comes last, so that a run that ends between two of
        // them leaves a package that builds, and another run adds what is missing.
        let changed = plan.files.iter().rev().filter(|file| !file.added.is_empty());
        changed.clone().try_for_each(|file| ensure_writable(&file.place))?;
        changed.into_iter().try_for_each(|file| write_text(&file.place, &file.text))?;
    }
    Ok(0)
}

/// A file that is made or added to.
struct File {
    path: &'static str,
    /// Its full path: below the package's folder, or, for the CI's files, below the repository's root.
    place: PathBuf,
    /// The lines that are added; empty if it has them already.
    added: String,
    /// Its full text afterwards.
    text: String,
}

impl File {
    /// A file that is made if it is missing.
    fn whole(path: &'static str, place: PathBuf, text: String) -> Self {
        let added = if files::is_there(&place) { String::new() } else { text.clone() };
        Self { path, place, added, text }
    }
}

/// The text of a file; `None` if it is missing.
fn read(path: &Path) -> Result<Option<String>> {
    files::is_there(path).then(|| read_text(path, MAX_FILE_BYTES)).transpose()
}

#[derive(Default)]
struct Plan {
    files: Vec<File>,
    notes: Vec<String>,
}

impl Plan {
    /// Every file with the lines that are added, and the notes.
    fn text(&self, dry_run: bool) -> String {
        let mut text = String::new();
        for file in &self.files {
            let what = match (files::is_there(&file.place), file.added.is_empty()) {
                (false, _) => "new",
                (true, false) => "lines added",
                (true, true) => "as it is",
            };
            text += &format!("{}\n", bold(&format!("{}: {what}", file.path)));
            for line in file.added.lines() {
                text += &format!("{}\n", paint(Tone::Good, &format!("+ {line}")));
            }
        }
        if dry_run {
            text += "\nnothing was written\n";
        }
        text + &self.notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
    }
}

fn plan(folder: &Path, options: &Init) -> Result<Plan> {
    let path = folder.join("Cargo.toml");
    let was = read(&path)?.context("there is no Cargo.toml in this folder; run init in the folder of your package")?;
    let manifest = Manifest::parse(&was)?;
    // The gate measures benches of these without changes.
    let has_benches =
        REPLACEMENTS.iter().any(|(name, _)| manifest.depends_on(name)) && !manifest.depends_on("infergate");
    let ci_only = options.ci_only || (has_benches && !options.engine);
    let mut plan = Plan::default();
    if !ci_only {
        ensure!(
            manifest.is_package(),
            "Cargo.toml: has no package; run init in the folder of the engine's package, or give --ci-only"
        );
        add_engine(folder, (path, &was, &manifest), &mut plan)?;
    }
    let mut branch = "main".to_owned();
    match root(folder) {
        Ok(root) => {
            branch = merged_into(folder);
            let below = prefix(folder)?;
            let below = if below.is_empty() { "." } else { below.trim_end_matches('/') };
            add_ci(options.ci, &root, (below, &branch), &mut plan)?;
        }
        Err(error) => plan.notes.push(format!("the gate and CI need a git repository (git init): {error}")),
    }
    let against = shell::flag("against", &branch).unwrap_or_else(|| " --against BRANCH".into());
    if plan.files.iter().any(|file| !file.added.is_empty()) {
        plan.notes.push(if ci_only {
            format!("next: cargo infergate gate{against}; for an engine: cargo infergate init --engine")
        } else {
            format!(
                "next: put your engine into benches/engine/mod.rs; then cargo bench, and: cargo infergate gate{against}"
            )
        });
    }
    Ok(plan)
}

/// Cargo.toml, the bench targets, an engine to fill in, and the settings.
fn add_engine(folder: &Path, (path, was, manifest): (PathBuf, &str, &Manifest), plan: &mut Plan) -> Result<()> {
    let origin = origin()?;
    if let Origin::Folder(root) = &origin
        && !manifest.depends_on("infergate")
    {
        plan.notes.push(format!(
            "Cargo.toml takes infergate from your clone {}; before you push, write infergate = {{ git = \"{}\" }}",
            root.display(),
            env!("CARGO_PKG_REPOSITORY")
        ));
    }
    let benches = [
        ("inference", "benches/inference.rs", include_str!("../../templates/init/inference.rs")),
        ("memory", "benches/memory.rs", include_str!("../../templates/init/memory.rs")),
    ];
    let text = manifest.with_engine(&origin.dependency(), &benches.map(|(name, ..)| name))?;
    plan.files.push(File { path: "Cargo.toml", place: path, added: new_lines(was, &text), text });
    let whole = |path: &'static str, text: &str| File::whole(path, folder.join(path), text.to_owned());
    // Whoever declared a bench target has its file, and an engine.
    let missing: Vec<_> = benches.into_iter().filter(|(name, ..)| !manifest.has_bench(name)).collect();
    for &(_, path, text) in &missing {
        let file = whole(path, text);
        let is_own = read(&file.place)?.is_none_or(|there| there.contains("infergate::bench"));
        ensure!(is_own, "{path}: is another bench already; rename it");
        plan.files.push(file);
    }
    if !missing.is_empty() {
        plan.files.push(whole("benches/engine/mod.rs", include_str!("../../templates/init/engine.rs")));
    }
    plan.files.push(whole("infergate.toml", include_str!("../../templates/init/infergate.toml")));
    Ok(())
}

/// The branch that changes are merged into: that of origin, else main or master, else the current one.
fn merged_into(folder: &Path) -> String {
    let named = |of: &str| git(folder, &["symbolic-ref", "--quiet", "--short", of]).ok();
    let of_origin = named("refs/remotes/origin/HEAD").and_then(|name| name.strip_prefix("origin/").map(str::to_owned));
    let is_there =
        |name: &&str| git(folder, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")]).is_ok();
    let usual = || ["main", "master"].into_iter().find(is_there).map(str::to_owned);
    of_origin.or_else(usual).or_else(|| named("HEAD")).unwrap_or_else(|| "main".into())
}

/// Adds the files of a CI; the first one runs the gate. If that exists and does not run infergate, the others are not added: they need its
/// results. If it does not gate this package, a note has a job to copy.
fn add_ci(wanted: &[CiFile], root: &Path, (below, branch): (&str, &str), plan: &mut Plan) -> Result<()> {
    let Some((first, _)) = wanted.first() else { return Ok(()) };
    let there = read(&root.join(first))?;
    let is_foreign = there.as_ref().is_some_and(|there| !ci::is_own(there));
    for &(path, template) in wanted {
        let place = root.join(path);
        let text = ci::fill(template, below, branch)?;
        if path == *first && there.as_ref().is_some_and(|there| !ci::gates(there, &text, below)) {
            let job = text.split_once("\njobs:\n").map_or(&*text, |(_, jobs)| jobs);
            plan.notes.push(format!("{path} does not gate {below}; add this job to it, by a name of its own:\n{job}"));
        }
        if !is_foreign || files::is_there(&place) {
            plan.files.push(File::whole(path, place, text));
        }
    }
    Ok(())
}
