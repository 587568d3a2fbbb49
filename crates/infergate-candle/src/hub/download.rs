//! One file into the cache: written beside its place, and only put there once it is whole.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use infergate_core::printable::printable;
use tempfile::NamedTempFile;

use super::client::{Client, Failure};

/// Brings what is at `url_path` to `place`, a file in a snapshot of the repository in `folder`.
pub(super) fn download(client: &Client, url_path: &str, folder: &Path, place: &Path) -> Result<(), Failure> {
    let beside = place.parent().unwrap_or(folder);
    std::fs::create_dir_all(beside).with_context(cache_broken)?;
    // Other processes that want a file of this repository wait here, and then find it.
    let lock = infergate_core::lock::open(&folder.join("download.lock")).with_context(cache_broken)?;
    // A file system without locks is used without one.
    let _ = lock.lock();
    if place.is_file() {
        return Ok(());
    }
    let body = client.get(url_path)?;
    let bar = bar(&place.file_name().unwrap_or_default().to_string_lossy(), body.content_length());
    let mut file = NamedTempFile::new_in(beside).with_context(cache_broken)?;
    io::copy(&mut bar.wrap_read(body.into_reader()), &mut file).context("the transfer broke off; run it again")?;
    file.as_file().sync_all().with_context(cache_broken)?;
    file.persist(place).with_context(cache_broken)?;
    Ok(())
}

fn cache_broken() -> &'static str {
    "cannot write to the cache; is the disk full or read-only?"
}

/// How far a download is, on a terminal.
fn bar(name: &str, bytes: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left");
    ProgressBar::new(bytes.unwrap_or(0))
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(printable(name).into_owned())
}
