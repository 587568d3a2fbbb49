//! [`ModelFiles`]: which files of a directory make a model, and what its config.json says it is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// config.json, the name every model directory has.
pub const CONFIG: &str = "config.json";
/// tokenizer.json; a directory may lack it.
pub const TOKENIZER: &str = "tokenizer.json";
/// Weights in one file.
pub const WEIGHTS: &str = "model.safetensors";
/// The list of shards, where the weights are in several files.
pub const WEIGHTS_INDEX: &str = "model.safetensors.index.json";

/// The architectures read from safetensors, for error messages.
const SUPPORTED: &str = "gpt2, llama, qwen2 and qwen3";

/// The files of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let present = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
        let needed = |name: &str| {
            present(name).with_context(|| {
                format!("the directory {what} has no {name}; a model needs config.json and model.safetensors")
            })
        };
        let config = needed(CONFIG)?;
        let weights = match (present(WEIGHTS), present(WEIGHTS_INDEX)) {
            (None, Some(index)) => shards(&index)?.iter().map(|shard| needed(shard)).collect::<Result<_>>()?,
            _ => vec![needed(WEIGHTS)?],
        };
        Ok(Self { config, weights, tokenizer: present(TOKENIZER) })
    }
}

/// The names of the shards in a model.safetensors.index.json, each a plain file name.
///
/// # Errors
/// When the file is damaged or names a file outside the model's directory.
pub fn shards(index: &Path) -> Result<BTreeSet<String>> {
    let bytes = read_at_most(index, MAX_INDEX_BYTES)?;
    let list: Index = serde_json::from_slice(&bytes).map_err(|error| {
        let why = if error.is_data() { "has no weight_map, or one with no plain file name" } else { "is no JSON" };
        anyhow!("{} {why}; download it again ({error})", index.display())
    })?;
    let Shards(names) = list.weight_map;
    for name in &names {
        let strange = |c: char| c.is_control() || ['/', '\\', ':'].contains(&c);
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(strange);
        ensure!(plain, "{} names a shard `{name}`, which is no plain file name", index.display());
    }
    ensure!(!names.is_empty(), "{} lists no shards; download it again", index.display());
    Ok(names)
}

/// The one field that is needed of a list of shards.
#[derive(Deserialize)]
struct Index {
    weight_map: Shards,
}

/// The files that a map of weights names, each once; nothing else of it is kept.
struct Shards(BTreeSet<String>);

impl<'de> Deserialize<'de> for Shards {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ShardVisitor).map(Self)
    }
}

struct ShardVisitor;

impl<'de> Visitor<'de> for ShardVisitor {
    type Value = BTreeSet<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from weights to files")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((_, name)) = map.next_entry::<IgnoredAny, Cow<'_, str>>()? {
            if names.contains(&*name) {
                continue;
            }
            if names.len() == MAX_SHARDS {
                return Err(A::Error::custom(format_args!("it names more than {MAX_SHARDS} files")));
            }
            names.insert(name.into_owned());
        }
        Ok(names)
    }
}

/// The largest config.json that is read; published ones have a few kilobytes. A value of it can take a hundred times as much.
const MAX_CONFIG_BYTES: u64 = 128 << 10;
/// The largest list of shards that is read: a hundred bytes for each weight.
const MAX_INDEX_BYTES: u64 = 16 << 20;
/// No model is in more files.
const MAX_SHARDS: usize = 10_000;

/// Reads a config.json.
///
/// # Errors
/// When it cannot be read, is too large or is no JSON, with line and column.
pub fn read_config(path: &Path) -> Result<Value> {
    let bytes = read_at_most(path, MAX_CONFIG_BYTES)?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no JSON; download it again", path.display()))
}

/// The content of a regular file of at most `limit_bytes`.
///
/// # Errors
/// When it is none, is larger, or cannot be read.
pub fn read_at_most(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let what = path.display();
    let file = fs::metadata(path).with_context(|| format!("cannot read {what}"))?;
    ensure!(file.is_file(), "cannot read {what}: it is no regular file");
    let length = file.len();
    ensure!(length <= limit_bytes, "{what} has {length} bytes and no more than {limit_bytes} are read");
    // Room that grows by doubling would be twice the file.
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_or(0, |bytes| bytes + 1));
    let file = fs::File::open(path).with_context(|| format!("cannot read {what}"))?;
    // Some files of the system are longer than they say.
    file.take(limit_bytes).read_to_end(&mut bytes).with_context(|| format!("cannot read {what}"))?;
    Ok(bytes)
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
