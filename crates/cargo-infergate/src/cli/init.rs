//! `init`: a bench target, settings and a CI's files for the package in the current folder.
//!
//! What is there stays as it is: files are made, lines are added, nothing is overwritten. Once more changes nothing.

mod ci;
mod manifest;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::criterion_front;
use super::flags::one_of;
use super::git::git;
use super::outputs::Files;
use super::{flags, output, outputs};
use crate::receipt::{INIT_SCHEMA, Init as Found, InitChange, InitFile, ensure_writable, write_new, write_text};
use crate::report::init;
use crate::report::words::command;
use ci::CiFile;
use infergate_core::text_file::read_text;
use manifest::{Manifest, new_lines};

/// No file that is added to is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Add bench targets and settings to a package
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo infergate init --dry-run\n  cargo infergate init\n  cargo infergate init --ci gitlab"
)]
pub struct Init {
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Where Cargo.toml takes infergate from [default: where this command was built from]
    #[arg(long, value_name = "PATH|URL|VERSION")]
    from: Option<String>,
    /// The CI that runs the gate on each pull request
    #[arg(long, value_name = "NAME", default_value = "github")]
    #[arg(value_parser = one_of([("github", &ci::GITHUB[..]), ("gitlab", &ci::GITLAB), ("none", &[])]))]
    ci: &'static [CiFile],
    /// Write what was done here; - is stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Shows, then writes.
pub fn run(asked: &Init) -> Result<i32> {
    Files { json: asked.json.as_ref(), ..Files::default() }.begin()?;
    let folder = env::current_dir().context("the current folder cannot be read")?;
    let from = Source::of(asked.from.as_deref())?;
    let plan = plan(&folder, &from, asked.ci)?;
    let dry_run = asked.dry_run;
    let found =
        Found { schema: INIT_SCHEMA, dry_run, files: plan.files.iter().map(File::record).collect(), notes: plan.notes };
    let texts = plan.files.iter().map(|file| (file.record(), file.added.as_str()));
    output::report(&init::text(&found, &texts.collect::<Vec<_>>()));
    if !dry_run {
        write(&plan.files)?;
    }
    if let Some(json) = &asked.json {
        outputs::put(json, &found)?;
    }
    Ok(0)
}

/// Where a package takes infergate from.
pub struct Source {
    /// The value of its dependency: `"0.1.0"`, `{ git = "..." }`.
    pub value: String,
    /// Whether the user named it.
    is_asked: bool,
    /// What to know of it.
    note: Option<String>,
}

impl Source {
    fn of(given: Option<&str>) -> Result<Self> {
        // A string of JSON is one of TOML.
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let value = match given {
            Some(url) if url.contains("://") => format!("{{ git = {} }}", text(url)),
            Some(path) if Path::new(path).is_dir() => format!("{{ path = {} }}", text(path)),
            Some(version) if version.starts_with(|c: char| c.is_ascii_digit() || "=^~".contains(c)) => text(version),
            Some(other) => bail!("--from '{other}': is no folder, URL or version; give one, for example 0.1.0"),
            None => match criterion_front::own_source() {
                Some(root) => {
                    let root = root.to_string_lossy().into_owned();
                    let note = format!(
                        "Cargo.toml takes infergate from {root}, where this command was built, and no other machine has that; before \
                         CI builds it: cargo infergate init --from {}",
                        env!("CARGO_PKG_REPOSITORY")
                    );
                    return Ok(Self {
                        value: format!("{{ path = {} }}", text(&root)),
                        is_asked: false,
                        note: Some(note),
                    });
                }
                None => text(env!("CARGO_PKG_VERSION")),
            },
        };
        Ok(Self { value, is_asked: given.is_some(), note: None })
    }
}

/// A file that is asked for.
struct File {
    path: &'static str,
    /// Where it lies, below the repository's root and not the package's folder where that differs.
    place: PathBuf,
    change: InitChange,
    /// The lines that come to it.
    added: String,
    /// What it is then.
    text: String,
}

impl File {
    fn record(&self) -> InitFile {
        InitFile { path: self.path.to_owned(), change: self.change }
    }

