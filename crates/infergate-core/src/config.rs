//! `infergate.toml`, environment variables and flags: one table of keys, and what a bench target takes of it.
//!
//! A key `runs` can be given as `runs = 5` in `infergate.toml`, as `INFERGATE_RUNS=5` and as `--runs 5`; the later wins. A
//! key of a table, `bench.package`, is `INFERGATE_BENCH_PACKAGE` and `--bench-package`.
//!
//! The table holds the keys of the gate too, so that a bench target refuses a misspelt one; it takes its own and leaves the
//! others to the gate. Both are [`Settings`].

mod fields;
mod file;
pub mod keys;

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};

use crate::case::Case;
use crate::engine::LoadRequest;
use crate::prompt;
use crate::settings;
use crate::text_file::read_text;
use keys::{KEYS, Key, Kind, Value};

pub use fields::FromValue;

/// The file's name.
pub const FILE_NAME: &str = "infergate.toml";

/// Nobody writes more keys than this, bytes. Read as TOML they can take 140 times as much.
pub const MAX_FILE_BYTES: u64 = 64 << 10;
/// A prompt beyond this is no prompt of any model's context, bytes.
const MAX_PROMPT_BYTES: u64 = 64 << 20;

/// Something that keys set.
pub trait Settings: Default {
    /// Takes `value`, which is of the key's kind and in its range. A key that belongs to others is left alone.
    ///
    /// # Errors
    /// A value that its kind allows and its meaning does not.
    fn set(&mut self, key: &Key, value: Value) -> Result<()>;

    /// The folder of the file that was found, before its keys are set: defaults that are paths count from there.
    fn found_in(&mut self, _folder: &Path) {}

    /// Takes the tables of the file `path` that are no keys, of `text`. Whoever has no use for them leaves them alone.
    ///
    /// # Errors
    /// A table that is not sound.
    fn set_tables(&mut self, _path: &Path, _text: &str) -> Result<()> {
        Ok(())
    }

    /// The file in `folder` or the nearest above it (up to the repository's root), then the environment.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML (with line and column), an unknown key (with the nearest known one), a
    /// value out of range.
    fn load(folder: &Path) -> Result<Self> {
        let mut settings = Self::default();
        if let Some(path) = find_file(folder) {
            let text = read_text(&path, MAX_FILE_BYTES)?;
            settings.found_in(path.parent().unwrap_or(Path::new("")));
            settings.apply_file(&path, &text)?;
        }
        settings.apply_environment()?;
        Ok(settings)
    }

    /// The environment alone. A worker is told everything by the program that starts it: the file it would find may be a
    /// newer one than it can read.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn from_environment() -> Result<Self> {
        let mut settings = Self::default();
        settings.apply_environment()?;
        Ok(settings)
    }

    /// Overlays the environment variables that are set and not empty.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn apply_environment(&mut self) -> Result<()> {
        for key in KEYS {
            let name = key.environment();
            if let Some(value) = env::var_os(&name).filter(|value| !value.is_empty()) {
                let value = value.into_string().ok().with_context(|| format!("{name}: is not UTF-8"))?;
                self.apply_text(key, &[value]).with_context(|| name.clone())?;
            }
        }
        Ok(())
    }

    /// Overlays the keys of `text`, which stands in the file `path`; paths in it are relative to its folder.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn apply_file(&mut self, path: &Path, text: &str) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new(""));
        for entry in file::parse(path, text)? {
            let key = entry.key;
            let value = match key.kind {
                Kind::Path => entry.value.relative_to(folder),
                // A spec is the engine's business; one that is a path counts from here, whether the file is there or not.
                _ if key.name == "model" && entry.value.is_a_path_from(folder) => entry.value.relative_to(folder),
                _ => entry.value,
            };
            key.check(&value).and_then(|()| self.set(key, value)).with_context(|| entry.place)?;
        }
        self.set_tables(path, text)
    }

    /// Sets `key` from a flag's or variable's words. A list is several words, or one with commas between its entries.
    ///
    /// # Errors
    /// A value that is not of the key's kind or out of its range, by the key's name.
    fn apply_text(&mut self, key: &Key, words: &[String]) -> Result<()> {
        let value = key.parse_words(words)?;
        key.check(&value)?;
        self.set(key, value)
    }
}

