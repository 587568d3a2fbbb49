//! The times, the tokens and the text of one answer.

use anyhow::{Context, Result, bail};
use infergate_core::load::RequestRecord;
use infergate_core::sha256::words_of_hex;

/// Bytes of a token, if the server does not count tokens.
const BYTES_PER_TOKEN: u64 = 4;

#[derive(Clone, Copy)]
pub enum Part {
    Ttft,
    Itl,
    /// A number of a window of load.
    Load,
}

impl Part {
    /// This time of an answer, at least 1 ns; making a connection is no part of it. `None` if the answer does not have it.
    pub fn of(self, record: &RequestRecord) -> Result<Option<u64>> {
        let Some(first) = record.chunk_ns.first() else { return Ok(None) };
        Ok(match self {
            Self::Ttft => Some(first.saturating_sub(record.connected_ns.unwrap_or(record.sent_ns)).max(1)),
            Self::Itl => itl_ns(record),
            Self::Load => bail!("worker: a case under load has windows and no samples"),
        })
    }
}

/// Why an answer's tokens have no times.
pub fn untimed(record: &RequestRecord) -> &'static str {
    match record.chunk_ns.as_slice() {
        [first, .., last] if first == last => {
            "the server sends an answer's pieces all at once, so they have no times; let it stream, or gate --cases '*/ttft'"
        }
        _ => "the answer is too short, so its tokens have no times; ask for more tokens",
    }
}

/// The words of the SHA-256 of an answer's text.
pub fn words_of(record: &RequestRecord) -> Result<Vec<u32>> {
    let sha256 = record.output_sha256.as_ref().context("the server's answer has no text")?;
    words_of_hex(sha256).context("the hash of an answer is no hash")
}

/// Tokens of an answer that were sent, by the server's usage.
pub fn sent_tokens(record: &RequestRecord) -> Option<u64> {
    record.output_tokens.map(|_| record.sent_tokens())
}

/// The mean gap between two tokens of an answer, nanoseconds. Tokens are those of the server's usage; else they follow from the bytes
/// of its text, since pieces can hold any part of a token, or several, and an answer can be shorter than requested. `None` below two
/// pieces or tokens, or if all came at once.
pub fn itl_ns(record: &RequestRecord) -> Option<u64> {
    let (first, last) = (record.chunk_ns.first()?, record.chunk_ns.last()?);
    let uncounted = || record.text_bytes.unwrap_or(0) / BYTES_PER_TOKEN;
    let gaps = sent_tokens(record).unwrap_or_else(uncounted).checked_sub(1).filter(|gaps| *gaps > 0)?;
    let took_ns = last.saturating_sub(*first);
    (took_ns > 0).then(|| (took_ns / gaps).max(1))
}
