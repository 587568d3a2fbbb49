//! Cargo.toml with bench targets. Lines are added and none is changed, so that its comments and its order stay.

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

/// The bench targets of infergate: one is timed, one is counted.
const BENCHES: [&str; 2] = ["inference", "memory"];

/// A package's manifest.
pub struct Manifest<'t> {
    text: &'t str,
    table: Table,
}

/// The manifest with more lines.
pub struct Grown {
    /// The lines that came.
    pub added: String,
    /// All of it.
    pub text: String,
}

impl<'t> Manifest<'t> {
    /// Reads the manifest of a package.
    ///
    /// # Errors
    /// What is not TOML, or has no package.
    pub fn parse(text: &'t str) -> Result<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            anyhow::anyhow!("Cargo.toml: not TOML: {}", error.message().lines().next().unwrap_or_default())
        })?;
        ensure!(
            table.contains_key("package"),
            "Cargo.toml: has no package; run init in the folder of the package that holds the engine"
        );
        Ok(Self { text, table })
    }

    /// Whether its edition is 2015, as cargo takes it where none is named: there a crate is declared before it is imported.
    pub fn is_of_2015(&self) -> bool {
        let edition = self.table.get("package").and_then(|package| package.get("edition"));
        edition.is_none_or(|edition| edition.as_str() == Some("2015"))
    }

    /// Names of the bench targets that are not infergate's.
    pub fn other_benches(&self) -> Vec<String> {
        self.benches().filter(|name| !BENCHES.contains(name)).map(str::to_owned).collect()
    }

    fn benches(&self) -> impl Iterator<Item = &str> {
        let targets = self.table.get("bench").and_then(Value::as_array).into_iter().flatten();
        targets.filter_map(|bench| bench.get("name").and_then(Value::as_str))
    }

    fn depends_on(&self, name: &str) -> bool {
        let tables = ["dependencies", "dev-dependencies"].into_iter().filter_map(|key| self.table.get(key));
        tables.filter_map(Value::as_table).any(|table| table.contains_key(name))
    }

    /// With infergate as a development dependency and its two bench targets, as far as they are missing.
    ///
    /// # Errors
    /// A manifest that lines cannot be added to.
    pub fn with_benches(&self, infergate: &str) -> Result<Grown> {
        let mut dependencies = String::new();
        for (name, value) in [("anyhow", "\"1\""), ("infergate", infergate)] {
            if !self.depends_on(name) {
                dependencies += &format!("{name} = {value}\n");
            }
        }
        let mut benches = String::new();
        for name in BENCHES.into_iter().filter(|name| !self.benches().any(|known| known == *name)) {
            benches += &format!("\n[[bench]]\nname = \"{name}\"\nharness = false\n");
        }
        let mut added = String::new();
        let mut text = self.text.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if !dependencies.is_empty() {
            match heading(&text, "[dev-dependencies]") {
                Some(at) => {
                    text.insert_str(at, &dependencies);
                    added += &dependencies;
                }
                None if self.table.contains_key("dev-dependencies") => bail!(
                    "Cargo.toml: its development dependencies stand in no [dev-dependencies] of their own; add these lines: {}",
                    dependencies.trim_end().replace('\n', " and ")
                ),
                None => {
                    let section = format!("\n[dev-dependencies]\n{dependencies}");
                    text += &section;
                    added += &section;
                }
            }
        }
        ensure!(
            benches.is_empty()
                || !self.table.get("bench").is_some_and(Value::is_array)
                || self.text.contains("[[bench]]"),
            "Cargo.toml: its bench targets stand in a list; add [[bench]] sections for inference and memory with harness = false"
        );
        text += &benches;
        added += &benches;
        // What was added by lines is read back as a whole.
        let grown =
            Manifest::parse(&text).context("lines cannot be added; add infergate and its bench targets by hand")?;
        ensure!(
            grown.depends_on("infergate") && BENCHES.iter().all(|name| grown.benches().any(|known| known == *name)),
            "Cargo.toml: lines cannot be added; add infergate and its bench targets by hand"
        );
        Ok(Grown { added, text })
    }
}

/// Where the line after a section's heading begins.
fn heading(text: &str, heading: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.split('#').next().unwrap_or_default();
        if line.trim() == heading {
            return Some(at);
        }
    }
    None
}
