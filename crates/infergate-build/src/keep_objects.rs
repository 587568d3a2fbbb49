//! This program as cargo's wrapper of the compiler, so that bench targets can be linked again: their object files and the names of
//! functions stay, and the linker's command is written down.
//!
//! Cargo passes arguments for the compiler to one target at a time, but it runs a wrapper for all that it builds in one call. A wrapper is
//! in none of cargo's fingerprints, except those of build scripts that ask for it: packages that `cargo bench` built before are used here,
//! and the other way round.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use infergate_core::process::this_program;

use super::{cargo_settings, checkout_folder};

/// The name of a link to this program.
const NAME: &str = "infergate-rustc";
/// The variable with the wrapper of the user's own settings.
const USERS_WRAPPER: &str = "INFERGATE_USERS_RUSTC_WRAPPER";

/// Makes `cargo`, which is run in `place`, keep what linking again needs. Puts the wrapper into `folder`, which is made.
///
/// # Errors
/// A folder or link that cannot be made.
pub fn keep_objects(cargo: &mut Command, folder: &Path, place: &Path) -> Result<()> {
    checkout_folder::make(folder)?;
    let (link, program) = (folder.join(NAME), this_program()?);
    if fs::read_link(&link).ok().as_ref() != Some(&program) {
        // In one step: another gate may build here.
        let new = folder.join(format!("{NAME}-{}", std::process::id()));
        symlink(program, &new)
            .and_then(|()| fs::rename(&new, &link))
            .with_context(|| format!("{}: cannot be made", link.display()))?;
    }
    if let Some(wrapper) = cargo_settings::rustc_wrapper(place) {
        cargo.env(USERS_WRAPPER, wrapper);
    }
    cargo.env("RUSTC_WRAPPER", link);
    Ok(())
}

/// The file with the linker's command of `program`; `None` if there is none, or the program was built again since.
pub fn command_file(program: &Path) -> Option<PathBuf> {
    let file = args_file(program);
    let modified = |path: &Path| path.metadata()?.modified();
    (modified(&file).ok()? == modified(program).ok()?).then_some(file)
}

fn args_file(program: &Path) -> PathBuf {
    program.with_added_extension("link-args")
}

/// Whether cargo started this process in place of the compiler, by the first word of its command line.
pub fn is_wrapper(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(NAME))
}

/// Runs the compiler with cargo's command line, and gives its exit code.
///
/// # Errors
/// A compiler that cannot be started, or that a signal ended.
pub fn compile(words: &[OsString]) -> Result<i32> {
    let requested = words.get(1..).unwrap_or_default();
    let compiler: Vec<OsString> = env::var_os(USERS_WRAPPER).into_iter().chain(requested.iter().cloned()).collect();
    let (program, arguments) = compiler.split_first().context("cargo names no compiler")?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(USERS_WRAPPER);
    let bench = bench(requested).map(|bench| (args_file(&bench), bench));
    if let Some((file, _)) = &bench {
        // The user's wrapper may reuse an earlier build, and start no linker: this build then has no linker's command.
        drop(fs::remove_file(file));
        command.args(["-Csave-temps", "-Cstrip=none"]).arg(format!("--print=link-args={}", file.display()));
    }
    let status = command.status().with_context(|| format!("{}: cannot be started", program.display()))?;
    if let Some((file, bench)) = bench.filter(|(file, _)| status.success() && file.exists()) {
        remove_bitcode(&bench);
        // Equal times mark the command as that of this build.
        let mark = || File::options().write(true).open(&file)?.set_modified(bench.metadata()?.modified()?);
        mark().with_context(|| format!("{}: cannot be written", file.display()))?;
    }
    status.code().with_context(|| format!("{}: {status}", program.display()))
}

/// The program of a bench target, if this is its compilation: cargo names no crate type for tests and benches.
fn bench(arguments: &[OsString]) -> Option<PathBuf> {
    let arguments: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let value = |name: &str| arguments.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    let is_bench = env::var_os("CARGO_PRIMARY_PACKAGE").is_some() && value("--crate-type").is_none();
    let hash = arguments.iter().find_map(|argument| argument.strip_prefix("extra-filename="))?;
    let program = Path::new(value("--out-dir")?).join(format!("{}{hash}", value("--crate-name")?));
    is_bench.then_some(program)
}

/// Removes the bitcode that the compiler keeps in addition to object files, and that nobody reads: gigabytes, if a large program is
/// optimised as a whole.
fn remove_bitcode(program: &Path) {
    let files = program.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let program = program.to_string_lossy();
    for file in files.flatten().map(|file| file.path()) {
        let name = file.to_string_lossy();
        if name.starts_with(&*program) && name.ends_with(".bc") {
            drop(fs::remove_file(&file));
        }
    }
}
