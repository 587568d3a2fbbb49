//! Dependencies by a path out of the repository: in a checkout elsewhere the same path leads nowhere.

use std::path::Path;

use anyhow::Result;
use toml::{Table, Value};

use super::git::git;
use super::manifest::{dependency_sections, edit, table};

/// Makes such paths absolute in all manifests of the checkout `files` of `repository`. Both sides then use the files that lie there now.
///
/// # Errors
/// Git's; a manifest that cannot be written.
pub fn make_absolute(files: &Path, repository: &Path) -> Result<()> {
    let listed = git(files, &["ls-files", "-z", "--", "Cargo.toml", "*/Cargo.toml"])?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let manifest = files.join(name);
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        // Cargo reports a manifest that cannot be read, if a bench needs it at all.
        if table(&manifest).is_ok() {
            edit(files, &manifest, |manifest| {
                make_absolute_in(manifest, &files.join(folder), &repository.join(folder));
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The same in the manifest in the folder `here` of a checkout, which is `there` in the repository.
fn make_absolute_in(manifest: &mut Table, here: &Path, there: &Path) {
    let keep = |section: &mut Table| {
        for (_, dependency) in section.iter_mut() {
            let Some(Value::String(path)) = dependency.get_mut("path") else { continue };
            let is_package = |folder: &Path| folder.join(&*path).join("Cargo.toml").is_file();
            if !is_package(here) && is_package(there) {
                *path = there.join(&*path).to_string_lossy().into_owned();
            }
        }
    };
    dependency_sections(manifest).into_iter().for_each(keep);
    let patches = manifest.get_mut("patch").and_then(Value::as_table_mut).into_iter().flatten();
    patches.filter_map(|(_, patched)| patched.as_table_mut()).for_each(keep);
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
        make_absolute_in(&mut manifest, &here, &there);
        let text = manifest.to_string();
        assert_eq!(text.matches("home/repository/own/../../far").count(), 3, "{text}");
        assert!(text.contains("\"../near\""), "{text}");
        let before = manifest.clone();
        make_absolute_in(&mut manifest, &here, &there);
        assert_eq!(manifest, before, "they are absolute now");
    }
}
