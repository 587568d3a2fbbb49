//! Reads and edits `Cargo.toml` and other TOML files of cargo.

use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::text_file::read_text;
use toml::Table;

use super::checkout_folder;

/// Size limit of such a file: a lock file of a thousand crates has 300 KB.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Sections of a manifest that name dependencies.
const SECTIONS: [&str; 5] =
    ["dependencies", "dev-dependencies", "build-dependencies", "dev_dependencies", "build_dependencies"];

/// Parses a TOML file.
pub fn table(file: &Path) -> Result<Table> {
    let text = read_text(file, MAX_FILE_BYTES)?;
    text.parse().with_context(|| format!("{}: not TOML", file.display()))
}

/// Edits a `file` of the checkout `files`. A file that stays the same is not written: a build script can run again for each newer file.
pub fn edit(files: &Path, file: &Path, change: impl FnOnce(&mut Table) -> Result<()>) -> Result<()> {
    let before = table(file)?;
    let mut edited = before.clone();
    change(&mut edited)?;
    if edited == before { Ok(()) } else { checkout_folder::write(files, file, &edited.to_string()) }
}

/// The table `name` of a table, made if it is missing.
pub fn entry<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table> {
    let value = table.entry(name).or_insert_with(|| Table::new().into());
    value.as_table_mut().with_context(|| format!("Cargo.toml: {name} is no table"))
}

/// The tables of a manifest that name dependencies: its own, its workspace's, and those of each platform.
pub fn dependency_sections(manifest: &mut Table) -> Vec<&mut Table> {
    let mut sections: Vec<&mut Table> = Vec::new();
    for (key, value) in manifest.iter_mut() {
        let Some(inner) = value.as_table_mut() else { continue };
        match key.as_str() {
            name if SECTIONS.contains(&name) => sections.push(inner),
            "workspace" => sections.extend(dependency_sections(inner)),
            "target" => {
                let platforms = inner.iter_mut().filter_map(|(_, platform)| platform.as_table_mut());
                sections.extend(platforms.flat_map(dependency_sections));
            }
            _ => {}
        }
    }
    sections
}
