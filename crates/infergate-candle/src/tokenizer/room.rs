//! What the tokenizers crate keeps of a vocabulary, known before it is made.

use anyhow::{Result, bail, ensure};
use tokenizers::models::bpe::{BPE, BpeBuilder, Merges, Vocab};

use super::one_line;

/// What a tokenizer may take: so many times what describes it, and so much beside that.
const TIMES: u64 = 7;
const BESIDE_BYTES: u64 = 14 << 20;

/// A token that is found before a text is cut lies in several tables, and each of its letters is a state of an automaton.
const ADDED_BYTES: u64 = 1024;
const ADDED_LETTER_BYTES: u64 = 256;

/// Refuses `tokens` and `merges` with texts of `text_bytes`, and so many added tokens with so many bytes, from a description of
/// `file_bytes`, where they would fill the memory.
///
/// # Errors
/// More of them than any tokenizer has in so many bytes.
pub fn ensure(
    tokens: usize,
    merges: usize,
    text_bytes: usize,
    (added, letters): (usize, usize),
    file_bytes: u64,
) -> Result<()> {
    // A hash table has room for a power of two, seven eighths of which are filled, and a byte beside each entry.
    let table = |entries: usize, entry_bytes: u64| room_for(entries as u64 * 8 / 7 + 4) * (entry_bytes + 1);
    let by_text = table(tokens, size_of::<(String, u32)>() as u64);
    let merged = room_for(merges as u64) * size_of::<(String, String)>() as u64 + table(merges, 16);
    let added = ADDED_BYTES * added as u64 + ADDED_LETTER_BYTES * letters as u64;
    let needed = 2 * by_text + merged + added + text_bytes as u64;
    ensure!(
        needed <= TIMES.saturating_mul(file_bytes).saturating_add(BESIDE_BYTES),
        "it has more and shorter tokens than any tokenizer, and would fill the memory"
    );
    Ok(())
}

fn room_for(entries: u64) -> u64 {
    entries.next_power_of_two()
}

/// The model of `builder` over these tokens, of which the second of a merge begins with a prefix of `prefix` bytes.
///
/// # Errors
/// A merge of what is no token, or that makes none.
pub fn bpe(builder: BpeBuilder, vocab: Vocab, merges: Merges, prefix: usize) -> Result<BPE> {
    let longest = vocab.keys().map(String::len).max().unwrap_or(0);
    // The crate would write behind the end of a buffer as long as the longest token.
    let makes_none = |(left, right): &&(String, String)| {
        !right.is_char_boundary(prefix) || left.len() + right.len() - prefix > longest
    };
    if merges.iter().any(|merge| makes_none(&merge)) {
        bail!("one of its merges makes no token");
    }
    builder.vocab_and_merges(vocab, merges).build().map_err(one_line)
}
