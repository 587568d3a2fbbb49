//! `infergate.toml` and the environment, as a bench target takes them.
//!
//! A key `threads` can be given as `threads = 5` in `infergate.toml` and as `INFERGATE_THREADS=5`; the variable wins. A key of a
//! table, `memory.runs`, is `INFERGATE_MEMORY_RUNS`. Values are words until they are put where they belong: a file, a variable and a
//! flag of the command follow the same rules.

mod file;

use std::collections::BTreeMap;
use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};

use crate::case::Case;
use crate::engine::LoadRequest;
use crate::receipt::limits::MAX_NUMBER;
use crate::text_file::read_text;

pub use file::{Entry, KEYS, entries};

/// The file's name.
pub const FILE_NAME: &str = "infergate.toml";

/// Nobody writes more keys than this, bytes. Read as TOML they can take 140 times as much.
pub const MAX_FILE_BYTES: u64 = 64 << 10;
/// A prompt beyond this is no prompt of any model's context, bytes.
const MAX_PROMPT_BYTES: u64 = 64 << 20;

/// The keys that a bench target takes.
const OWN_KEYS: [&str; 9] =
    ["model", "dtype", "threads", "seed", "options", "prompt", "cases", "memory.case", "memory.runs"];

/// Allowed threads.
pub const THREADS: RangeInclusive<u64> = 1..=4096;
/// Allowed seeds: a receipt has no larger number.
pub const SEEDS: RangeInclusive<u64> = 0..=MAX_NUMBER;
/// Allowed runs of the memory phase.
pub const MEMORY_RUNS: RangeInclusive<u64> = 0..=5000;

/// What a bench target takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The model's spec, for the engine to read.
    pub model: String,
    /// The compute type; `None`: as the model's file has it.
    pub dtype: Option<String>,
    /// Threads to compute with, at least 1.
    pub threads: usize,
    /// Seed of synthetic weights and prompts.
    pub seed: u64,
    /// What else the engine understands, by name.
    pub options: BTreeMap<String, String>,
    /// The text file that prompts are cut from; `None`: the text that comes with the crate.
    pub prompt: Option<PathBuf>,
    /// Case ids or globs; empty: the suite of whoever asks.
    pub cases: Vec<String>,
    /// The memory phase.
    pub memory: MemoryConfig,
}

/// The memory phase, `[memory]`.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryConfig {
    /// The case that is repeated.
    pub case: Case,
    /// How often it runs in one process; 0 leaves the phase out of the gate.
    pub runs: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: "synthetic:gpt2".into(),
            dtype: None,
            threads: available_parallelism().map_or(1, usize::from),
            seed: 1,
            options: BTreeMap::new(),
            prompt: None,
            cases: Vec::new(),
            memory: MemoryConfig { case: Case::Generate { prompt_tokens: 128, output_tokens: 16 }, runs: 100 },
        }
    }
}

impl Config {
    /// The file in `folder` or the nearest above it (up to the repository's root), then the environment.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML (with line and column), an unknown key (with the nearest known one), a
    /// value out of range.
    pub fn load(folder: &Path) -> Result<Self> {
        let mut config = Self::default();
        if let Some(path) = find_file(folder) {
            for entry in entries(&path, &read_text(&path, MAX_FILE_BYTES)?)? {
                config.set(entry.key, &entry.words).with_context(|| format!("{}: {}", entry.place, entry.key))?;
            }
        }
        config.with_environment()
    }

