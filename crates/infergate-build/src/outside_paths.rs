//! Dependencies by a path out of the repository: from a checkout elsewhere the same path leads nowhere.

use std::path::Path;

use anyhow::Result;
use toml::{Table, Value};

use super::checkout_folder;
use super::git::git;
use super::manifest::{dependency_sections, table};

/// Makes such paths of all manifests in the checkout `files` of `repository` absolute. Both sides then use the files that lie there now.
///
/// # Errors
/// When git says no; a manifest that cannot be written.
pub fn keep(files: &Path, repository: &Path) -> Result<()> {
    let listed = git(files, &["ls-files", "-z", "--", "Cargo.toml", "*/Cargo.toml"])?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let manifest = files.join(name);
        // One that cannot be read is cargo's to complain about, and no bench may need it.
        let Ok(mut found) = table(&manifest) else { continue };
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        if keep_in(&mut found, &files.join(folder), &repository.join(folder)) {
            checkout_folder::write(files, &manifest, &found.to_string())?;
        }
    }
    Ok(())
}

/// Whether there was one in the manifest in the folder `here` of a checkout, which is `there` in the repository.
fn keep_in(manifest: &mut Table, here: &Path, there: &Path) -> bool {
    let mut found = false;
    let mut keep = |section: &mut Table| {
        for (_, dependency) in section.iter_mut() {
            let Some(Value::String(path)) = dependency.get_mut("path") else { continue };
            let is_package = |folder: &Path| folder.join(&*path).join("Cargo.toml").is_file();
            if !is_package(here) && is_package(there) {
                *path = there.join(&*path).to_string_lossy().into_owned();
                found = true;
            }
        }
    };
    dependency_sections(manifest).into_iter().for_each(&mut keep);
    let patches = manifest.get_mut("patch").and_then(Value::as_table_mut).into_iter().flatten();
    patches.filter_map(|(_, patched)| patched.as_table_mut()).for_each(keep);
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn paths_of_dependencies_and_patches_that_lead_nowhere_from_a_checkout_are_made_absolute() {
        let place = tempfile::tempdir().expect("a folder");
        let [here, there] = ["cache/base/tree/own", "home/repository/own"].map(|folder| place.path().join(folder));
        for package in [&here, &there, &here.join("../near"), &there.join("../near"), &there.join("../../far")] {
            fs::create_dir_all(package).expect("a folder");
            fs::write(package.join("Cargo.toml"), "").expect("a file");
        }
        let mut manifest: Table = "[dependencies]\nnear = { path = '../near' }\nfar = { path = '../../far' }\nfree = '1'\n\
            [target.'cfg(unix)'.dev-dependencies]\nfar2 = { path = '../../far' }\n[patch.crates-io]\nfar3 = { path = '../../far' }\n"
            .parse()
            .expect("TOML");
        assert!(keep_in(&mut manifest, &here, &there));
        let text = manifest.to_string();
        assert_eq!(text.matches("home/repository/own/../../far").count(), 3, "{text}");
        assert!(text.contains("\"../near\""), "{text}");
        assert!(!keep_in(&mut manifest, &here, &there), "they are absolute now");
    }
}
