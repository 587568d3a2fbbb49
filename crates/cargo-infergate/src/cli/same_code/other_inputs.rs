//! Inputs other than code that can change a time: libraries that a program loads, programs that it starts, files that it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cli::files::entries;
use crate::paired::Program;
use infergate_build::code::{loads_same_bytes, read};
use infergate_build::git::{git, root};
use infergate_build::workspace::Workspace;
use infergate_receipts::clause;

/// An input that differs between two builds, as a clause. An input that cannot be compared counts as different. Head's files lie in `here`.
/// Base's are of `commit`; `None` if both are of one commit, with another dependency or toolchain.
pub fn difference((base, head): (&Program, &Program), commit: Option<&str>, here: &Path) -> Option<String> {
    match libraries(&base.libraries).and_then(|was| first_other(&was, &libraries(&head.libraries)?)) {
        Ok(None) => {}
        Ok(Some(name)) => return Some(format!("the library '{name}' differs, which a build script made")),
        Err(error) => return Some(format!("libraries could not be compared ({})", clause(&error))),
    }
    changed_file(commit?, here)
        .unwrap_or_else(|error| Some(format!("other files could not be compared ({})", clause(&error))))
}

/// A program of the bench target's package that differs or that one side lacks, as a clause: a bench may start it.
pub fn other_program(base: &[PathBuf], head: &[PathBuf]) -> Option<String> {
    let by_name = |programs: &[PathBuf]| -> Files {
        programs.iter().filter_map(|path| Some((path.file_name()?.to_owned(), path.clone()))).collect()
    };
    match first_other(&by_name(base), &by_name(head)) {
        Ok(name) => Some(format!("the program '{}' differs, which a bench may start", name?)),
        Err(error) => Some(format!("programs could not be compared ({})", clause(&error))),
    }
}

/// Files by name.
type Files = BTreeMap<OsString, PathBuf>;

/// The name of the first file of code that differs or that one side lacks.
fn first_other(was: &Files, is: &Files) -> Result<Option<String>> {
    for name in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        let is_same = match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) if was == is => true,
            (Some(was), Some(is)) => {
                let (was, is) = (read(was)?, read(is)?);
                was == is || loads_same_bytes(&was, &is)
            }
            _ => false,
        };
        if !is_same {
            return Ok(Some(name.to_string_lossy().escape_debug().to_string()));
        }
    }
    Ok(None)
}

/// The libraries in these folders, each from the first folder that has it. Build scripts let one side find them there, by name, also those
/// that a program opens by itself.
fn libraries(folders: &[PathBuf]) -> Result<Files> {
    let mut found = Files::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for file in entries(folder)?.into_iter().filter(|entry| entry.is_file()) {
            let Some(name) = file.file_name().map(OsStr::to_owned) else { continue };
            // `libwork.so`, `libwork.so.2`.
            let words = name.to_string_lossy();
            if words.ends_with(".so") || words.contains(".so.") {
                found.entry(name.clone()).or_insert(file);
            }
        }
    }
    Ok(found)
}

/// The first file that differs between `commit` and the working tree, and that is data or makes data, as a clause.
fn changed_file(commit: &str, here: &Path) -> Result<Option<String>> {
    let words = ["diff", "--name-only", "--no-relative", "--no-renames", "--ignore-submodules=none", "-z", commit];
    let changed = git(here, &words)?;
    let new = git(here, &["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ":/"])?;
    let root = root(here)?;
    let files = || changed.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty());
    let packages = if files().any(|file| file.ends_with(".rs")) { Workspace::load(here)?.packages } else { Vec::new() };
    let has_script = |file: &Path| {
        let around = packages.iter().filter(|package| file.starts_with(package.folder()));
        let own = around.max_by_key(|package| package.folder().components().count());
        own.is_some_and(|own| own.targets.iter().any(|target| target.is("custom-build")))
    };
    let found = files().find_map(|file| {
        let path = root.join(file);
        let is_next_to_manifest = !file.contains('/') || path.with_file_name("Cargo.toml").is_file();
        let why = use_of(file, is_next_to_manifest, || has_script(&path))?;
        Some(format!("'{}' differs, {why}", file.escape_debug()))
    });
    Ok(found)
}

/// How a file may change what the same code does; `None` if it cannot. Source shows in the code, except that of a build script, if the
/// package around it has one. Files for people and tools in the folder of a package or of the repository (`is_next_to_manifest`) are no
/// data, nor is documentation. A worker gets its settings with each request, and both sides the same ones.
fn use_of(file: &str, is_next_to_manifest: bool, has_script: impl FnOnce() -> bool) -> Option<&'static str> {
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    if name.ends_with(".rs") {
        // Cargo itself has no use for files elsewhere.
        let is_of_cargo = folders.split('/').any(|folder| ["src", "tests", "benches", "examples"].contains(&folder));
        let is_script = (name == "build.rs" || !is_of_cargo) && has_script();
        return is_script.then_some("source of a build script, which may make what a bench reads");
    }
    let is_tools = name.starts_with('.') || name.ends_with(".toml") || ["Cargo.lock", "rust-toolchain"].contains(&name);
    let first = folders.split('/').next().unwrap_or_default();
    let is_documentation = ["doc", "docs"].contains(&first) && name.ends_with(".md");
    let is_no_data = is_next_to_manifest && (is_tools || is_notice(name)) || first == ".github" || is_documentation;
    (!is_no_data).then_some("which a bench may read")
}

/// Whether a file is a text about a repository or a package, for people.
fn is_notice(name: &str) -> bool {
    const NOTICES: [&str; 7] =
        ["README", "CHANGELOG", "CHANGES", "RELEASES", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"];
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let stem = stem.to_uppercase();
    let is_named = NOTICES.contains(&&*stem) || stem.starts_with("LICENSE") || stem.starts_with("COPYING");
    is_named && ["", "md", "txt", "rst"].contains(&ending)
}
