//! [`ModelSpec`]: the words that name a model, the same on every command line and in `infergate.toml`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Error, Result, bail, ensure};

/// The synthetic models: a published architecture with seeded weights, nothing downloaded.
pub const SYNTHETIC: [&str; 4] = ["gpt2", "distilgpt2", "smollm2-135m", "tiny"];

/// Every form a spec can have, for error messages.
const FORMS: &str = "synthetic:NAME (gpt2, distilgpt2, smollm2-135m or tiny), a .gguf file, a directory with config.json and safetensors, or hf:ORG/NAME[@REVISION][/FILE.gguf]";

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSpec {
    /// `synthetic:NAME`, one of [`SYNTHETIC`].
    Synthetic(String),
    /// A path that ends in `.gguf`.
    Gguf(PathBuf),
    /// A directory with `config.json`, safetensors and, if it has a tokenizer, `tokenizer.json`.
    Directory(PathBuf),
    /// `hf:ORG/NAME[@REVISION][/FILE.gguf]`.
    Hub(HubSpec),
}

/// A model on the Hugging Face hub.
#[derive(Debug, Clone, PartialEq)]
pub struct HubSpec {
    /// `ORG/NAME`.
    pub repo: String,
    /// A branch, tag, `refs/pr/N` or commit; `None` is the hub's `main`.
    pub revision: Option<String>,
    /// The GGUF file inside the repository; `None` means its config.json and safetensors.
    pub file: Option<String>,
}

impl FromStr for ModelSpec {
    type Err = Error;

    /// Reads a spec. A bare word is a directory only if there is one of that name.
    ///
    /// # Errors
    /// When it has no known form; the error names those that there are.
    fn from_str(spec: &str) -> Result<Self> {
        if let Some(name) = spec.strip_prefix("synthetic:") {
            ensure!(SYNTHETIC.contains(&name), "unknown model `{spec}`; a model is {FORMS}");
            return Ok(Self::Synthetic(name.to_owned()));
        }
        if let Some(rest) = spec.strip_prefix("hf:") {
            return HubSpec::parse(rest).map(Self::Hub);
        }
        let path = Path::new(spec);
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf")) {
            return Ok(Self::Gguf(path.to_owned()));
        }
        if path.is_dir() || spec.contains(['/', '\\']) {
            return Ok(Self::Directory(path.to_owned()));
        }
        bail!("unknown model `{spec}`; a model is {FORMS}")
    }
}

impl HubSpec {
    fn parse(rest: &str) -> Result<Self> {
        let wrong = || {
            format!(
                "`hf:{rest}` does not name a model on the hub; write hf:ORG/NAME, hf:ORG/NAME@REVISION or hf:ORG/NAME/FILE.gguf"
            )
        };
        ensure!(rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./@".contains(&b)), wrong());
        let (repo, revision, file) = match rest.split_once('@') {
            Some((repo, tail)) => {
                let segments = if tail.starts_with("refs/") { 3 } else { 1 };
                let (revision, file) = split_after(tail, segments);
                (repo, Some(revision), file)
            }
            None => {
                let (repo, file) = split_after(rest, 2);
                (repo, None, file)
            }
        };
        let sound = |path: &str| path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        ensure!(repo.split('/').count() == 2 && sound(repo), wrong());
        ensure!(revision.is_none_or(|r| sound(r) && !r.contains('@')), wrong());
        ensure!(file.is_none_or(|f| sound(f) && f.to_ascii_lowercase().ends_with(".gguf")), wrong());
        Ok(Self { repo: repo.to_owned(), revision: revision.map(str::to_owned), file: file.map(str::to_owned) })
    }
}

/// Splits `path` behind its first `segments` segments.
fn split_after(path: &str, segments: usize) -> (&str, Option<&str>) {
    match path.match_indices('/').nth(segments - 1) {
        Some((at, _)) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    }
}

/// The model's name as it goes into a receipt: without local folders and without the revision.
impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthetic(name) => write!(f, "synthetic:{name}"),
            Self::Gguf(path) | Self::Directory(path) => f.write_str(&local_name(path)),
            Self::Hub(HubSpec { repo, file: None, .. }) => write!(f, "hf:{repo}"),
            Self::Hub(HubSpec { repo, file: Some(file), .. }) => write!(f, "hf:{repo}/{file}"),
        }
    }
}

fn local_name(path: &Path) -> String {
    let resolved = path.canonicalize();
    let name = path.file_name().or_else(|| resolved.as_ref().ok().and_then(|p| p.file_name()));
    name.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}
