//! Cargo.toml with bench targets. Its comments and its order stay, whichever of TOML's ways it is written in.

use anyhow::{Context, Result, ensure};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike, TomlError, Value};

/// The bench targets of infergate: one is timed, one is counted.
const BENCHES: [&str; 2] = ["inference", "memory"];

/// Where development dependencies stand; in older editions also by the second name, which counts only where the first is missing.
const DEVELOPMENT: [&str; 2] = ["dev-dependencies", "dev_dependencies"];

pub struct Manifest {
    document: DocumentMut,
    /// Its lines end so, which the document does not keep.
    is_crlf: bool,
}

impl Manifest {
    /// Reads the manifest of a package.
    pub fn parse(text: &str) -> Result<Self> {
        let document: DocumentMut = text.parse().map_err(|error: TomlError| {
            anyhow::anyhow!("Cargo.toml: not TOML: {}", error.message().lines().next().unwrap_or_default())
        })?;
        ensure!(
            document.contains_key("package"),
            "Cargo.toml: has no package; run init in the folder of the package that holds the engine"
        );
        Ok(Self { document, is_crlf: text.contains("\r\n") })
    }

    /// Whether its edition is 2015, as cargo takes it where none is named: there a crate is declared before it is imported.
    pub fn is_of_2015(&self) -> bool {
        let edition = self.document.get("package").and_then(|package| package.get("edition"));
        edition.is_none_or(|edition| edition.as_str() == Some("2015"))
    }

    /// Names of the bench targets that are not infergate's.
    pub fn other_benches(&self) -> Vec<String> {
        self.names().filter(|name| !BENCHES.contains(name)).map(str::to_owned).collect()
    }

    /// The path that its bench target `name` has where that is named.
    ///
    /// # Errors
    /// A target that runs under libtest.
    pub fn path_of(&self, name: &str) -> Result<Option<&str>> {
        let declared = self.benches().find(|bench| bench.get("name").and_then(Item::as_str) == Some(name));
        let Some(bench) = declared else { return Ok(None) };
        ensure!(
            bench.get("harness").and_then(Item::as_bool) == Some(false),
            "Cargo.toml: the bench target {name} has no `harness = false`; add it, or rename the target where it is not infergate's"
        );
        Ok(bench.get("path").and_then(Item::as_str))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.benches().filter_map(|bench| bench.get("name")?.as_str())
    }

    fn benches(&self) -> impl Iterator<Item = &dyn TableLike> {
        let bench = self.document.get("bench");
        let sections =
            bench.and_then(Item::as_array_of_tables).into_iter().flatten().map(|bench| bench as &dyn TableLike);
        let list = bench.and_then(Item::as_array).into_iter().flatten().filter_map(Value::as_inline_table);
        sections.chain(list.map(|bench| bench as &dyn TableLike))
    }

    /// Whether its benches can import `name`: not where it is there with a feature alone.
    pub fn depends_on(&self, name: &str) -> bool {
        let tables =
            ["dependencies"].iter().chain(&DEVELOPMENT).filter_map(|key| self.document.get(key)?.as_table_like());
        let is_optional = |known: &Item| known.get("optional").and_then(Item::as_bool) == Some(true);
        tables.into_iter().any(|table| table.get(name).is_some_and(|known| !is_optional(known)))
    }

