//! [`Digest`]: what the weights are, as one SHA-256.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use infergate_core::sha256;

/// Identity of weights. Files are hashed at the first look, so that hashing is no part of a measured model load.
#[derive(Debug)]
pub struct Digest {
    files: Vec<PathBuf>,
    sha256: OnceLock<Option<String>>,
}

impl Digest {
    /// Of one file: its SHA-256. Of several (shards): the SHA-256 over their sorted hex digests, one a line.
    pub fn of_files(files: Vec<PathBuf>) -> Self {
        Self { files, sha256: OnceLock::new() }
    }

    /// Of weights that were made, not read: the SHA-256 of what made them (seed and configuration).
    pub fn of_recipe(recipe: &str) -> Self {
        let sha256 = OnceLock::from(Some(sha256::of(recipe)));
        Self { files: Vec::new(), sha256 }
    }

    /// Lower-case hex. `None`: a file can no longer be read.
    pub fn sha256(&self) -> Option<String> {
        self.sha256.get_or_init(|| self.hash().ok()).clone()
    }

    fn hash(&self) -> io::Result<String> {
        let mut digests = self.files.iter().map(|f| file_sha256(f)).collect::<io::Result<Vec<_>>>()?;
        if let [one] = digests.as_slice() {
            return Ok(one.clone());
        }
        digests.sort();
        Ok(sha256::of(digests.join("\n")))
    }
}

/// SHA-256 of a file's bytes, lower-case hex.
///
/// # Errors
/// When the file cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    sha256::of_reader(File::open(path)?)
}