    /// One that is made where it is missing.
    fn whole(path: &'static str, place: PathBuf, text: String) -> Self {
        let there = flags::is_there(&place);
        let change = if there { InitChange::Kept } else { InitChange::New };
        Self { path, place, change, added: if there { String::new() } else { text.clone() }, text }
    }

    /// One that lines come to. An empty one is there, too.
    fn grown(path: &'static str, place: PathBuf, added: String, text: String) -> Self {
        let change = match (added.is_empty(), flags::is_there(&place)) {
            (true, _) => InitChange::Kept,
            (false, true) => InitChange::Added,
            (false, false) => InitChange::New,
        };
        Self { path, place, change, added, text }
    }
}

struct Plan {
    files: Vec<File>,
    notes: Vec<String>,
}

fn plan(folder: &Path, from: &Source, ci: &[CiFile]) -> Result<Plan> {
    let path = folder.join("Cargo.toml");
    ensure!(
        flags::is_there(&path),
        "there is no Cargo.toml in this folder; run init in the package that holds the engine"
    );
    let was = read_text(&path, MAX_FILE_BYTES)?;
    let manifest = Manifest::parse(&was)?;
    let text = manifest.with_benches(&from.value, from.is_asked)?;
    let in_folder = |path: &'static str, text: &str| File::whole(path, folder.join(path), text.to_owned());
    let mut files = vec![File::grown("Cargo.toml", path, new_lines(&was, &text), text)];
    for (name, path, text, call) in [
        ("inference", "benches/inference.rs", include_str!("../../templates/init/inference.rs"), "bench::main"),
        ("memory", "benches/memory.rs", include_str!("../../templates/init/memory.rs"), "memory_main"),
    ] {
        let calls = |place: &Path| read_text(place, MAX_FILE_BYTES).map(|text| text.contains(call));
        let remedy = "is another bench already; rename it, or write infergate's beside it and name that in infergate.toml under [bench]";
        if let Some(other) = manifest.path_of(name)?.filter(|other| Path::new(other) != Path::new(path)) {
            ensure!(calls(&folder.join(other))?, "{other}: {remedy}");
            continue;
        }
        let declared = text.replacen("mod engine;", "extern crate anyhow;\nextern crate infergate;\n\nmod engine;", 1);
        let file = in_folder(path, if manifest.is_of_2015() { &declared } else { text });
        ensure!(file.change == InitChange::New || calls(&file.place)?, "{path}: {remedy}");
        files.push(file);
    }
    // Whoever wrote the bench targets already has an engine.
    if files.iter().any(|file| file.change == InitChange::New) {
        let engine = in_folder("benches/engine/mod.rs", include_str!("../../templates/init/engine.rs"));
        ensure!(
            engine.change == InitChange::Kept || !flags::is_there(&folder.join("benches/engine.rs")),
            "benches/engine.rs: is a module `engine` already, as benches/engine/mod.rs would be; rename it"
        );
        files.push(engine);
    }
    files.push(in_folder("infergate.toml", include_str!("../../templates/init/infergate.toml")));

    let mut notes: Vec<String> = from.note.clone().into_iter().collect();
    if from.is_asked && manifest.depends_on("infergate") && manifest.section_of_path().is_none() {
        notes.push("--from changes nothing: Cargo.toml names where it takes infergate from".into());
    }
    let is_in_git = || folder.ancestors().any(|folder| folder.join(".git").exists());
    // What git says of a repository that it does not read, as one of another owner, is no reason to make one.
    let root = match git(folder, &["rev-parse", "--show-toplevel"]) {
        Err(error) if is_in_git() && !error.to_string().contains("not a git repository") => return Err(error),
        asked => asked.ok().map(PathBuf::from),
    };
    let branch = root.as_ref().map_or_else(|| "main".to_owned(), |_| merged_into(folder));
    let against = command::flag("against", &branch).unwrap_or_else(|| " --against BRANCH".into());
    if let Some(root) = root {
        let prefix = git(folder, &["rev-parse", "--show-prefix"])?;
        let below = if prefix.is_empty() { ".".to_owned() } else { prefix.trim_end_matches('/').to_owned() };
        add_ci(ci, &root, (&below, &branch), &mut files, &mut notes)?;
        if git(folder, &["check-ignore", "--quiet", "target/infergate"]).is_err() {
            let path = folder.join(".gitignore");
            let was = if flags::is_there(&path) { read_text(&path, MAX_FILE_BYTES)? } else { String::new() };
            let gap = if was.is_empty() || was.ends_with('\n') { "" } else { "\n" };
            files.push(File::grown(".gitignore", path, "/target\n".into(), format!("{was}{gap}/target\n")));
        }
    } else {
        notes.push("this folder is in no git repository; gate --against needs one: git init".into());
    }
    let others = manifest.other_benches();
    if !others.is_empty() {
        notes.push(format!(
            "left as they are: the bench targets {}; one that uses criterion is gated as it is: gate{against}{}",
            others.join(", "),
            command::flag("bench-target", &others[0]).unwrap_or_else(|| " --bench-target NAME".into())
        ));
    }
    if files.iter().any(|file| file.change != InitChange::Kept) {
        notes.push(format!(
            "next: put your engine into benches/engine/mod.rs; then run cargo bench, and: cargo infergate gate{against}"
        ));
    }
    Ok(Plan { files, notes })
}

/// The branch that changes are merged into: that of origin, else main or master, else the current one.
fn merged_into(folder: &Path) -> String {
    let named = |of: &str| git(folder, &["symbolic-ref", "--quiet", "--short", of]).ok();
    let of_origin = named("refs/remotes/origin/HEAD");
    let of_origin = of_origin.and_then(|name| name.strip_prefix("origin/").map(str::to_owned));
    let is_there =
        |name: &&str| git(folder, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")]).is_ok();
    let usual = || ["main", "master"].into_iter().find(is_there).map(str::to_owned);
    of_origin.or_else(usual).or_else(|| named("HEAD")).unwrap_or_else(|| "main".into())
}

/// Adds the files of a CI, whose first one runs the gate. Where somebody has one of that name, the others would speak of a gate that
/// they know nothing of.
fn add_ci(
    wanted: &[CiFile],
    root: &Path,
    (below, branch): (&str, &str),
    files: &mut Vec<File>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let is_taken = wanted.first().is_some_and(|(path, _)| flags::is_there(&root.join(path)));
    for &(path, template) in wanted {
        let place = root.join(path);
        let text = match (flags::is_there(&place), is_taken) {
            (true, _) => {
                notes.extend(ci::advice((path, template), &read_text(&place, MAX_FILE_BYTES)?, below)?);
                String::new()
            }
            (false, true) => continue,
            (false, false) => ci::of_branch(ci::fill((path, template), below)?, branch),
        };
        files.push(File::whole(path, place, text));
    }
    Ok(())
}

/// Each can be written before the first is. One that appeared meanwhile is not overwritten. What names the others comes last, so that
/// a run that ends between two of them leaves a package that builds, and once more adds what is missing.
fn write(files: &[File]) -> Result<()> {
    let changed = || files.iter().filter(|file| file.change != InitChange::Kept);
    for file in changed() {
        ensure_writable(&file.place)?;
    }
    let mut last_first: Vec<&File> = changed().collect();
    last_first.reverse();
    last_first.into_iter().try_for_each(|file| match file.change {
        InitChange::Added => write_text(&file.place, &file.text),
        _ => write_new(&file.place, file.text.as_bytes()),
    })
}
