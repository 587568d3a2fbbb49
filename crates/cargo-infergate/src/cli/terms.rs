//! What head changes of the gate that judges it: `infergate.toml` as base has it, and as head has it.
//!
//! A pull request may change the file, and it is judged by the file as it then stands. So that no limit is loosened in silence,
//! each key that differs is named in the verdict.

use std::collections::BTreeMap;
use std::path::Path;

use crate::receipt::Note;
use anyhow::{Context, Result};
use infergate::config::keys::{KEYS, Key, Value, commented_file};
use infergate::config::{FILE_NAME, MAX_FILE_BYTES, Settings, find_file};
use infergate::text_file::read_text;

/// Where files are kept says nothing of how head is judged.
const NOT_A_TERM: &str = "base_folder";

/// As many characters of a value are shown.
const SHOWN: usize = 300;

/// The keys whose values differ between the files that hold for both folders; defaults count as given.
///
/// # Errors
/// A file that cannot be read or understood.
pub fn changes(base: &Path, head: &Path) -> Result<Vec<Note>> {
    let (was, is) = (Written::of(base).context("base")?, Written::of(head)?);
    let text = |written: &Written, key: &Key| {
        let value = written.0.get(key.name).map_or_else(|| "left out".to_owned(), toml);
        if value.chars().count() > SHOWN { value.chars().take(SHOWN).chain(['…']).collect() } else { value }
    };
    let differs = |key: &&Key| key.name != NOT_A_TERM && was.0.get(key.name) != is.0.get(key.name);
    let change = |key: &Key| Note::GateChanged { key: key.name.to_owned(), was: text(&was, key), is: text(&is, key) };
    Ok(KEYS.iter().filter(differs).map(change).collect())
}

/// Values as they are written, paths included: two checkouts lie in other folders.
#[derive(Debug, Default)]
struct Written(BTreeMap<&'static str, Value>);

impl Settings for Written {
    fn set(&mut self, key: &Key, value: Value) -> Result<()> {
        self.0.insert(key.name, value);
        Ok(())
    }
}

impl Written {
    fn of(folder: &Path) -> Result<Self> {
        let mut written = Self::default();
        written.apply_file(Path::new(FILE_NAME), &commented_file())?;
        if let Some(path) = find_file(folder) {
            let text = read_text(&path, MAX_FILE_BYTES)?;
            written.apply_file(Path::new(FILE_NAME), &text)?;
        }
        Ok(written)
    }
}

/// A value as `infergate.toml` writes it.
fn toml(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Switch(on) => on.to_string(),
        Value::List(list) => {
            format!("[{}]", list.iter().map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", "))
        }
    }
}
