//! `--swap CRATE=VERSION|PATH|URL`: another version of one dependency, in a checkout of its own.

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use super::checkout::Checkout;
use super::lock_file::{cargo, field, packages, resolve};
use super::manifest::{dependency_sections, edit, entry, table};

/// One dependency, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// As `cargo update` takes it: `serde`, or `serde@1.0.200` if there are several.
    spec: String,
    to: To,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum To {
    Version(String),
    /// The key and the value of a patch: `path` or `git`, and where that is.
    Source(&'static str, String),
}

impl Swap {
    /// From `CRATE=VERSION`, `CRATE=PATH` or `CRATE=URL`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong =
            || format!("--swap '{text}': write CRATE=VERSION, CRATE=PATH or CRATE=URL, for example candle-core=0.11.1");
        let parts = text.split_once('=').filter(|(spec, to)| !spec.is_empty() && !to.is_empty());
        let (spec, to) = parts.with_context(wrong)?;
        let to = if to.contains("://") {
            To::Source("git", to.to_owned())
        } else if to.starts_with(|c: char| c.is_ascii_digit()) && !to.contains('/') {
            let is_whole = to.split(['-', '+']).next().is_some_and(|numbers| numbers.split('.').count() == 3);
            ensure!(is_whole, "--swap {text}: give the whole version, for example 1.11.0");
            To::Version(to.to_owned())
        } else {
            let folder = std::path::absolute(to).with_context(wrong)?;
            ensure!(
                folder.join("Cargo.toml").is_file(),
                "--swap: {} holds no Cargo.toml; name the crate's folder",
                folder.display()
            );
            To::Source("path", folder.to_string_lossy().into_owned())
        };
        Ok(Self { spec: spec.to_owned(), to })
    }

    fn name(&self) -> &str {
        self.spec.split('@').next().unwrap_or(&self.spec)
    }

    fn cannot(&self) -> String {
        format!("--swap {}", self.spec)
    }

    /// Makes the manifests require the version; `false` if none names the dependency, or only one of its versions is swapped.
    fn require(&self, version: &str, checkout: &Checkout) -> Result<bool> {
        if self.spec.contains('@') {
            return Ok(false);
        }
        let mut is_named = false;
        let mut require_in = |manifest: &mut Table| {
            for (name, value) in dependency_sections(manifest).into_iter().flat_map(|section| section.iter_mut()) {
                if value.get("package").and_then(Value::as_str).unwrap_or(name) != self.name() {
                    continue;
                }
                let exactly = Value::from(format!("={version}"));
                match value {
                    Value::String(_) => *value = exactly,
                    Value::Table(dependency) if !dependency.contains_key("workspace") => {
                        drop(dependency.insert("version".into(), exactly));
                    }
                    _ => continue,
                }
                is_named = true;
            }
            Ok(())
        };
        for manifest in checkout.workspace()?.manifests() {
            edit(&checkout.files, &manifest, &mut require_in)?;
        }
        Ok(is_named)
    }

    fn patch(&self, checkout: &Checkout, key: &str, value: &str) -> Result<()> {
        edit(&checkout.files, &checkout.workspace()?.manifest(), |manifest| {
            let source = Table::from_iter([(key.to_owned(), Value::from(value))]);
            entry(entry(manifest, "patch")?, "crates-io")?.insert(self.name().to_owned(), source.into());
            Ok(())
        })?;
        // Otherwise cargo keeps the locked version.
        cargo(&checkout.folder()?, &["update", "--package", &self.spec]).with_context(|| self.cannot())
    }
}

/// Makes all swaps in a checkout together, because crates can need each other's versions. `may_be_there`: a swap already in place is no
/// error.
///
/// # Errors
/// A dependency that no manifest names, or a version that cargo does not choose.
pub fn apply(swaps: &[Swap], checkout: &Checkout, may_be_there: bool) -> Result<()> {
    let (folder, lock) = (checkout.folder()?, checkout.workspace()?.lock_file());
    let was = if lock.is_file() { table(&lock)? } else { Table::new() };
    let mut unnamed = Vec::new();
    for swap in swaps {
        match &swap.to {
            To::Source(key, value) => swap.patch(checkout, key, value)?,
            To::Version(version) if !swap.require(version, checkout)? => unnamed.push((swap, version)),
            To::Version(_) => {}
        }
    }
    let all = || swaps.iter().map(Swap::cannot).collect::<Vec<_>>().join(" ");
    resolve(&folder).with_context(all)?;
    // A dependency that no manifest names is changed in Cargo.lock alone.
    for (swap, version) in unnamed {
        ensure!(
            cargo(&folder, &["update", "--package", &swap.spec, "--precise", version]).is_ok(),
            "{}: no manifest of this repository names it; name a direct dependency",
            swap.cannot()
        );
    }
    let now = table(&lock)?;
    for swap in swaps {
        let name = swap.name();
        let is_chosen = match &swap.to {
            // A version can end in a plus and a build, as in 2.0.16+zstd.1.5.7.
            To::Version(version) => locked(&now, name)
                .iter()
                .filter_map(|package| field(package, "version"))
                .any(|locked| locked == version || locked.split('+').next() == Some(version)),
            // Cargo lists a patch that nothing uses in the lock file, and only warns. Earlier ones may be listed, too.
            To::Source(..) => {
                let unused = now.get("patch").and_then(|patch| patch.get("unused")?.as_array());
                !unused.into_iter().flatten().any(|patch| field(patch, "name") == Some(name))
            }
        };
        ensure!(
            is_chosen && (may_be_there || locked(&was, name) != locked(&now, name)),
            "{}: nothing changes; `cargo tree --invert {name}` shows the version in use and which packages need it",
            swap.cannot(),
        );
    }
    Ok(())
}

/// The packages of this name in a lock file.
fn locked<'l>(lock: &'l Table, name: &str) -> Vec<&'l Value> {
    packages(lock).iter().filter(|package| field(package, "name") == Some(name)).collect()
}
