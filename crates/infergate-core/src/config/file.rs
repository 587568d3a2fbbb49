//! From the text of `infergate.toml` to keys and values, each with its place.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml_span::value::{Table, ValueInner};

use super::keys::{KEYS, Key, Kind, Value, bare_ratio};

/// Tables of the file that are no keys. Whoever uses them reads and checks them.
const NO_KEYS: [&str; 2] = ["scenario", "accept"];

/// One key of the file.
pub struct Entry {
    /// Which.
    pub key: &'static Key,
    /// Its value, not yet checked for range.
    pub value: Value,
    /// File, line and column.
    pub place: String,
}

/// Every key in `text`.
///
/// # Errors
/// Text that is not TOML, unknown keys, values of another kind; each with line and column.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Entry>> {
    let place = |offset: usize| {
        let before = &text[..offset.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", path.display())
    };
    let mut root = match toml_span::parse(text) {
        Ok(root) => root,
        Err(error) => {
            bail!("{}: not TOML: {}", place(error.span.start), error.to_string().lines().next().unwrap_or_default())
        }
    };
    let mut entries = Vec::new();
    if let ValueInner::Table(table) = root.take() {
        collect(table, "", &place, &mut entries)?;
    }
    Ok(entries)
}

fn collect(table: Table, prefix: &str, place: &dyn Fn(usize) -> String, entries: &mut Vec<Entry>) -> Result<()> {
    for (name, mut value) in table {
        let full = format!("{prefix}{}", name.name);
        if NO_KEYS.contains(&full.as_str()) {
            continue;
        }
        let here = place(name.span.start);
        let holds_keys = KEYS.iter().any(|key| key.name.starts_with(&format!("{full}.")));
        let value = value.take();
        if holds_keys {
            if let ValueInner::Table(inner) = value {
                collect(inner, &format!("{full}."), place, entries)?;
                continue;
            }
            bail!("{here}: '{full}' is a table of keys; write [{full}]");
        }
        let Some(key) = Key::find(&full) else {
            bail!("{here}: unknown key '{full}'; {}", remedy(&full));
        };
        let Some(value) = convert(value) else {
            bail!("{here}: {full} takes {}", key.expected());
        };
        let value = widen(key, value).with_context(|| format!("{here}: {full}"))?;
        entries.push(Entry { key, value, place: here });
    }
    Ok(())
}

fn convert(value: ValueInner) -> Option<Value> {
    match value {
        ValueInner::String(text) => Some(Value::Text(text.into_owned())),
        ValueInner::Integer(count) => u64::try_from(count).ok().map(Value::Count),
        ValueInner::Float(number) => Some(Value::Number(number)),
        ValueInner::Boolean(on) => Some(Value::Switch(on)),
        ValueInner::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map(Value::List)
        }
        ValueInner::Table(_) => None,
    }
}

/// `3` is a number too, and `"5%"` a ratio.
fn widen(key: &Key, value: Value) -> Result<Value> {
    match (key.kind, value) {
        (Kind::Number(..), Value::Count(count)) => Ok(Value::Number(count as f64)),
        (Kind::Ratio(..), Value::Count(count)) => bare_ratio(count as f64),
        (Kind::Ratio(..), Value::Number(number)) => bare_ratio(number),
        (Kind::Ratio(..), Value::Text(text)) => key.parse_words(&[text]),
        (_, value) => Ok(value),
    }
}

/// What to do about `name`, which is no key: the known key or table that it most likely means, where one is near.
fn remedy(name: &str) -> String {
    // The distance takes the product of both lengths; no key is that long.
    let name: &str = &name.chars().take(100).collect::<String>();
    let tables = KEYS.iter().filter_map(|key| key.name.split_once('.')).map(|(table, _)| table).chain(NO_KEYS);
    let distance = |known: &&str| {
        let bare = known.rsplit('.').next().unwrap_or(known);
        strsim::damerau_levenshtein(name, known).min(strsim::damerau_levenshtein(name, bare))
    };
    let nearest = KEYS.iter().map(|key| key.name).chain(tables).min_by_key(distance);
    match nearest.filter(|known| distance(known) <= (name.len() / 3).max(2)) {
        Some(known) => format!("did you mean '{known}'?"),
        None => "the command schema prints all keys".into(),
    }
}
