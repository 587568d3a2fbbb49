//! [`ModelFiles`]: which files of a directory make a model, and what its config.json says it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use infergate_core::text_file::read_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Weights in one file.
const WEIGHTS: &str = "model.safetensors";

/// The architectures read from safetensors, for error messages.
const SUPPORTED: &str = "gpt2, llama, qwen2 and qwen3";

/// The files of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFiles {
    /// Its config.json.
    pub config: PathBuf,
    /// Its safetensors, one or several.
    pub weights: Vec<PathBuf>,
    /// Its tokenizer.json, if it has one.
    pub tokenizer: Option<PathBuf>,
}

impl ModelFiles {
    /// Finds the files in `directory`.
    ///
    /// # Errors
    /// Naming what is not there.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        let what = directory.display();
        ensure!(
            directory.is_dir(),
            "there is no directory {what}; give a directory, a .gguf file, hf:ORG/NAME or synthetic:gpt2"
        );
        Self::find(&|name| Ok(Some(directory.join(name)).filter(|path| path.is_file())), &|name| {
            format!("the directory {what} has no {name}; a model needs config.json and model.safetensors")
        })
    }

    /// Finds the files by `look`, which gives a file's place where there is one; `missing` says what is wrong where there is none.
    ///
    /// # Errors
    /// Naming what is not there; an architecture that is not supported, before anything large is looked for.
    pub fn find(look: &dyn Fn(&str) -> Result<Option<PathBuf>>, missing: &dyn Fn(&str) -> String) -> Result<Self> {
        let needed = |name: &str| look(name)?.with_context(|| missing(name));
        let config = needed("config.json")?;
        architecture(&read_json(&config)?)?;
        let weights = match look(WEIGHTS)? {
            Some(file) => vec![file],
            // The list of shards, where the weights are in several files.
            None => match look("model.safetensors.index.json")? {
                Some(index) => shards(&index)?.iter().map(|shard| needed(shard)).collect::<Result<_>>()?,
                None => vec![needed(WEIGHTS)?],
            },
        };
        Ok(Self { config, weights, tokenizer: look("tokenizer.json")? })
    }
}

/// The names of the shards in a model.safetensors.index.json, each a plain file name.
///
/// # Errors
/// When the file is damaged or names a file outside the model's directory.
fn shards(index: &Path) -> Result<BTreeSet<String>> {
    let list: Index = read_json(index)?;
    let names: BTreeSet<String> = list.weight_map.into_values().collect();
    for name in &names {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':', '\0']);
        ensure!(plain, "{} names a shard `{name}`, which is no plain file name", index.display());
    }
    Ok(names)
}

/// The one field that is needed of a list of shards: which file has a weight.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Largest description of a model that is read. Lists of shards have a hundred bytes for each weight.
const MAX_JSON_BYTES: u64 = 16 << 20;

/// Reads a file that describes a model.
///
/// # Errors
/// When it cannot be read, is too large or is no JSON, with line and column.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_text(path, MAX_JSON_BYTES)?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged; download it again", path.display()))
}

/// What config.json says the model is: one of the supported architectures.
///
/// # Errors
/// Naming the supported ones.
pub fn architecture(config: &Value) -> Result<&str> {
    match config.get("model_type").and_then(Value::as_str) {
        Some(name @ ("gpt2" | "llama" | "qwen2" | "qwen3")) => Ok(name),
        Some(other) => bail!("architecture `{other}` is not supported; supported are {SUPPORTED}"),
        None => bail!("config.json has no model_type; supported are {SUPPORTED}"),
    }
}
