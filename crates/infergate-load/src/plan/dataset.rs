//! Prompts from a file of JSON lines.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use infergate_core::sha256;
use infergate_core::text_file::read_text;
use serde::Deserialize;

use crate::receipt::MAX_TOKENS;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// One line of the file. Other fields are passed over.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// The prompt, as it is sent.
    pub prompt: String,
    /// Output tokens to ask for; left out: the scenario's.
    pub output_tokens: Option<u32>,
}

/// Prompts that are taken in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// At least one.
    pub entries: Vec<Entry>,
    /// Of the file's text, hex.
    pub sha256: String,
}

impl Dataset {
    /// Reads `{"prompt": "...", "output_tokens": 64}` a line.
    ///
    /// # Errors
    /// Unreadable, too large, without a prompt, or with a line of another form, by its number: a prompt is never shown.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, MAX_FILE_BYTES)?;
        let place = path.display();
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = index + 1;
            let entry = serde_json::from_str::<Entry>(line).ok().with_context(|| {
                format!("{place}:{number}: not of the form {{\"prompt\": \"...\", \"output_tokens\": 64}}")
            })?;
            ensure!(!entry.prompt.is_empty(), "{place}:{number}: the prompt is empty");
            ensure!(
                entry.output_tokens.is_none_or(|tokens| (1..=MAX_TOKENS).contains(&tokens)),
                "{place}:{number}: output_tokens is a number from 1 to {MAX_TOKENS}"
            );
            entries.push(entry);
        }
        ensure!(!entries.is_empty(), "{place}: there are no prompts in it");
        Ok(Self { entries, sha256: sha256::of(&text) })
    }

    /// The entry of a request; after the last one the first comes again.
    pub fn entry(&self, request: u64) -> &Entry {
        &self.entries[(request % self.entries.len() as u64) as usize]
    }
}
