//! From the text of `infergate.toml` to keys and their words, each with its place.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use toml_span::value::{Table, ValueInner};

use super::is_a_path_from;

/// Every key of the file, in its order. The command takes more than a bench target, which refuses a misspelt one all the same.
#[rustfmt::skip]
pub const KEYS: [&str; 42] = [
    "model", "dtype", "threads", "seed", "options", "prompt", "cases", "runs", "seconds_per_case",
    "threshold", "mean_threshold", "widest", "inconclusive", "require_baseline", "drift_tolerance", "counter_tolerance",
    "targets", "baselines", "base_folder", "memory.case", "memory.runs",
    "bench.package", "bench.target", "bench.features", "bench.default_features", "bench.profile", "bench.carry",
    "worker.command", "worker.build", "worker.check_output",
    "server.command", "server.build", "server.ready", "server.ready_s", "server.model", "server.api", "server.ignore_eos",
    "server.check_output", "server.users", "server.window_s", "server.throughput_limit", "server.latency_limit",
];
/// Tables of the file that are no keys. The command reads and checks them.
const TABLES: [&str; 2] = ["scenario", "accept"];

/// One key of the file.
pub struct Entry {
    /// Its name, with its table's in front: `memory.runs`.
    pub key: &'static str,
    /// Its value; the entries of a list.
    pub words: Vec<String>,
    /// File, line and column.
    pub place: String,
}

/// Every key in `text`, which is that of the file `path`.
///
/// # Errors
/// Text that is not TOML, unknown keys, tables in place of values; each with line and column.
pub fn entries(path: &Path, text: &str) -> Result<Vec<Entry>> {
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
    let folder = path.parent().unwrap_or(Path::new(""));
    for Entry { key, words, .. } in &mut entries {
        let is_path = |word: &str| match *key {
            "prompt" | "baselines" | "base_folder" => true,
            // A spec is the engine's business; one that is a path counts from here, whether the file is there or not.
            "model" => is_a_path_from(word, folder),
            _ => false,
        };
        for word in words.iter_mut().filter(|word| !word.is_empty() && is_path(word)) {
            *word = folder.join(&*word).to_string_lossy().into_owned();
        }
    }
    Ok(entries)
}

fn collect(table: Table, prefix: &str, place: &dyn Fn(usize) -> String, entries: &mut Vec<Entry>) -> Result<()> {
    for (name, mut value) in table {
        let full = format!("{prefix}{}", name.name);
        if TABLES.contains(&full.as_str()) {
            continue;
        }
        let here = place(name.span.start);
        let holds_keys = KEYS.iter().any(|key| key.starts_with(&format!("{full}.")));
        match (value.take(), KEYS.iter().find(|key| **key == full)) {
            (ValueInner::Table(inner), _) if holds_keys => collect(inner, &format!("{full}."), place, entries)?,
            _ if holds_keys => bail!("{here}: '{full}' is a table of keys; write [{full}]"),
            (_, None) => bail!("{here}: unknown key '{full}'; {}", remedy(&full)),
            (value, Some(key)) => {
                let words = words(value).with_context(|| format!("{here}: {full} takes a value or a list of texts"))?;
                entries.push(Entry { key, words, place: here });
            }
        }
    }
    Ok(())
}

/// As a flag would be given.
fn words(value: ValueInner) -> Option<Vec<String>> {
    match value {
        ValueInner::String(text) => Some(vec![text.into_owned()]),
        ValueInner::Integer(number) => Some(vec![number.to_string()]),
        ValueInner::Float(number) => Some(vec![number.to_string()]),
        ValueInner::Boolean(on) => Some(vec![on.to_string()]),
        ValueInner::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        ValueInner::Table(_) => None,
    }
}

/// What to do about `name`, which is no key: the known key or table that it most likely means, where one is near.
fn remedy(name: &str) -> String {
    let tables = KEYS.iter().filter_map(|key| key.split_once('.')).map(|(table, _)| table).chain(TABLES);
    let distance = |known: &&str| {
        let bare = known.rsplit('.').next().unwrap_or(known);
        strsim::damerau_levenshtein(name, known).min(strsim::damerau_levenshtein(name, bare))
    };
    let nearest = KEYS.into_iter().chain(tables).min_by_key(distance);
    match nearest.filter(|known| distance(known) <= (name.len() / 3).max(2)) {
        Some(known) => format!("did you mean '{known}'?"),
        None => "the command schema prints all keys".into(),
    }
}
