//! [`Digest`]: what the weights are, as one SHA-256.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

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
        let sha256 = OnceLock::from(Some(hex(&Sha256::digest(recipe.as_bytes()))));
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
        Ok(hex(&Sha256::digest(digests.join("\n").as_bytes())))
    }
}

/// SHA-256 of a file's bytes, lower-case hex.
///
/// # Errors
/// When the file cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
