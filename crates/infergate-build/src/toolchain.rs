//! Chooses the toolchain of a checkout: its own, and not the one that runs this command.
//!
//! rustup's `cargo` tells every program that it starts which toolchain it chose, in RUSTUP_TOOLCHAIN and CARGO. It chose by the
//! working tree. If a file of the working tree or of the checkout chooses the toolchain, rustup chooses again in the checkout: else
//! head's compiler would build base, and the cost of an upgrade would not show. A toolchain that the user chose, as by
//! `cargo +nightly infergate` or by a file that no commit can hold, builds all.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Result, ensure};

use super::git;
use super::run_captured::run_captured;

const VARIABLE: &str = "RUSTUP_TOOLCHAIN";

/// cargo in `folder`, by the toolchain of that folder.
pub fn cargo_in(folder: &Path) -> Command {
    let mut cargo = cargo(Some(folder));
    cargo.current_dir(folder);
    cargo
}

/// cargo for a checkout, or this process's own for the working tree.
pub fn cargo(checkout: Option<&Path>) -> Command {
    let is_chosen = checkout.is_some_and(is_chosen);
    let own = env::var_os("CARGO").filter(|_| !is_chosen);
    let mut cargo = Command::new(own.unwrap_or_else(|| "cargo".into()));
    if is_chosen {
        cargo.env_remove(VARIABLE);
    }
    cargo
}

/// rustup's cargo, by the toolchain of this name.
pub fn named(toolchain: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.env(VARIABLE, toolchain);
    cargo
}

/// Has a program that builds a checkout, or the working tree, choose the toolchain by the files there.
pub fn choose(command: &mut Command, folder: &Path) {
    if is_chosen(folder) {
        command.env_remove(VARIABLE);
    }
}

fn is_chosen(folder: &Path) -> bool {
    (files(folder).next().is_some() || is_chosen_here()) && !is_of_user()
}

/// Whether a file of the working tree chooses the toolchain. A file above the repository, or that git ignores, is in no checkout.
fn is_chosen_here() -> bool {
    static CHOSEN: OnceLock<bool> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let Ok(here) = env::current_dir() else { return false };
        let Ok(root) = git::root(&here) else { return false };
        let is_ignored = |file: &Path| git::git(&here, &["check-ignore", "--quiet", &file.to_string_lossy()]).is_ok();
        files(&here).any(|file| file.starts_with(&root) && !is_ignored(&file))
    })
}

/// Whether the user named a toolchain: this command's is another one than rustup takes in this folder.
fn is_of_user() -> bool {
    static OF_USER: OnceLock<bool> = OnceLock::new();
    *OF_USER.get_or_init(|| {
        let Ok(running) = env::var(VARIABLE) else { return false };
        let mut rustup = Command::new("rustup");
        rustup.args(["show", "active-toolchain"]).env_remove(VARIABLE);
        // `1.85.0-x86_64-unknown-linux-gnu (overridden by '/folder/rust-toolchain.toml')`
        let Ok(output) = run_captured(rustup) else { return false };
        if !output.status.success() {
            return String::from_utf8_lossy(&output.stderr).contains("not installed");
        }
        let active = String::from_utf8_lossy(&output.stdout);
        let here = active.split_whitespace().next();
        // A variable that the user set can omit the host.
        here.is_some_and(|here| here != running && !here.starts_with(&format!("{running}-")))
    })
}

/// Toolchain files of `folder` and of those above it.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let names = ["rust-toolchain", "rust-toolchain.toml"];
    let all = folder.ancestors().flat_map(move |above| names.map(|name| above.join(name)));
    all.filter(|file| file.is_file())
}

/// Refuses a toolchain that cannot compile here. A compiler without rustup does not read the variable, and would build both sides;
/// it does not know the argument that is used here either.
pub fn ensure_installed(name: &str) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.arg(format!("+{name}")).arg("--version");
    let is_there = run_captured(cargo).is_ok_and(|output| output.status.success());
    ensure!(is_there, "--toolchain '{name}': no such toolchain; install it with rustup");
    Ok(())
}
