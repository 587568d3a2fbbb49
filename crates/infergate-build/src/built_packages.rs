//! Copies other people's packages that cargo built for base to head, if head has built nothing yet. A first gate then compiles candle
//! once and not twice.
//!
//! Cargo itself decides what it uses of the copy: a package of another version, or with other features, flags, profile or
//! compiler, has another hash there and is built. Packages in the repository are never copied, because cargo does not look into
//! vendored sources for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::checkout_folder::{self, real};

/// The folders of a profile where cargo keeps what it builds, each in a file or a folder that ends in its hash. The last one tells cargo
/// what is built, so it is copied last: a package that was copied in part is built again.
const KEPT: [&str; 3] = ["deps", "build", FINGERPRINTS];
const FINGERPRINTS: &str = ".fingerprint";
const HASH_DIGITS: usize = 16;

/// Copies packages outside `repository` that `messages` of cargo name from one target folder into another: those of each profile whose
/// folder is not there yet.
///
/// # Errors
/// A file that cannot be read or written.
pub fn copy(messages: &[Value], repository: &Path, from: &Path, into: &Path) -> Result<()> {
    for (profile, hashes) in hashes(messages, repository) {
        let Ok(below) = profile.strip_prefix(from) else { continue };
        let to = into.join(below);
        if to.exists() {
            continue;
        }
        for kept in KEPT {
            for entry in fs::read_dir(profile.join(kept)).into_iter().flatten() {
                let entry = entry?;
                if hash(&entry.path()).is_some_and(|hash| hashes.contains(&hash)) {
                    checkout_folder::copy(&entry.path(), &to, &Path::new(kept).join(entry.file_name()), true)?;
                }
            }
        }
    }
    Ok(())
}

/// The hashes of what was built of packages outside `repository`, by the folder of its profile.
fn hashes(messages: &[Value], repository: &Path) -> BTreeMap<PathBuf, BTreeSet<String>> {
    // A folder can be named with `..` or by a link. A package of the repository that was taken for another's would not be built.
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
            if let Some(profile) = file.ancestors().find(|above| above.join(FINGERPRINTS).is_dir()) {
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
