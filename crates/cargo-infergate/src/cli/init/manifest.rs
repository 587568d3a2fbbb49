//! Cargo.toml with infergate's dependency and bench targets. Its comments and its order stay.

use anyhow::{Context, Result, anyhow};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TomlError, Value, table, value};

const DEVELOPMENT: &str = "dev-dependencies";

pub struct Manifest(DocumentMut);

impl Manifest {
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = text.parse().map_err(|error: TomlError| anyhow!("Cargo.toml: not TOML: {}", error.message()));
        parsed.map(Self)
    }

    pub fn is_package(&self) -> bool {
        self.0.contains_key("package")
    }

    pub fn depends_on(&self, name: &str) -> bool {
        ["dependencies", DEVELOPMENT].iter().any(|key| self.0.get(key).is_some_and(|table| table.get(name).is_some()))
    }

    /// Whether Cargo.toml declares a bench target of this name.
    pub fn has_bench(&self, name: &str) -> bool {
        let mut benches = self.0.get("bench").and_then(Item::as_array_of_tables).into_iter().flatten();
        benches.any(|bench| bench.get("name").and_then(Item::as_str) == Some(name))
    }

    /// Its text with these bench targets, anyhow and infergate. What is there stays.
    pub fn with_engine(&self, infergate: &str, benches: &[&str]) -> Result<String> {
        let infergate: Value = infergate.parse().with_context(|| format!("infergate = {infergate}"))?;
        let mut document = self.0.clone();
        let known = document
            .entry(DEVELOPMENT)
            .or_insert_with(table)
            .as_table_like_mut()
            .context("Cargo.toml: dev-dependencies is no table")?;
        if !self.depends_on("anyhow") {
            known.insert("anyhow", value("1"));
        }
        if !self.depends_on("infergate") {
            known.insert("infergate", Item::Value(infergate));
        }
        for name in benches.iter().filter(|name| !self.has_bench(name)) {
            let list = document
                .entry("bench")
                .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
                .as_array_of_tables_mut()
                .context("Cargo.toml: bench is no list of [[bench]] tables")?;
            list.push(Table::from_iter([("name", value(*name)), ("harness", value(false))]));
        }
        Ok(document.to_string())
    }
}

/// The lines of `after` that came to `before`.
pub fn new_lines(before: &str, after: &str) -> String {
    let mut known = before.lines().peekable();
    let new = after.lines().filter(|line| known.next_if_eq(line).is_none());
    new.map(|line| format!("{line}\n")).collect()
}
