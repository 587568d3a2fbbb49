//! [`Hub`]: models from the Hugging Face hub, by hf-hub, checked before they are used.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail, ensure};
use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use super::digest::file_sha256;
use super::local::{self, CONFIG, ModelFiles, TOKENIZER, WEIGHTS, WEIGHTS_INDEX};
use super::spec::HubSpec;

/// How often a download is begun (each goes on where the last one stopped) before it is given up.
const ATTEMPTS: usize = 3;

/// Access to the hub and its cache on disk.
pub struct Hub {
    /// `None`: offline.
    api: Option<Api>,
    cache: Cache,
}

/// A model's files in the cache, and the commit they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What to load.
    pub files: Files,
    /// The commit that the revision was resolved to, 40 hex digits.
    pub revision: String,
}

/// What a [`HubSpec`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// One GGUF file.
    Gguf(PathBuf),
    /// config.json, safetensors, and tokenizer.json if there is one.
    Directory(ModelFiles),
}

impl Hub {
    /// The hub as this process's environment has it.
    ///
    /// # Errors
    /// When there is no place for a cache.
    pub fn from_env() -> Result<Self> {
        Self::new(|name| env::var_os(name))
    }

    /// The hub as `variable` has it: `HF_ENDPOINT`, `HF_TOKEN` (or the file at `HF_TOKEN_PATH`, by default
    /// `HF_HOME/token`), `HF_HUB_OFFLINE`; the cache in `HF_HUB_CACHE`, `HF_HOME/hub`,
    /// `XDG_CACHE_HOME/huggingface/hub` or `~/.cache/huggingface/hub`, whichever is set first.
    ///
    /// # Errors
    /// When there is no place for a cache, or `HF_ENDPOINT` is no address.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HF_HOME")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| PathBuf::from(dir).join("huggingface")))
            .or_else(|| env::home_dir().map(|dir| dir.join(".cache").join("huggingface")))
            .context("there is no home directory to keep downloads in; set HF_HOME")?;
        let cache = Cache::new(set("HF_HUB_CACHE").map_or_else(|| home.join("hub"), PathBuf::from));
        let offline = set("HF_HUB_OFFLINE")
            .is_some_and(|v| ["1", "ON", "YES", "TRUE"].contains(&v.to_string_lossy().to_uppercase().as_str()));
        if offline {
            return Ok(Self { api: None, cache });
        }
        let token_file = set("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
        let token = set("HF_TOKEN").and_then(|t| t.into_string().ok()).or_else(|| fs::read_to_string(token_file).ok());
        let token = token.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
        let mut builder = ApiBuilder::from_cache(cache.clone())
            .with_token(token)
            .with_progress(std::io::stderr().is_terminal())
            .with_user_agent("infergate", env!("CARGO_PKG_VERSION"));
        if let Some(endpoint) = set("HF_ENDPOINT").map(|e| e.to_string_lossy().into_owned()) {
            let sound = endpoint.starts_with("http://") || endpoint.starts_with("https://");
            // The address is not shown: it may hold credentials.
            ensure!(
                sound && !endpoint.contains(char::is_whitespace),
                "HF_ENDPOINT is no http or https address; mend or unset it"
            );
            builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
        }
        let api = builder.build().map_err(|e| anyhow!("{}", why(&e))).context("cannot set up access to the hub")?;
        Ok(Self { api: Some(api), cache })
    }

    /// Brings the files of `spec` into the cache, as far as they are not there.
    ///
    /// # Errors
    /// One line: no network, no such repository, no access, an architecture that is not supported, a damaged download.
    pub fn fetch(&self, spec: &HubSpec) -> Result<Fetched> {
        let what = || format!("cannot get hf:{}", spec.repo);
        let commit = self.resolve(spec).with_context(what)?;
        let snapshot =
            Snapshot { hub: self, repo: Repo::with_revision(spec.repo.clone(), RepoType::Model, commit.clone()) };
        let files = match &spec.file {
            Some(file) => Files::Gguf(snapshot.needed(file).with_context(what)?),
            None => Files::Directory(snapshot.model().with_context(what)?),
        };
        Ok(Fetched { files, revision: commit })
    }

    /// The commit that the spec's revision stands for. A commit stands for itself, and needs no network.
    fn resolve(&self, spec: &HubSpec) -> Result<String> {
        let revision = spec.revision.as_deref().unwrap_or("main");
        if is_hex(revision, 40) {
            return Ok(revision.to_owned());
        }
        let repo = Repo::with_revision(spec.repo.clone(), RepoType::Model, revision.to_owned());
        let Some(api) = &self.api else {
            let reference = self.cache.path().join(repo.folder_name()).join("refs").join(revision);
            let commit = fs::read_to_string(reference).ok().map(|c| c.trim().to_owned()).filter(|c| is_hex(c, 40));
            return commit.with_context(|| format!("revision `{revision}` is {}", self.offline()));
        };
        let commit = api.repo(repo.clone()).info().map_err(|e| anyhow!("{}", why(&e)))?.sha;
        ensure!(is_hex(&commit, 40), "the hub's answer names no commit for revision `{revision}`");
        // For later use offline.
        self.cache
            .repo(repo)
            .create_ref(&commit)
            .context("cannot write to the cache; is the disk full or read-only?")?;
        Ok(commit)
    }

    fn offline(&self) -> String {
        format!("not in the cache {} and HF_HUB_OFFLINE is set; unset it to download", self.cache.path().display())
    }
}

