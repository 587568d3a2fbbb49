//! What lies beside two executables and can make the same code take another time: libraries that it loads, programs that it starts,
//! files that it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paired::Program;
use infergate_build::code::{self, Comparison};
use infergate_build::git::git;
use infergate_build::workspace::Workspace;
use infergate_receipts::clause;

/// Something that differs between two builds, as a clause; that it cannot be known counts, too. Head's files lie in `here`, and base's are
/// of `commit`, where it is not the same commit with another dependency or toolchain.
pub fn difference((base, head): (&Program, &Program), commit: Option<&str>, here: &Path) -> Option<String> {
    match other_library(&base.libraries, &head.libraries) {
        Ok(None) => {}
        Ok(Some(name)) => return Some(format!("the library '{name}' differs, which a build script made")),
        Err(error) => return Some(format!("libraries could not be compared ({})", clause(&error))),
    }
    changed_file(commit?, here)
        .unwrap_or_else(|error| Some(format!("other files could not be compared ({})", clause(&error))))
}

/// A library in the folders that build scripts let one side alone find, or otherwise. The system finds them there by name, also those
/// that a program opens by itself.
fn other_library(base: &[PathBuf], head: &[PathBuf]) -> Result<Option<String>> {
    first_other(&libraries(base)?, &libraries(head)?)
}

/// A program of the bench target's package that one side alone has, or otherwise: a bench may start it. As a clause.
pub fn other_program(base: &[PathBuf], head: &[PathBuf]) -> Option<String> {
    let by_name = |programs: &[PathBuf]| -> Files {
        programs.iter().filter_map(|path| Some((path.file_name()?.to_owned(), path.clone()))).collect()
    };
    match first_other(&by_name(base), &by_name(head)) {
        Ok(name) => Some(format!("the program '{}' differs, which a bench may start", name?)),
        Err(error) => Some(format!("programs could not be compared ({})", clause(&error))),
    }
}

/// By name.
type Files = BTreeMap<OsString, PathBuf>;

/// The first file of code that one side alone has, or otherwise.
fn first_other(was: &Files, is: &Files) -> Result<Option<String>> {
    for name in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
        let is_same = match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) => was == is || is_same_code(&code::read(was)?, &code::read(is)?),
            _ => false,
        };
        if !is_same {
            return Ok(Some(name.to_string_lossy().escape_debug().to_string()));
        }
    }
    Ok(None)
}

/// One that is not of code cannot be compared otherwise than by its bytes.
fn is_same_code(base: &[u8], head: &[u8]) -> bool {
    base == head || matches!(code::compare(base, head), Ok(Comparison::Same))
}

/// By name, each where it is found first.
fn libraries(folders: &[PathBuf]) -> Result<Files> {
    let mut found = Files::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let broken = || format!("{}: cannot be read", folder.display());
        for entry in fs::read_dir(folder).with_context(broken)? {
            let entry = entry.with_context(broken)?;
            // `libwork.so`, `libwork.so.2`.
            let name = entry.file_name().to_string_lossy().into_owned();
            if (name.ends_with(".so") || name.contains(".so.")) && entry.path().is_file() {
                found.entry(entry.file_name()).or_insert_with(|| entry.path());
            }
        }
    }
    Ok(found)
}

/// A file that the working tree has and `commit` has not, or has otherwise, and that is data or makes data.
fn changed_file(commit: &str, here: &Path) -> Result<Option<String>> {
    let words = ["diff", "--name-only", "--no-relative", "--no-renames", "--ignore-submodules=none", "-z", commit];
    let changed = git(here, &words)?;
    let new = git(here, &["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ":/"])?;
    let files = || changed.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty());
    let is_asked = |file: &str| is_source(file) || is_notice(name_of(file));
    let packages = if files().any(is_asked) { packages(here)? } else { Vec::new() };
    let why = |file: &str| {
        if may_be_data(file, &packages) {
            return Some("which a bench may read");
        }
        (name_of(file) == "build.rs" || may_build(&packages, Path::new(file)))
            .then_some("source of a build script, which may make what a bench reads")
    };
    Ok(files().find_map(|file| Some(format!("'{}' differs, {}", file.escape_debug(), why(file)?))))
}

/// Whether it is a part of what cargo builds.
fn is_source(file: &str) -> bool {
    let name = name_of(file);
    name.ends_with(".rs") || ["Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"].contains(&name)
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A package and its build script, if it has one; paths are counted from the root.
struct Package {
    folder: PathBuf,
    script: Option<PathBuf>,
}

/// Whether a file of source is a build script of one of `packages`, or may be a module of one: what lies outside these folders cargo
/// itself has no use for.
fn may_build(packages: &[Package], file: &Path) -> bool {
    let of_cargo = ["src", "tests", "benches", "examples"];
    let around = packages.iter().filter(|package| file.starts_with(&package.folder));
    let own = around.max_by_key(|package| package.folder.components().count());
    let is_module = own.filter(|own| own.script.is_some()).is_some_and(|own| {
        let inner = file.strip_prefix(&own.folder).unwrap_or(file);
        inner.extension().is_some_and(|ending| ending == "rs") && !of_cargo.iter().any(|of| inner.starts_with(of))
    });
    is_module || packages.iter().any(|package| package.script.as_deref() == Some(file))
}

/// The packages of the working tree.
fn packages(here: &Path) -> Result<Vec<Package>> {
    let root = PathBuf::from(git(here, &["rev-parse", "--show-toplevel"])?);
    let packages = Workspace::load(here)?.packages;
    let from_root = |path: &Path| path.strip_prefix(&root).ok().map(Path::to_owned);
    let seen = packages.iter().filter_map(|package| {
        let script = package.targets.iter().find(|target| target.is("custom-build"));
        let script = script.and_then(|script| from_root(&script.src_path));
        Some(Package { folder: from_root(package.manifest_path.parent()?)?, script })
    });
    Ok(seen.collect())
}

/// A text that says something of a repository or a package, for people.
fn is_notice(name: &str) -> bool {
    const NOTICES: [&str; 7] =
        ["README", "CHANGELOG", "CHANGES", "RELEASES", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"];
    let stem = name.split('.').next().unwrap_or(name);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_named = NOTICES.contains(&stem) || stem.starts_with("LICENSE") || stem.starts_with("COPYING");
    is_named && ["", "md", "txt", "rst"].contains(&ending)
}

/// Whether a bench may read this file while it runs. Source shows in the code, and so does what cargo reads; documentation is
/// text in places that are for it. A worker gets its settings with each request, and both sides the same ones.
fn may_be_data(file: &str, packages: &[Package]) -> bool {
    const TOOLS: [&str; 8] = [
        "Cargo.toml",
        "Cargo.lock",
        "infergate.toml",
        "rust-toolchain",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "clippy.toml",
        "deny.toml",
    ];
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    let is_root = folders.is_empty() || packages.iter().any(|package| package.folder == Path::new(folders));
    let is_documentation = folders.split('/').next().is_some_and(|folder| ["doc", "docs"].contains(&folder));
    !(name.ends_with(".rs")
        || TOOLS.contains(&name)
        || is_root && (is_notice(name) || name.starts_with('.'))
        || file.starts_with(".github/")
        || is_documentation && name.ends_with(".md"))
}
