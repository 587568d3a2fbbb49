//! Where the programs of both sides are built, so that they can be built in other ways: counting their heap, or laid out alike.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::alike::{self, PLACEMENTS};
use super::bench_target::Source;
use super::start_files::StartFiles;
use super::{progress, replacement};
use crate::code::linked::both;
use crate::code::{self, Comparison};
use infergate_core::printable::printable_within;
use infergate_core::sha256;
use infergate_core::worker::{Program, WorkerFile};

/// The most characters of a compiler's error.
const MOST_CHARACTERS: usize = 160;

impl Source {
    /// Builds `timed` again, so that it counts its heap.
    ///
    /// # Errors
    /// If criterion is not replaced, the build fails, cargo does not start, or the user ends it.
    pub fn counting(&self, timed: &Program) -> Result<Program> {
        let feature = replacement::counting_feature(&self.bench, &self.folder)?;
        let mut counting = self.clone();
        counting.bench.features.push(feature.context("only benches on infergate-criterion are")?);
        let built = counting.rebuild()?.map_err(|why| {
            anyhow!(
                "bench target '{}' does not build with an allocator that counts (it may have one of its own): {}",
                self.bench.target,
                printable_within(&why, MOST_CHARACTERS)
            )
        })?;
        Ok(Program { path: built.path, ..timed.clone() })
    }

    /// A path next to the plain build, because benches look for other files relative to their own path. Both sides' names have the
    /// same length, because a process has its own path on its stack. The name has a hash of the package in it, because
    /// two packages can have bench targets of one name.
    fn path(&self, plain: &Path, what: &str) -> PathBuf {
        let (target, whose) = (&self.bench.target, sha256::of(self.bench.name()));
        plain.with_file_name(format!("{target}-{what}-{}", &whose[..8]))
    }
}

/// Where both sides are built; `None` if a program was given.
#[derive(Default, Clone)]
pub struct Sources {
    /// Where base is built.
    pub base: Option<Source>,
    /// Where head is built.
    pub head: Option<Source>,
}

impl Sources {
    /// What changed between these two programs. If they were given, only their bytes are compared.
    ///
    /// # Errors
    /// As [`code::compare`].
    pub fn compare(&self, base: &Program, head: &Program) -> Result<Comparison> {
        if let (Some(from), Some(to)) = (&self.base, &self.head) {
            return code::compare(&from.linker(base)?, &to.linker(head)?);
        }
        let is_same = code::loads_same_bytes(&code::read(&base.path)?, &code::read(&head.path)?);
        Ok(if is_same { Comparison::Same } else { Comparison::Differ(None) })
    }

    /// Links both sides alike, once for each placement of what changed. Gives the programs; if that is impossible or nothing was built
    /// here, else the note for the verdict.
    ///
    /// # Errors
    /// The user ended the run.
    pub fn alike(&self, (base, head): (&Program, &Program), seed: u64) -> Result<Result<Alike, String>> {
        const LAYOUT_NOISE: &str = "base and head are not laid out alike, so each change includes layout noise";
        let (Some(from), Some(to)) = (&self.base, &self.head) else { return Ok(Err(LAYOUT_NOISE.to_owned())) };
        match link((from, base), (to, head), seed) {
            Ok(alike) => Ok(Ok(alike)),
            Err(error) => {
                progress::ensure_not_cancelled()?;
                Ok(Err(format!("{LAYOUT_NOISE}: {error:#}")))
            }
        }
    }

    /// The same for the bench targets that count their heap.
    pub fn of_memory(&self) -> Self {
        let memory = |source: &Option<Source>| source.as_ref().map(Source::memory);
        Self { base: memory(&self.base), head: memory(&self.head) }
    }
}

/// Builds of both sides that are laid out alike, a pair for each placement of what changed.
#[derive(Debug, Clone)]
pub struct Alike {
    /// Base and head; never empty.
    pub programs: Vec<(WorkerFile, WorkerFile)>,
    /// The files that they are started from.
    pub start_files: StartFiles,
    /// Functions of base that lie at the same address in head, with the same code.
    pub same: usize,
    /// Functions of base.
    pub functions: usize,
}

fn link((base, was): (&Source, &Program), (head, is): (&Source, &Program), seed: u64) -> Result<Alike> {
    let (was, is) = (was.open()?, is.open()?);
    let [of_base, of_head] = both(|| base.linker(was.program()), || head.linker(is.program()))?;
    let side = |source: &Source, plain: &WorkerFile, linker| alike::LinkJob {
        linker,
        files: (0..PLACEMENTS).map(|placement| source.path(plain.path(), &format!("alike{placement}"))).collect(),
        folder: source.relink_folder().join("links"),
    };
    let (of_base, of_head) = (side(base, &was, &of_base), side(head, &is, &of_head));
    let linked = alike::link(&of_base, &of_head, seed);
    for source in [base, head] {
        drop(fs::remove_dir_all(source.relink_folder().join("links")));
    }
    let (same, functions) = linked?;
    let open = |path: &Path, plain: &WorkerFile| Program { path: path.to_owned(), ..plain.program().clone() }.open();
    let programs =
        of_base.files.iter().zip(&of_head.files).map(|(base, head)| Ok((open(base, &was)?, open(head, &is)?)));
    let start_files = StartFiles { base: base.path(was.path(), "turns"), head: head.path(is.path(), "turns") };
    Ok(Alike { programs: programs.collect::<Result<_>>()?, start_files, same, functions })
}