settings! {
    /// What a bench target takes. Each field with a key is that key in [`keys::KEYS`], which has its range.
    Config {
        /// The model's spec, for the engine to read.
        model: String = "synthetic:gpt2".into(), "model";
        /// The compute type; `None`: as the model's file has it.
        dtype: Option<String> = None, "dtype";
        /// Threads to compute with, at least 1.
        threads: usize = available_parallelism().map_or(1, usize::from), "threads";
        /// Seed of synthetic weights and prompts.
        seed: u64 = 1, "seed";
        /// What else the engine understands, by name.
        options: BTreeMap<String, String> = BTreeMap::new(), "options";
        /// The text file that prompts are cut from; `None`: the text that comes with the crate.
        prompt: Option<PathBuf> = None, "prompt";
        /// Case ids or globs; empty: the suite of whoever asks.
        cases: Vec<String> = Vec::new(), "cases";
        /// The memory phase.
        memory: MemoryConfig = MemoryConfig::default();
    }
}

settings! {
    /// The memory phase, `[memory]`.
    MemoryConfig {
        /// The case that is repeated.
        case: Case = Case::Generate { prompt_tokens: 128, output_tokens: 16 }, "memory.case";
        /// How often it runs in one process; 0 leaves the phase out of the gate.
        runs: usize = 100, "memory.runs";
    }
}

impl Settings for Config {
    fn set(&mut self, key: &Key, value: Value) -> Result<()> {
        // A key that is neither's belongs to the gate.
        let _ = self.put(key, &value)? || self.memory.put(key, &value)?;
        ensure_cases(&self.cases)
    }
}

impl Config {
    /// What an engine factory is asked for. A model that is a path is whole: a worker runs in the folder of its package.
    pub fn load_request(&self) -> LoadRequest {
        let is_path = Value::Text(self.model.clone()).is_a_path_from(Path::new(""));
        let whole = is_path.then(|| std::path::absolute(&self.model).ok()).flatten();
        LoadRequest {
            model: whole.map_or_else(|| self.model.clone(), |path| path.to_string_lossy().into_owned()),
            dtype: self.dtype.clone(),
            threads: self.threads,
            seed: self.seed,
            options: self.options.clone(),
        }
    }

    /// The text prompts are cut from.
    ///
    /// # Errors
    /// When the file of the key `prompt` cannot be read. The text itself never shows in an error.
    pub fn prompt_text(&self) -> Result<String> {
        match &self.prompt {
            None => Ok(prompt::TEXT.to_owned()),
            Some(path) => {
                read_text(path, MAX_PROMPT_BYTES).context("the prompt cannot be read; give a UTF-8 text file")
            }
        }
    }

    /// Where receipts go that nobody named a place for.
    pub fn target_folder(&self) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        target.join("infergate")
    }
}

/// A pattern, or the name of a bench, is checked where the cases are known; an id of ours can be checked now.
fn ensure_cases(list: &[String]) -> Result<()> {
    let of_ours = |id: &str| ["prefill/", "decode/", "generate/"].iter().any(|phase| id.starts_with(phase));
    let mut ids = list.iter().filter(|id| of_ours(id) && !id.contains(['*', '?']));
    ids.try_for_each(|id| id.parse::<Case>().map(drop))
}

/// `NAME=VALUE` each. Flags and variables are split at commas: a piece without a name belongs to the value before it. No value
/// shows in an error, since it can be a secret.
impl FromValue for BTreeMap<String, String> {
    fn from_value(value: &Value) -> Result<Self> {
        let mut options: Vec<(String, String)> = Vec::new();
        for entry in value.to::<Vec<String>>()? {
            match (entry.split_once('='), options.last_mut()) {
                (Some((name, value)), _) if !name.trim().is_empty() => options.push((name.trim().into(), value.into())),
                (None, Some((_, value))) => *value += &format!(",{entry}"),
                _ => bail!("options are NAME=VALUE each, and one has no name"),
            }
        }
        Ok(options.into_iter().collect())
    }
}

/// Whether a model spec can only mean a file or a folder: it ends as a model file does, or begins as a path does. Everything
/// else is the engine's business, `ORG/NAME` and `http://...` included.
pub fn looks_like_a_path(spec: &str) -> bool {
    let scheme = spec.split_once(':').map_or("", |(scheme, _)| scheme);
    // One letter before a colon is a drive.
    let has_scheme = scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let lower = spec.to_ascii_lowercase();
    let ends_as_file = [".gguf", ".safetensors"].iter().any(|end| lower.ends_with(end));
    let begins_as_path =
        ["./", "../", "~/"].iter().any(|start| spec.starts_with(start)) || Path::new(spec).is_absolute();
    !has_scheme && (ends_as_file || begins_as_path)
}

/// The `infergate.toml` that holds in `folder`: its own, or the nearest above it up to the repository's root.
pub fn find_file(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let path = folder.join(FILE_NAME);
        // Also one that is no file, or a link to nowhere: passed over, it would be defaults in silence.
        if path.symlink_metadata().is_ok() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}
