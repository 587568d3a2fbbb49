//! A git revision, checked out in a folder of its own and built there.
//!
//! The folder lies outside the repository: below it, cargo would join the repository's `.cargo/config.toml` to the revision's
//! own, and head's compiler flags would leak into base. It is kept and used again, so that an unchanged revision is not built
//! again. Paths of different length change no code: two checkouts of one commit gave the same bytes of code and constants.

use std::cell::{Cell, OnceCell};
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::bench_target::{BuildRequest, Source};
use super::git::{self, commit_of, dirty_submodule, git, short};
use super::manifest::MAX_FILE_BYTES;
use super::workspace::Workspace;
use super::{
    built_packages, cargo_settings, carried, checkout_folder, lock_file, output, outside_paths, profiles, replacement,
    submodules, working_tree,
};
use infergate_core::receipt::file_word;
use infergate_core::sha256;
use infergate_core::text_file::read_text;
use infergate_core::worker::{Program, WorkerError};

/// Which of the kept checkouts.
#[derive(Debug, Clone, Copy)]
pub enum Slot {
    /// What is compared with.
    Base,
    /// Base with head's benches copied over, those of one package. Benches of other packages are built in `Base`.
    WithHeadsBenches,
    /// A step of a bisection.
    Step,
    /// HEAD on another dependency or toolchain.
    Swap,
    /// The working tree, where it cannot be built in place.
    Head,
}

impl Slot {
    /// The folder's name.
    pub fn name(self, request: &BuildRequest) -> String {
        let name = match self {
            Self::Base => "base",
            Self::WithHeadsBenches => match &request.bench.package {
                Some(package) => return format!("laid-{}", file_word(package)),
                None => "laid",
            },
            Self::Step => "step",
            Self::Swap => "swap",
            Self::Head => "head",
        };
        name.to_owned()
    }
}

/// A checked-out revision. Others may use its folder when this is dropped.
pub struct Checkout {
    /// Its files.
    pub files: PathBuf,
    /// Its target folder. Checkouts of one commit can share it: to cargo, a package in another folder is another package.
    pub(super) target: PathBuf,
    /// Current folder relative to the root.
    prefix: PathBuf,
    /// As it was named.
    pub revision: String,
    /// Its commit, in full.
    pub commit: String,
    /// The root of the working tree.
    pub(super) repository: PathBuf,
    /// Another toolchain of rustup than its own.
    pub toolchain: Option<String>,
    /// The change of its files or its build: `--swap rayon=1.11.0`.
    pub change: Option<String>,
    /// Whether it has files of the working tree that no commit has.
    dirty: bool,
    /// Its packages, as they were when they were first loaded.
    pub(super) workspace: OnceCell<Arc<Workspace>>,
    /// Whether criterion is replaced in its manifests.
    is_replaced: Cell<bool>,
    _lock: File,
}

impl Checkout {
    /// Checks out `revision`, and links what `[bench] carry` names into it; the working tree is not touched.
    ///
    /// # Errors
    /// Outside git; an unknown revision; a submodule with changes; another gate that uses the same folder now; a path of `[bench] carry`
    /// that does not exist.
    pub fn of(revision: &str, slot: Slot, request: &BuildRequest) -> Result<Self> {
        let checkout = Self::bare(revision, slot, request)?;
        checkout.prepare(request)?;
        Ok(checkout)
    }

    fn bare(revision: &str, slot: Slot, request: &BuildRequest) -> Result<Self> {
        let here = env::current_dir().context("the current folder cannot be read")?;
        let repository = git::root(&here)
            .context("--against needs a git repository; run it in one, or give --base-bin and --head-bin")?;
        let prefix = PathBuf::from(git::prefix(&here)?);
        let commit = commit_of(&here, revision)?;
        if let Some(submodule) = dirty_submodule(&repository)? {
            bail!("submodule '{submodule}' is not as HEAD has it; commit its changes, or run git submodule update");
        }
        let folder = folder(&repository, request)?.join(slot.name(request));
        if folder.starts_with(&repository) && cargo_settings::file(&repository.join(".cargo")).is_some() {
            bail!(
                "{}: lies in the repository, whose .cargo/config.toml would join the revision's own; name another with --base-folder",
                folder.display()
            );
        }
        checkout_folder::claim(&folder, request.base_folder.is_none())?;
        for place in [Some(folder.as_path()), repository.parent()].into_iter().flatten() {
            cargo_settings::ensure_own(place, &repository)?;
        }
        let lock = checkout_folder::lock(&folder)?;
        let checkout = Self {
            files: folder.join("tree"),
            target: folder.join("target"),
            prefix,
            revision: revision.to_owned(),
            commit,
            repository,
            toolchain: None,
            change: None,
            dirty: false,
            workspace: OnceCell::new(),
            is_replaced: Cell::new(false),
            _lock: lock,
        };
        checkout.checkout_commit(&checkout.commit)?;
        Ok(checkout)
    }