    /// The environment alone. A worker is told everything by the program that starts it: the file it would find may be a
    /// newer one than it can read.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_environment() -> Result<Self> {
        Self::default().with_environment()
    }

    fn with_environment(mut self) -> Result<Self> {
        for key in OWN_KEYS {
            if let Some(value) = variable(key)? {
                // A list has commas between its entries.
                let is_list = ["options", "cases"].contains(&key);
                let words = if is_list { list(&[value]) } else { vec![value.trim().to_owned()] };
                self.set(key, &words).with_context(|| variable_name(key))?;
            }
        }
        Ok(self)
    }

    /// Sets `key` from its words. A key of the command alone is not for a bench target.
    fn set(&mut self, key: &str, words: &[String]) -> Result<()> {
        let word = || match words {
            [word] if !word.is_empty() => Ok(word.as_str()),
            _ => bail!("give one text that is not empty"),
        };
        match key {
            "options" => self.options = options(words)?,
            "cases" => self.cases = words.iter().map(|pattern| case_pattern(pattern)).collect::<Result<_>>()?,
            "model" => self.model = word()?.into(),
            "dtype" => self.dtype = Some(word()?.into()),
            "threads" => self.threads = number(word()?, THREADS)? as usize,
            "seed" => self.seed = number(word()?, SEEDS)?,
            "prompt" => self.prompt = Some(word()?.into()),
            "memory.case" => self.memory.case = word()?.parse()?,
            "memory.runs" => self.memory.runs = number(word()?, MEMORY_RUNS)? as usize,
            _ => {}
        }
        Ok(())
    }

    /// What an engine factory is asked for. A model that is a path is whole: a worker runs in the folder of its package.
    pub fn load_request(&self) -> LoadRequest {
        let is_path = is_a_path_from(&self.model, Path::new(""));
        let whole = is_path.then(|| std::path::absolute(&self.model).ok()).flatten();
        LoadRequest {
            model: whole.map_or_else(|| self.model.clone(), |path| path.to_string_lossy().into_owned()),
            dtype: self.dtype.clone(),
            threads: self.threads,
            seed: self.seed,
            options: self.options.clone(),
        }
    }

    /// The text of the key `prompt`; `None` where it is not set, and prompts are cut from [`prompt::TEXT`](crate::prompt::TEXT).
    ///
    /// # Errors
    /// A file that cannot be read. The text itself never shows in an error.
    pub fn own_prompt_text(&self) -> Result<Option<String>> {
        let read =
            |path| read_text(path, MAX_PROMPT_BYTES).context("the prompt cannot be read; give a UTF-8 text file");
        self.prompt.as_deref().map(read).transpose()
    }

    /// Where receipts go that nobody named a place for.
    pub fn target_folder(&self) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        target.join("infergate")
    }
}

fn number(word: &str, range: RangeInclusive<u64>) -> Result<u64> {
    let number = word.parse().ok().filter(|number| range.contains(number));
    number.with_context(|| format!("'{word}' is no whole number from {} to {}", range.start(), range.end()))
}

/// The environment variable of a key: `INFERGATE_MEMORY_RUNS`.
pub fn variable_name(key: &str) -> String {
    format!("INFERGATE_{}", key.replace('.', "_").to_uppercase())
}

/// The value of that variable; `None` where it is not set, or empty.
///
/// # Errors
/// A value that is no text.
pub fn variable(key: &str) -> Result<Option<String>> {
    let name = variable_name(key);
    let Some(value) = env::var_os(&name).filter(|value| !value.is_empty()) else { return Ok(None) };
    value.into_string().ok().map(Some).with_context(|| format!("{name}: is not UTF-8"))
}

/// The entries of a list: each word's, between its commas.
pub fn list(words: &[String]) -> Vec<String> {
    let entries = words.iter().flat_map(|word| between_commas(word)).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// The entries between commas. One within brackets, as in a bench's name `mul/(16, 32)`, parts nothing, where each bracket has its other.
fn between_commas(word: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in word.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&word[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if depth != 0 {
        return word.split(',').collect();
    }
    found.push(&word[from..]);
    found
}

/// A name or pattern of cases. One is checked where the cases are known; an id of ours can be checked now.
///
/// # Errors
/// An id of ours that is none.
pub fn case_pattern(text: &str) -> Result<String> {
    let is_ours = ["prefill/", "decode/", "generate/"].iter().any(|phase| text.starts_with(phase));
    if is_ours && !text.contains(['*', '?']) {
        text.parse::<Case>()?;
    }
    Ok(text.to_owned())
}

/// `NAME=VALUE` each. Lists are split at commas: an entry without a name belongs to the value before it. No value shows in an error,
/// since it can be a secret.
///
/// # Errors
/// A first entry without a name.
pub fn options(entries: &[String]) -> Result<BTreeMap<String, String>> {
    let mut options: Vec<(String, String)> = Vec::new();
    for entry in entries {
        match (entry.split_once('='), options.last_mut()) {
            (Some((name, value)), _) if !name.trim().is_empty() => options.push((name.trim().into(), value.into())),
            (None, Some((_, value))) => *value += &format!(",{entry}"),
            _ => bail!("options are NAME=VALUE each, and one has no name"),
        }
    }
    Ok(options.into_iter().collect())
}

/// Whether `text` is a path that counts from `folder`: it looks like one, or names a file or folder there.
fn is_a_path_from(text: &str, folder: &Path) -> bool {
    !text.is_empty() && (looks_like_a_path(text) || folder.join(text).exists())
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
