//! [`Hub`]: models from the Hugging Face hub, kept in hf-hub's cache, checked before they are used.
//!
//! hf-hub knows where the cache keeps what. Requests are made here: hf-hub 0.5 sends the token wherever a redirect leads,
//! takes an ETag for a file name as it comes, and waits for a silent server for ever.

mod client;
mod download;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hf_hub::{Cache, Repo, RepoType};
use infergate_core::receipt::write_text;
use infergate_core::text_file::read_text;
use serde::Deserialize;

use client::{Client, Failure};
use download::{CACHE_BROKEN, Download};

use crate::local::ModelFiles;
use crate::spec::HubSpec;

/// The longest wait for the hub's next byte.
pub const SILENCE: Duration = Duration::from_secs(30);

/// No token and no name of a commit is longer, whatever stands in their files.
const MAX_WORD_BYTES: u64 = 4 << 10;

/// Access to the hub and its cache on disk.
pub struct Hub {
    /// `None`: offline.
    client: Option<Client>,
    cache: Cache,
}

/// A model's files in the cache, and the commit they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// What to load.
    pub files: Files,
    /// The commit that the revision was resolved to, 40 hex digits.
    pub revision: String,
}

/// What a [`HubSpec`] names.
#[derive(Debug, Clone, PartialEq)]
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
        Self::new(|name| env::var_os(name), SILENCE)
    }

    /// The hub as `variable` has it: `HF_ENDPOINT`, `HF_TOKEN` (or the file at `HF_TOKEN_PATH`, by default
    /// `HF_HOME/token`), `HF_HUB_OFFLINE`; the cache in `HF_HUB_CACHE`, `HF_HOME/hub`,
    /// `XDG_CACHE_HOME/huggingface/hub` or `~/.cache/huggingface/hub`, whichever is set first. It may keep us waiting for
    /// the next byte for `silence`.
    ///
    /// # Errors
    /// When there is no place for a cache, or `HF_ENDPOINT` is no address.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>, silence: Duration) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HF_HOME")
            .map(PathBuf::from)
            .or_else(|| {
                let of_xdg = set("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
                let cache = of_xdg.or_else(|| env::home_dir().map(|dir| dir.join(".cache")));
                cache.map(|dir| dir.join("huggingface"))
            })
            .context("there is no home directory to keep downloads in; set HF_HOME")?;
        let cache = Cache::new(set("HF_HUB_CACHE").map_or_else(|| home.join("hub"), PathBuf::from));
        let offline = set("HF_HUB_OFFLINE")
            .is_some_and(|v| ["1", "ON", "YES", "TRUE"].contains(&v.to_string_lossy().to_uppercase().as_str()));
        if offline {
            return Ok(Self { client: None, cache });
        }
        let token_file = set("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
        let token =
            set("HF_TOKEN").and_then(|t| t.into_string().ok()).or_else(|| read_text(&token_file, MAX_WORD_BYTES).ok());
        let token = token.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
        let endpoint = set("HF_ENDPOINT").unwrap_or("https://huggingface.co".into());
        let client = Client::new(&endpoint.to_string_lossy(), token, silence)?;
        Ok(Self { client: Some(client), cache })
    }

    /// Brings the files of `spec` into the cache, as far as they are not there.
    ///
    /// # Errors
    /// One line: no network, no such repository, no access, an architecture that is not supported, a damaged download.
    pub fn fetch(&self, spec: &HubSpec) -> Result<Fetched> {
        let what = || format!("cannot get hf:{}", spec.repo);
        let commit = self.resolve(spec).with_context(what)?;
        let repo = Repo::with_revision(spec.repo.clone(), RepoType::Model, commit.clone());
        let snapshot = Snapshot { hub: self, id: &spec.repo, repo };
        let files = match &spec.file {
            Some(file) => {
                let found = snapshot.file(file).with_context(what)?;
                Files::Gguf(found.with_context(|| snapshot.missing(file)).with_context(what)?)
            }
            None => {
                let found = ModelFiles::find(&|name| snapshot.file(name), &|name| snapshot.missing(name));
                Files::Directory(found.with_context(what)?)
            }
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
        let reference = self.cache.path().join(repo.folder_name()).join("refs").join(revision);
        let Some(client) = &self.client else {
            let commit =
                read_text(&reference, MAX_WORD_BYTES).ok().map(|c| c.trim().to_owned()).filter(|c| is_hex(c, 40));
            return commit.with_context(|| format!("revision `{revision}` is {}", self.offline()));
        };
        #[derive(Deserialize)]
        struct Info {
            sha: String,
        }
        let path = format!("/api/models/{}/revision/{}", spec.repo, revision.replace('/', "%2F"));
        let commit = client.json::<Info>(&path).map_err(Failure::into_error)?.sha;
        ensure!(is_hex(&commit, 40), "the hub's answer names no commit for revision `{revision}`");
        // For later use offline.
        write_text(&reference, &commit).context(CACHE_BROKEN)?;
        Ok(commit)
    }

    fn offline(&self) -> String {
        format!("not in the cache {} and HF_HUB_OFFLINE is set; unset it to download", self.cache.path().display())
    }
}

/// One commit of one repository.
struct Snapshot<'a> {
    hub: &'a Hub,
    /// `ORG/NAME`.
    id: &'a str,
    repo: Repo,
}

impl Snapshot<'_> {
    /// Why the file is not there.
    fn missing(&self, name: &str) -> String {
        match self.hub.client {
            None => format!("{name} is {}", self.hub.offline()),
            Some(_) => {
                format!(
                    "it has no file {name}, there is no such repository or revision, or it is private (set HF_TOKEN)"
                )
            }
        }
    }

    /// The file's path in the cache. `Ok(None)`: the repository, or offline the cache, does not have it.
    fn file(&self, name: &str) -> Result<Option<PathBuf>> {
        let pointer = self.hub.cache.repo(self.repo.clone()).pointer_path(self.repo.revision()).join(name);
        if pointer.is_file() {
            return Ok(Some(pointer));
        }
        let Some(client) = &self.hub.client else { return Ok(None) };
        let commit = self.repo.revision();
        let download = Download {
            client,
            name,
            url_path: format!("/{}/resolve/{commit}/{name}", self.id),
            commit,
            folder: self.hub.cache.path().join(self.repo.folder_name()),
            pointer: pointer.clone(),
        };
        match download.run() {
            Ok(()) => Ok(Some(pointer)),
            Err(Failure::Missing) => Ok(None),
            Err(Failure::Broken(error) | Failure::Other(error)) => {
                Err(error.context(format!("cannot download {name}")))
            }
        }
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}