/// One commit of one repository.
struct Snapshot<'a> {
    hub: &'a Hub,
    repo: Repo,
}

impl Snapshot<'_> {
    fn model(&self) -> Result<ModelFiles> {
        let config = self.needed(CONFIG)?;
        // Before anything large is downloaded.
        local::architecture(&local::read_json(&config)?)?;
        let weights = match self.optional(WEIGHTS)? {
            Some(file) => vec![file],
            None => {
                let index = self.optional(WEIGHTS_INDEX)?;
                let index = index.with_context(|| format!("it has no {WEIGHTS} and no {WEIGHTS_INDEX}"))?;
                local::shards(&index)?.iter().map(|shard| self.needed(shard)).collect::<Result<_>>()?
            }
        };
        Ok(ModelFiles { config, weights, tokenizer: self.optional(TOKENIZER)? })
    }

    fn needed(&self, name: &str) -> Result<PathBuf> {
        match self.optional(name)? {
            Some(path) => Ok(path),
            None if self.hub.api.is_none() => bail!("{name} is {}", self.hub.offline()),
            None => {
                bail!("it has no file {name}, there is no such repository or revision, or it is private (set HF_TOKEN)")
            }
        }
    }

    /// The file's path in the cache. `Ok(None)`: the repository, or offline the cache, does not have it.
    fn optional(&self, name: &str) -> Result<Option<PathBuf>> {
        let pointer = self.hub.cache.repo(self.repo.clone()).pointer_path(self.repo.revision()).join(name);
        if pointer.is_file() {
            return Ok(Some(pointer));
        }
        let Some(api) = &self.hub.api else { return Ok(None) };
        match self.download(api, name, &pointer) {
            Ok(()) => Ok(Some(pointer)),
            Err(Failure::Missing) => Ok(None),
            Err(Failure::Other(error)) => Err(error.context(format!("cannot download {name}"))),
        }
    }

    /// Downloads into the cache: hf-hub writes to a `.part` file, goes on with one that an interrupted download left,
    /// and renames it when it is whole. Size and SHA-256 are compared here, and what differs is removed.
    fn download(&self, api: &Api, name: &str, pointer: &Path) -> Result<(), Failure> {
        let repo = api.repo(self.repo.clone());
        let metadata = api.metadata(&repo.url(name)).map_err(Failure::from)?;
        let etag = metadata.etag();
        // The etag becomes a file's name, the commit a folder's.
        let sound = (is_hex(etag, 40) || is_hex(etag, 64)) && metadata.commit_hash() == self.repo.revision();
        if !sound {
            return Err(Failure::Other(anyhow!("the hub's answer has an unusable ETag or another commit")));
        }
        let blob = self.hub.cache.repo(self.repo.clone()).blob_path(etag);
        let mut last = anyhow!("the download was not begun");
        for _ in 0..ATTEMPTS {
            match repo.download(name) {
                Ok(_) => match verify(&blob, etag, metadata.size() as u64) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        let _ = fs::remove_file(pointer);
                        let _ = fs::remove_file(&blob);
                        last = error;
                    }
                },
                Err(error) => {
                    if restart_helps(&error) {
                        let _ = fs::remove_file(blob.with_extension("part"));
                    }
                    last = anyhow!("{}", why(&error));
                }
            }
        }
        Err(Failure::Other(last.context(format!("given up after {ATTEMPTS} attempts; run it again to go on"))))
    }
}

enum Failure {
    Missing,
    Other(anyhow::Error),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match status(&error) {
            Some(404) => Self::Missing,
            _ => Self::Other(anyhow!("{}", why(&error))),
        }
    }
}

/// Large files have their SHA-256 as ETag, small ones a git hash: of those the size is compared.
fn verify(blob: &Path, etag: &str, size: u64) -> Result<()> {
    let found = fs::metadata(blob).context("the download left no file")?.len();
    ensure!(found == size, "the download has {found} bytes in place of {size}");
    if is_hex(etag, 64) {
        ensure!(file_sha256(blob)? == etag, "the download's SHA-256 is not the one the hub names");
    }
    Ok(())
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn status(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::RequestError(e) => match **e {
            ureq::Error::StatusCode(code) => Some(code),
            _ => None,
        },
        _ => None,
    }
}

/// A `.part` file that is as long as the file, or longer, cannot be gone on with.
fn restart_helps(error: &ApiError) -> bool {
    matches!(error, ApiError::InvalidResume) || status(error) == Some(416)
}

/// Why it failed, without addresses: an endpoint may hold credentials.
fn why(error: &ApiError) -> String {
    match error {
        ApiError::RequestError(e) => match &**e {
            ureq::Error::StatusCode(401 | 403) => {
                "the hub refused access: the model is gated or private, or does not exist; set HF_TOKEN to a token that may read it".into()
            }
            ureq::Error::StatusCode(404) => "the hub has no such repository or revision; check its name".into(),
            ureq::Error::StatusCode(429) => "the hub asks to slow down (status 429); try again later or set HF_TOKEN".into(),
            ureq::Error::StatusCode(code) => format!("the hub answered with status {code}"),
            ureq::Error::Io(io) => format!("the connection to the hub failed ({}); check the network", io.kind()),
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Timeout(_) => {
                "the hub cannot be reached; check the network, or set HF_HUB_OFFLINE=1 to use what is in the cache".into()
            }
            _ => "the hub's answer cannot be understood".into(),
        },
        ApiError::IoError(io) => format!("the transfer was interrupted or the cache cannot be written ({io})"),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}
