//! Dependencies by a path out of the repository: from a checkout elsewhere the same path leads nowhere.

use std::path::{Component, Path, PathBuf};

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
        if keep_in(&mut found, folder, repository) {
            checkout_folder::write(files, &manifest, &found.to_string())?;
        }
    }
    Ok(())
}

/// Whether there was one in the manifest in `folder`, counted from the repository's root.
fn keep_in(manifest: &mut Table, folder: &Path, repository: &Path) -> bool {
    let mut found = false;
    let mut keep = |section: &mut Table| {
        for (_, dependency) in section.iter_mut() {
            let Some(Value::String(path)) = dependency.get_mut("path") else { continue };
            if let Some(outside) = outside(&folder.join(&*path)) {
                *path = repository.join(outside).to_string_lossy().into_owned();
                found = true;
            }
        }
    };
    dependency_sections(manifest).into_iter().for_each(&mut keep);
    let patches = manifest.get_mut("patch").and_then(Value::as_table_mut).into_iter().flatten();
    patches.filter_map(|(_, patched)| patched.as_table_mut()).for_each(keep);
    found
}

/// `path` without needless steps, where it leads out of the folder that it counts from.
fn outside(path: &Path) -> Option<PathBuf> {
    let mut steps: Vec<Component<'_>> = Vec::new();
    for step in path.components() {
        match (step, steps.last()) {
            (Component::ParentDir, Some(Component::Normal(_))) => drop(steps.pop()),
            (Component::CurDir, _) => {}
            (Component::Prefix(_) | Component::RootDir, _) => return None,
            (step, _) => steps.push(step),
        }
    }
    (steps.first() == Some(&Component::ParentDir)).then(|| steps.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_out_or_does_not() {
        let out = |path: &str| outside(Path::new(path)).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(out("../sibling").as_deref(), Some("../sibling"));
        assert_eq!(out("crates/a/../../../sibling/./x").as_deref(), Some("../sibling/x"));
        assert_eq!(out("crates/a/../b"), None);
        assert_eq!(out("/elsewhere"), None);
    }

    #[test]
    fn paths_of_dependencies_and_patches_are_made_absolute() {
        let mut manifest: Table = "[dependencies]\nnear = { path = '../near' }\nfar = { path = '../../far' }\nfree = '1'\n\
            [target.'cfg(unix)'.dev-dependencies]\nfar2 = { path = '../../far' }\n[patch.crates-io]\nfar3 = { path = '../../far' }\n"
            .parse()
            .expect("TOML");
        assert!(keep_in(&mut manifest, Path::new("crate"), Path::new("/home/repository")));
        let text = manifest.to_string();
        assert_eq!(text.matches("/home/repository/../far").count(), 3, "{text}");
        assert!(text.contains("\"../near\""), "{text}");
        assert!(!keep_in(&mut manifest, Path::new("crate"), Path::new("/home/repository")), "they are absolute now");
    }
}
