//! One file into the cache: described by the hub, written beside its place, checked, and only then put there.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use infergate_core::printable::printable;
use infergate_core::sha256::hex;
use sha1::{Digest as _, Sha1};

use super::super::digest::file_sha256;
use super::client::{Client, Failure, Reply, broken, header, require};
use super::is_hex;

/// How often a download is begun (each goes on where the last one stopped) before it is given up.
const ATTEMPTS: usize = 3;

/// What is wrong where a file of the cache cannot be written.
pub const CACHE_BROKEN: &str = "cannot write to the cache; is the disk full or read-only?";

/// What the hub says of a file.
struct Described {
    /// Names the content: SHA-256 of a large file, git's hash of a small one, in hex.
    etag: String,
    bytes: u64,
}

/// One file of one commit, and where the cache keeps it.
pub struct Download<'a> {
    pub client: &'a Client,
    /// The file's name in its repository; it may have folders.
    pub name: &'a str,
    /// What to ask the endpoint for; begins with `/`.
    pub url_path: String,
    /// 40 hex digits.
    pub commit: &'a str,
    /// The repository's folder in the cache.
    pub folder: PathBuf,
    /// The file's place, in the snapshot of `commit`.
    pub pointer: PathBuf,
}

impl Download<'_> {
    /// Brings the file to its place.
    pub fn run(&self) -> Result<(), Failure> {
        let described = self.describe()?;
        let blob = self.folder.join("blobs").join(&described.etag);
        fs::create_dir_all(self.folder.join("blobs")).context(CACHE_BROKEN)?;
        // Other processes that want this file wait here, and then find it.
        let lock = infergate_core::lock::open(&blob.with_extension("lock")).context(CACHE_BROKEN)?;
        // A file system without locks is used without one, as before there were any.
        let _ = lock.lock();
        if !blob.is_file() {
            self.fetch(&blob, &described)?;
        }
        point(&self.pointer, &blob, self.name).context(CACHE_BROKEN)?;
        Ok(())
    }

    /// Asks for the first byte alone: its headers tell everything else.
    fn describe(&self) -> Result<Described, Failure> {
        let reply = self.client.get(&self.url_path, Some("bytes=0-0"))?;
        let about = &reply.from_endpoint;
        let etag = header(about, "x-linked-etag").or_else(|| header(about, "etag")).unwrap_or_default();
        let etag = etag.trim_start_matches("W/").trim_matches('"').to_owned();
        // The etag becomes a file's name.
        let sound = (is_hex(&etag, 40) || is_hex(&etag, 64)) && header(about, "x-repo-commit") == Some(self.commit);
        require(sound, "the hub's answer has an unusable ETag or another commit")?;
        let named = header(about, "x-linked-size").map(|size| size.parse().ok());
        let bytes =
            named.unwrap_or_else(|| whole_bytes(&reply)).context("the hub's answer does not tell the file's size")?;
        Ok(Described { etag, bytes })
    }

    fn fetch(&self, blob: &Path, described: &Described) -> Result<(), Failure> {
        let part = blob.with_extension("part");
        let progress = bar(self.name, described.bytes);
        let mut last = anyhow!("the download was not begun");
        for _ in 0..ATTEMPTS {
            match self.fill(&part, described, &progress).and_then(|()| verify(&part, described)) {
                Ok(()) => {
                    fs::rename(&part, blob).context(CACHE_BROKEN)?;
                    progress.finish_and_clear();
                    return Ok(());
                }
                Err(Failure::Broken(error)) => last = error,
                Err(other) => return Err(other),
            }
        }
        Err(last.context(format!("given up after {ATTEMPTS} attempts; run it again to go on")).into())
    }

    /// Writes to `part` what it lacks, and never more than the file has.
    fn fill(&self, part: &Path, described: &Described, progress: &ProgressBar) -> Result<(), Failure> {
        let file = OpenOptions::new().create(true).append(true).open(part);
        let mut file = file.context(CACHE_BROKEN)?;
        let mut have = file.seek(SeekFrom::End(0)).context(CACHE_BROKEN)?;
        if have > described.bytes {
            have = restart(&mut file)?;
        }
        if have == described.bytes {
            file.sync_all().context(CACHE_BROKEN)?;
            return Ok(());
        }
        let reply = self.client.get(&self.url_path, Some(&format!("bytes={have}-")))?;
        let same = whole_bytes(&reply).is_none_or(|bytes| bytes == described.bytes);
        require(same, "the hub names two sizes for it; run it again")?;
        if reply.status == 200 {
            // A mirror that ignores ranges sends everything.
            have = restart(&mut file)?;
        } else {
            let fits = first_byte(&reply) == Some(have);
            require(fits, "the hub sent another part than was requested; run it again")?;
        }
        progress.set_position(have);
        let mut body = reply.body.into_reader();
        let mut buffer = vec![0_u8; 1 << 16];
        loop {
            let got = body.read(&mut buffer).map_err(broken)? as u64;
            if got == 0 {
                break;
            }
            if got > described.bytes - have {
                let _ = restart(&mut file);
                return Err(anyhow!("the hub sends more than the {} bytes it announced", described.bytes).into());
            }
            file.write_all(&buffer[..got as usize]).context(CACHE_BROKEN)?;
            have += got;
            progress.set_position(have);
        }
        if have < described.bytes {
            return Err(Failure::Broken(anyhow!("the transfer ended after {have} of {} bytes", described.bytes)));
        }
        file.sync_all().context(CACHE_BROKEN)?;
        Ok(())
    }
}