    /// Checks out HEAD with all that is not committed, ignored files aside.
    ///
    /// # Errors
    /// As [`of`](Self::of); a file that cannot be copied.
    pub fn of_working_tree(request: &BuildRequest) -> Result<Self> {
        let mut checkout = Self::bare("HEAD", Slot::Head, request)?;
        checkout.dirty = working_tree::copy_uncommitted(&checkout.repository, &checkout.files)?;
        checkout.change = checkout.dirty.then(|| "what is not committed".into());
        checkout.prepare(request)?;
        Ok(checkout)
    }

    /// The packages around the current folder, in this checkout.
    ///
    /// # Errors
    /// As [`folder`](Self::folder) and [`Workspace::load`].
    pub fn workspace(&self) -> Result<Arc<Workspace>> {
        if let Some(loaded) = self.workspace.get() {
            return Ok(loaded.clone());
        }
        let loaded = Arc::new(Workspace::load(&self.folder()?)?);
        Ok(self.workspace.get_or_init(|| loaded).clone())
    }

    /// Copies `lock_file`, if this checkout has none: a repository may ignore it.
    ///
    /// # Errors
    /// A file that cannot be copied.
    pub fn take_lock_file(&self, lock_file: &Path) -> Result<()> {
        let to = self.workspace()?.lock_file();
        if lock_file.is_file() && to.symlink_metadata().is_err() {
            checkout_folder::write(&self.files, &to, &read_text(lock_file, MAX_FILE_BYTES)?)?;
        }
        Ok(())
    }

    /// Turns this checkout to another commit.
    ///
    /// # Errors
    /// As [`of`](Self::of). The working tree is not touched.
    pub fn turn_to(&mut self, commit: &str, request: &BuildRequest) -> Result<()> {
        commit.clone_into(&mut self.commit);
        commit.clone_into(&mut self.revision);
        (self.workspace, self.is_replaced) = Default::default();
        self.checkout_commit(commit)?;
        self.prepare(request)
    }

    /// Makes paths out of the repository absolute, and links what `[bench] carry` names.
    fn prepare(&self, request: &BuildRequest) -> Result<()> {
        outside_paths::make_absolute(&self.files, &self.repository)?;
        carried::link_into(&request.bench.carry, &self.repository.join(&self.prefix), &self.folder()?, &self.revision)
    }

    /// Checks out `commit`.
    fn checkout_commit(&self, commit: &str) -> Result<()> {
        checkout_folder::checkout_in_place(&self.files, &self.repository, commit).with_context(|| {
            format!("{}: the revision cannot be checked out; is there space left?", self.files.display())
        })?;
        submodules::fetch(&self.files, &self.repository, &self.revision)
    }

    /// If `to` has built nothing in its profile yet, copies other people's packages that were built for this checkout to it. If that fails,
    /// they are built again.
    pub fn share_built_packages(&self, request: &BuildRequest, to: &Source) {
        let into = to.target_folder();
        let profile = request.bench.profile.as_deref().filter(|name| *name != "bench").unwrap_or("release");
        if to.toolchain.is_some() || into.join(profile).exists() {
            return;
        }
        let messages = self.source(request).and_then(|source| source.messages());
        let copied = messages.and_then(|all| built_packages::copy(&all, &self.files, &self.target, into));
        if let Err(error) = copied {
            output::warn("packages are built again", &error);
        }
    }

