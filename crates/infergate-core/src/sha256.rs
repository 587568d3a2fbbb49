//! SHA-256 as it stands in files, names and outputs.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Two lower-case digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The SHA-256 of `bytes`, hex.
pub fn of(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of all that `reader` gives, hex.
///
/// # Errors
/// When it cannot be read.
pub fn of_reader(mut reader: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut reader, &mut hash)?;
    Ok(hex(&hash.finalize()))
}

/// The words of a SHA-256.
pub const WORDS: usize = 8;

/// The [`words`] of a SHA-256 in hex; `None` where it is none.
pub fn words_of_hex(sha256: &str) -> Option<Vec<u32>> {
    let word = |hex: &[u8]| Some(u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?.swap_bytes());
    sha256.as_bytes().chunks_exact(8).map(word).collect()
}

/// A SHA-256 as eight little-endian words: the ids of an output that has no tokens.
pub fn words(sha256: &[u8]) -> Vec<u32> {
    sha256.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