fn restart(file: &mut File) -> Result<u64, Error> {
    file.set_len(0).context(CACHE_BROKEN)?;
    Ok(0)
}

/// The size of the whole file, as the answer with (a part of) it says. An empty file has no first byte: status 416.
fn whole_bytes(reply: &Reply) -> Option<u64> {
    match reply.status {
        206 | 416 => header(&reply.headers, "content-range")?.rsplit_once('/')?.1.parse().ok(),
        _ => header(&reply.headers, "content-length")?.parse().ok(),
    }
}

fn first_byte(reply: &Reply) -> Option<u64> {
    header(&reply.headers, "content-range")?.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

/// A large file's ETag is its SHA-256, a small file's is git's hash of it. What has another one is removed.
fn verify(part: &Path, described: &Described) -> Result<(), Failure> {
    let (kind, found) = match described.etag.len() {
        40 => ("SHA-1", git_hash(part)),
        _ => ("SHA-256", file_sha256(part)),
    };
    if found.context(CACHE_BROKEN)? == described.etag {
        return Ok(());
    }
    let _ = fs::remove_file(part);
    Err(Failure::Broken(anyhow!("the download's {kind} is not the one the hub names")))
}

fn git_hash(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha1::new_with_prefix(format!("blob {}\0", file.metadata()?.len()));
    std::io::copy(&mut file, &mut hash)?;
    Ok(hex(&hash.finalize()))
}

/// Puts a link to `blob` at `pointer`, as every program on this cache does; a link that leads nowhere is replaced.
fn point(pointer: &Path, blob: &Path, name: &str) -> std::io::Result<()> {
    let folder = pointer.parent().unwrap_or(pointer);
    fs::create_dir_all(folder)?;
    let up = "../".repeat(name.matches('/').count() + 2);
    let etag = blob.file_name().unwrap_or_default();
    let beside = tempfile::Builder::new().prefix(".link").tempdir_in(folder)?;
    let link = beside.path().join("link");
    place(&Path::new(&up).join("blobs").join(etag), blob, &link)?;
    fs::rename(link, pointer)
}

#[cfg(unix)]
fn place(relative: &Path, _blob: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(relative, link)
}

/// Links need rights that not every user has there: the file itself is put in place.
#[cfg(not(unix))]
fn place(_relative: &Path, blob: &Path, link: &Path) -> std::io::Result<()> {
    fs::hard_link(blob, link).or_else(|_| fs::copy(blob, link).map(|_| ()))
}

/// How far a download is, on a terminal.
fn bar(name: &str, bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left");
    ProgressBar::new(bytes)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(printable(name).into_owned())
}
