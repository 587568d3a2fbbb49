//! What cargo built of other people's packages for one checkout, copied for another one that has built nothing yet. A first
//! gate then compiles candle once and not twice.
//!
//! Cargo itself decides what it takes of the copy: a package of another version, or with other features, flags, profile or
//! compiler, has another hash there and is built. What lies in the repository is never copied, for cargo does not look into
//! vendored sources for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{checkout_folder, progress};

/// In a target folder and in no folder below it.
const TOP: &str = ".rustc_info.json";
/// Where cargo keeps what it builds for a profile, each in a file or a folder that ends in its hash.
const KEPT: [&str; 3] = [".fingerprint", "build", "deps"];
const HASH_DIGITS: usize = 16;

/// Copies what `messages` of cargo name of packages outside `repository` into the target folder `into`, which is not there yet.
///
/// # Errors
/// What cannot be read or written. `into` is then as it was.
pub fn copy(messages: &[Value], repository: &Path, into: &Path) -> Result<()> {
    let built = hashes(messages, repository);
    let mut above = built.keys().flat_map(|profile| profile.ancestors());
    let Some(top) = above.find(|folder| folder.join(TOP).is_file()) else { return Ok(()) };
    let partial = into.with_extension("partial");
    checkout_folder::remove(&partial)?;
    fs::create_dir_all(&partial).with_context(|| format!("{}: cannot be made", partial.display()))?;
    for file in [TOP, "CACHEDIR.TAG"] {
        copy_all(&top.join(file), &partial.join(file))?;
    }
    for (profile, hashes) in &built {
        let Ok(below) = profile.strip_prefix(top) else { continue };
        for kept in KEPT {
            for entry in fs::read_dir(profile.join(kept)).into_iter().flatten() {
                let entry = entry?;
                if hash(&entry.path()).is_some_and(|hash| hashes.contains(&hash)) {
                    copy_all(&entry.path(), &partial.join(below).join(kept).join(entry.file_name()))?;
                }
            }
        }
    }
    fs::rename(&partial, into).with_context(|| format!("{}: cannot be written", into.display()))
}

/// The hashes of what was built of packages outside `repository`, by the folder of its profile.
fn hashes(messages: &[Value], repository: &Path) -> BTreeMap<PathBuf, BTreeSet<String>> {
    // A folder can be named with `..` or by a link, and what is taken for somebody else's is not built.
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let repository = real(repository);
    let mut others = BTreeSet::new();
    let mut built: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for message in messages {
        let package = message["package_id"].as_str().unwrap_or_default();
        let manifest = message["manifest_path"].as_str().map(Path::new);
        if manifest.is_some_and(|manifest| !real(manifest).starts_with(&repository)) {
            others.insert(package);
        }
        if !others.contains(package) {
            continue;
        }
        let files = message["filenames"].as_array().into_iter().flatten().chain([&message["out_dir"]]);
        for file in files.filter_map(Value::as_str).map(Path::new) {
            if let Some(profile) = file.ancestors().find(|above| above.join(KEPT[0]).is_dir()) {
                built.entry(profile.to_owned()).or_default().extend(file.ancestors().find_map(hash));
            }
        }
    }
    built
}

/// The digits after the last `-` of a name, before its ending.
fn hash(path: &Path) -> Option<String> {
    let (_, digits) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    (digits.len() == HASH_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())).then(|| digits.to_owned())
}

/// A file, or a folder with all below it, with the times of change: by them cargo knows what is older than what it needs.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("{}: cannot be copied to {}", from.display(), to.display());
    progress::ensure_not_cancelled()?;
    if from.is_dir() {
        fs::create_dir_all(to).with_context(cannot)?;
        for entry in fs::read_dir(from).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if from.is_file() {
        to.parent().map_or(Ok(()), fs::create_dir_all).with_context(cannot)?;
        fs::copy(from, to).with_context(cannot)?;
        let changed = from.metadata().and_then(|known| known.modified()).with_context(cannot)?;
        File::options().append(true).open(to).and_then(|file| file.set_modified(changed)).with_context(cannot)?;
    }
    Ok(())
}
