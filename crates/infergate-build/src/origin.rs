//! Where infergate's own packages come from. Somebody else may hold its name in the registry, so only a command that came from there uses
//! that name.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use infergate_core::build_info::is_packed;
use toml::{Table, Value as Toml};

use super::cargo_settings::owners;

/// Where this command came from.
#[derive(Debug, PartialEq)]
pub enum Origin {
    /// The sources that it was built from, which are still there.
    Folder(PathBuf),
    /// A repository.
    Commit {
        address: String,
        commit: String,
    },
    Registry,
}

impl Origin {
    /// The keys, in Cargo.toml, of a dependency on the package in `folder` of the sources.
    pub fn keys(&self, folder: &str) -> Table {
        let keys = match self {
            // Without the separator that joining with nothing adds.
            Self::Folder(root) => {
                vec![("path", root.join(folder).components().as_path().to_string_lossy().into_owned())]
            }
            Self::Commit { address, commit } => vec![("git", address.clone()), ("rev", commit.clone())],
            Self::Registry => vec![("version", concat!("=", env!("CARGO_PKG_VERSION")).to_owned())],
        };
        keys.into_iter().map(|(key, value)| (key.to_owned(), Toml::from(value))).collect()
    }

    /// The value of a dependency on infergate in Cargo.toml.
    pub fn dependency(&self) -> String {
        Toml::from(self.keys("")).to_string()
    }
}

/// Where this command came from.
///
/// # Errors
/// If that is unknown.
pub fn origin() -> Result<Origin> {
    let commit = option_env!("INFERGATE_COMMIT").filter(|commit| !commit.is_empty());
    let built_from = commit.map(|commit| (env!("CARGO_PKG_REPOSITORY").to_owned(), commit.to_owned()));
    choose(installed_from(), own_source(), built_from, is_packed())
}

/// The best source is what `cargo install --git` wrote down: the folder of the sources is cargo's own then.
fn choose(
    installed_from: Option<(String, String)>,
    folder: Option<PathBuf>,
    built_from: Option<(String, String)>,
    is_packed: bool,
) -> Result<Origin> {
    let commit = |(address, commit)| Origin::Commit { address, commit };
    let known = installed_from.map(commit).or(folder.map(Origin::Folder)).or(built_from.map(commit));
    known.or(is_packed.then_some(Origin::Registry)).context(concat!(
        "this cargo-infergate has neither sources nor a known commit; install it with cargo install --git ",
        env!("CARGO_PKG_REPOSITORY")
    ))
}

/// The address and the commit that `cargo install --git` built this command from, by cargo's own list of what it installed.
fn installed_from() -> Option<(String, String)> {
    let command = env::current_exe().ok()?;
    named_in(&command.parent()?.parent()?.join(".crates2.json"), &owners(&command).ok()?)
}

/// The address and the commit in such a file, if a user of `own` owns it: others may write where a command was unpacked, too.
fn named_in(file: &Path, own: &[u32]) -> Option<(String, String)> {
    file.symlink_metadata().ok().filter(|found| own.contains(&found.uid()))?;
    let text = fs::read_to_string(file).ok()?;
    let list: serde_json::Value = serde_json::from_str(&text).ok()?;
    list["installs"].as_object()?.keys().find_map(|key| {
        let source = key.strip_prefix("cargo-infergate ")?.split_once("(git+")?.1.strip_suffix(')')?;
        let (address, commit) = source.split_once('#')?;
        Some((address.split('?').next()?.to_owned(), commit.to_owned()))
    })
}

/// The folder of infergate's sources that this command was built from, if it still exists.
pub fn own_source() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    manifest.contains("name = \"infergate\"").then(|| root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_comes_last_and_only_for_a_command_from_there() {
        let commit = |of: &str| Some((of.to_owned(), "c0ffee".to_owned()));
        let folder = || Some(PathBuf::from("/sources"));
        let keys = |origin: Result<Origin>| origin.map(|origin| Toml::from(origin.keys("crates/front")).to_string());
        for (chosen, expected) in [
            (choose(commit("installed"), folder(), commit("built"), true), "{ git = \"installed\", rev = \"c0ffee\" }"),
            (choose(None, folder(), commit("built"), true), "{ path = \"/sources/crates/front\" }"),
            (choose(None, None, commit("built"), true), "{ git = \"built\", rev = \"c0ffee\" }"),
            (choose(None, None, None, true), concat!("{ version = \"=", env!("CARGO_PKG_VERSION"), "\" }")),
        ] {
            assert_eq!(keys(chosen).expect("an origin"), expected);
        }
        let error = choose(None, None, None, false).expect_err("not known").to_string();
        assert!(error.contains("cargo install --git"), "{error}");
    }

    #[test]
    fn what_another_user_wrote_next_to_the_command_is_ignored() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join(".crates2.json");
        let text = r#"{ "installs": { "cargo-infergate 0.1.0 (git+https://example.com/it?branch=main#c0ffee)": {} } }"#;
        fs::write(&file, text).expect("a file");
        let own = owners(&file).expect("a file");
        assert_eq!(named_in(&file, &own), Some(("https://example.com/it".to_owned(), "c0ffee".to_owned())));
        assert_eq!(named_in(&file, &[]), None, "nobody is known");
    }
}