    /// Where a folder alone is named for infergate, as `init` writes it: the section of that line.
    pub fn section_of_path(&self) -> Option<&'static str> {
        DEVELOPMENT.into_iter().find(|section| {
            let known = self.document.get(section).and_then(|section| section.get("infergate")?.as_inline_table());
            known.is_some_and(|known| known.len() == 1 && known.contains_key("path"))
        })
    }

    /// Its text with infergate as a development dependency and its two bench targets, as far as they are missing. With `is_asked`
    /// `infergate` also comes in place of a folder.
    pub fn with_benches(&self, infergate: &str, is_asked: bool) -> Result<String> {
        let mut document = self.document.clone();
        if let Some(section) = self.section_of_path().filter(|_| is_asked) {
            let known = document[section]["infergate"].as_value_mut().context("Cargo.toml: infergate is no value")?;
            let around = known.decor().clone();
            *known = infergate.parse().with_context(|| format!("infergate = {infergate}"))?;
            *known.decor_mut() = around;
        }
        // What has no place yet comes to the end.
        let mut sections = String::new();
        let mut dependencies = vec![("anyhow", "\"1\""), ("infergate", infergate)];
        dependencies.retain(|(name, _)| !self.depends_on(name));
        let section = DEVELOPMENT.into_iter().find(|name| document.contains_key(name)).unwrap_or(DEVELOPMENT[0]);
        // `[dev-dependencies.NAME]` alone is no section of their own yet.
        let is_section =
            |item: &&mut Item| item.as_table().is_none_or(|table| table.is_dotted() || !table.is_implicit());
        match document.get_mut(section).filter(is_section) {
            _ if dependencies.is_empty() => {}
            Some(known) => {
                add(known, &dependencies).with_context(|| format!("Cargo.toml: {section} cannot be added to"))?
            }
            None => {
                sections += &format!("\n[{section}]\n");
                dependencies.iter().for_each(|(name, value)| sections += &format!("{name} = {value}\n"));
            }
        }
        // There the first target that is named ends the search for those that are not.
        if self.is_of_2015() && self.benches().next().is_none() {
            let package = document.get_mut("package").and_then(Item::as_table_like_mut);
            let package = package.context("Cargo.toml: package is no table")?;
            if !package.contains_key("autobenches") {
                package.insert("autobenches", Item::Value(true.into()));
            }
        }
        for name in BENCHES.into_iter().filter(|name| !self.names().any(|known| known == *name)) {
            match document.get_mut("bench") {
                Some(Item::Value(Value::Array(list))) => {
                    list.push(InlineTable::from_iter([("name", Value::from(name)), ("harness", Value::from(false))]));
                }
                None | Some(Item::ArrayOfTables(_)) => {
                    sections += &format!("\n[[bench]]\nname = \"{name}\"\nharness = false\n");
                }
                Some(_) => anyhow::bail!("Cargo.toml: bench is no list of targets"),
            }
        }
        let mut text = document.to_string();
        if !sections.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &sections;
        if self.is_crlf {
            text = text.replace('\n', "\r\n");
        }
        // What was added is read back as a whole.
        let grown = Self::parse(&text).context("add infergate and its bench targets by hand")?;
        ensure!(
            grown.depends_on("infergate") && BENCHES.iter().all(|name| grown.names().any(|known| known == *name)),
            "Cargo.toml: cannot be added to; add infergate and its bench targets by hand"
        );
        Ok(text)
    }
}

/// Adds `dependencies` to a table: in its order where it has one, else at its end.
fn add(item: &mut Item, dependencies: &[(&str, &str)]) -> Result<()> {
    // Before the first of dotted keys stands what the file begins with.
    let is_dotted = item.as_table().is_some_and(|table| table.is_dotted());
    let table = item.as_table_like_mut().context("it is no table")?;
    let is_sorted = !is_dotted && table.iter().map(|(name, _)| name).is_sorted();
    for (name, value) in dependencies {
        table.insert(name, Item::Value(value.parse().with_context(|| format!("{name} = {value}"))?));
    }
    if is_sorted {
        table.sort_values();
    }
    Ok(())
}

/// The lines of `after` that `before` has not, each of which came or was changed.
pub fn new_lines(before: &str, after: &str) -> String {
    let mut known = before.lines().peekable();
    let mut lines = after.lines();
    let mut new = String::new();
    while let Some(line) = lines.next() {
        while known.next_if(|known| *known != line && !lines.clone().any(|later| later == *known)).is_some() {}
        if known.next_if_eq(&line).is_none() {
            new += line;
            new.push('\n');
        }
    }
    new
}