    /// Builds the bench target of this revision with its own flags and toolchain. Replaces criterion if `replace`, or if the target uses
    /// plain criterion and could be no worker otherwise.
    ///
    /// # Errors
    /// As [`Source::build`]; a manifest that cannot be edited; what cargo cannot resolve.
    pub fn build(&self, request: &BuildRequest, replace: bool) -> Result<Program> {
        let source = self.source(request)?;
        if (replace || source.needs_replacement()) && !self.is_replaced.get() {
            replacement::replace_in_manifests(&self.files, &source.folder, &source.workspace)?;
            self.is_replaced.set(true);
        }
        let built = source.build()?;
        // Benches keep files in `target`, which cargo makes in a working tree; this checkout is built in a folder outside its files.
        let folder = source.workspace.root.join("target");
        if folder.starts_with(checkout_folder::real(&self.files)) && folder.symlink_metadata().is_err() {
            checkout_folder::make(&folder)?;
        }
        Ok(built)
    }

    /// After building: how its dependencies differ from those of the lock file `head`.
    ///
    /// # Errors
    /// A lock file that cannot be read.
    pub fn dependencies(&self, head: &Path) -> Result<Option<String>> {
        let different = lock_file::difference(&self.workspace()?.lock_file(), head)?;
        let unlocked = if self.has_lock_file()? { "" } else { " (base has no Cargo.lock; commit it)" };
        Ok(different.map(|what| format!("dependencies differ{unlocked}: {what}")))
    }

    /// Whether the Cargo.lock is the revision's own. One that cargo wrote is not in git.
    fn has_lock_file(&self) -> Result<bool> {
        Ok(!git(&self.workspace()?.root, &["ls-files", "--", "Cargo.lock"])?.is_empty())
    }

    /// The current folder, in this checkout.
    ///
    /// # Errors
    /// If the revision has no such folder.
    pub fn folder(&self) -> Result<PathBuf> {
        let folder = self.files.join(&self.prefix);
        if !folder.is_dir() {
            let (revision, prefix) = (&self.revision, self.prefix.display());
            let text =
                format!("revision '{revision}' has no folder {prefix}, which head may have added; choose a later one");
            bail!(WorkerError::NotComparable(text));
        }
        Ok(folder)
    }

    /// Where and how cargo builds it.
    ///
    /// # Errors
    /// As [`workspace`](Self::workspace).
    pub fn source(&self, request: &BuildRequest) -> Result<Source> {
        let folder = self.folder()?;
        let is_commit = self.revision == self.commit;
        let mut name = if is_commit {
            short(&self.commit).to_owned()
        } else {
            format!("{} ({})", self.revision, short(&self.commit))
        };
        if let Some(change) = &self.change {
            name = format!("{name} with {change}");
        }
        Ok(Source {
            bench: request.bench.clone(),
            name: Some(name),
            folder,
            target: Some(self.target.clone()),
            locked: self.has_lock_file()?,
            toolchain: self.toolchain.clone(),
            commit: (Some(self.commit.clone()), Some(self.dirty)),
            workspace: self.workspace()?,
        })
    }

    /// [`profiles::not_in_checkout`] in the working tree.
    ///
    /// # Errors
    /// As [`folder`](Self::folder).
    pub fn settings_not_in_checkout(&self) -> Result<Option<bool>> {
        let here = self.repository.join(&self.prefix);
        Ok(profiles::not_in_checkout(&here, &self.repository, &self.folder()?, &self.files))
    }
}

/// The folder of this repository's checkouts and their builds.
fn folder(repository: &Path, request: &BuildRequest) -> Result<PathBuf> {
    if let Some(folder) = &request.base_folder {
        return std::path::absolute(folder).with_context(|| format!("{}: no usable folder", folder.display()));
    }
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let hash = sha256::of(repository.to_string_lossy().as_bytes());
    Ok(cache()?.join(format!("{name}-{}", &hash[..10])))
}

/// This program's folder in the user's cache, where no other user can put settings of cargo above a checkout. A variable that is empty or
/// relative does not count, as XDG says.
///
/// # Errors
/// Without a home folder.
pub fn cache() -> Result<PathBuf> {
    let places = [env::var_os("XDG_CACHE_HOME").map(PathBuf::from), env::home_dir().map(|home| home.join(".cache"))];
    let cache = places.into_iter().flatten().find(|cache| cache.is_absolute());
    Ok(cache.context("there is no home folder for checkouts; set XDG_CACHE_HOME")?.join("infergate"))
}
