//! Which builds are compared: given ones, the working tree with a revision, or HEAD with HEAD on another dependency or
//! toolchain.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use super::gate_options::{Gate, Paired};
use super::memory::Follower;
use super::{launched_workers, memory};
use crate::config::{Config, current_folder};
use crate::paired::Program;
use infergate_build::bench_target::Source;
use infergate_build::checkout::{Checkout, Slot};
use infergate_build::checkouts::Checkouts;
use infergate_build::git::{checked_out, git};
use infergate_build::sources::Sources;
use infergate_build::workspace::is_plain;
use infergate_build::{output, profiles, progress, swap, toolchain};
use infergate_core::worker::{Client, Timeouts, WorkerError, WorkerFile};
use infergate_receipts::Note;

/// The programs of both sides, and those that count their heap, where there are some.
#[derive(Default)]
pub struct BuiltPair {
    /// What is compared with.
    pub base: Program,
    /// What is judged.
    pub head: Program,
    /// Base's build that counts its heap.
    pub base_memory: Option<Program>,
    /// Program whose memory is followed for head.
    pub head_memory: Option<Follower>,
    /// How to build both again: counting their heap, or laid out alike.
    pub sources: Sources,
    /// What differs in how both were built.
    pub notes: Vec<Note>,
    /// Checkouts that are needed until all is measured; no other gate builds in them until then.
    _checkouts: Vec<Rc<Checkout>>,
}

impl BuiltPair {
    /// A pair without memory programs, sources or notes.
    fn of(base: Program, head: Program) -> Self {
        Self { base, head, ..Self::default() }
    }
}

/// Takes or builds the programs of both sides, as the flags ask. `checkouts` are shared with the other bench targets of the gate.
///
/// # Errors
/// What cannot be checked out, changed or built.
pub fn build(gate: &Gate, config: &Config, checkouts: &Checkouts) -> Result<BuiltPair> {
    let flags = &gate.paired;
    if let (Some(base), Some(head)) = (&flags.base_bin, &flags.head_bin) {
        let head_memory = gate.workers.memory_worker.clone().map(Program::new).map(Follower::counting);
        return Ok(BuiltPair { head_memory, ..BuiltPair::of(Program::new(base.clone()), Program::new(head.clone())) });
    }
    if !flags.base_url.is_empty() {
        let (base, head) = (&flags.base_url, &flags.head_url);
        let differ = |urls: &[String]| BTreeSet::from_iter(urls).len() == urls.len();
        ensure!(
            base.len() == head.len() && differ(base) && differ(head),
            "--base-url and --head-url: give as many of each, none twice; blocks take one of each in turn"
        );
        return Ok(BuiltPair::of(
            launched_workers::running(config, base).context("--base-url")?,
            launched_workers::running(config, head).context("--head-url")?,
        ));
    }
    let revision = || flags.against.as_deref().context("a worker.command is compared with a revision; give --against");
    if flags.server {
        let built = by_command(revision()?, config, true)?;
        // The same server, in a process of its own: its memory is followed from outside.
        return Ok(BuiltPair { head_memory: Some(Follower::counting(built.head.clone())), ..built });
    }
    if !config.worker.command.is_empty() {
        return by_command(revision()?, config, false);
    }
    if !flags.swap.is_empty() || flags.toolchain.is_some() {
        return two_builds_of_head(flags, config, checkouts);
    }
    against(revision()?, gate, config, checkouts)
}

/// Which side of a bench target that failed to build is at fault. `Some(true)`: base fails, and head may fail too. `Some(false)`: only head
/// fails. If base has no such target, head's failure counts as head's alone. `None`: both sides build.
pub fn fails_in_base(gate: &Gate, config: &Config, checkouts: &Checkouts) -> Option<bool> {
    let build_request = &config.build_request();
    // Without a revision, base is HEAD as it is.
    let revision = gate.paired.against.as_deref().unwrap_or("HEAD");
    let here = Source::here(build_request).ok()?;
    let Ok(checkout) = checkouts.of(revision, build_request) else { return Some(true) };
    let lacks = checkout.workspace().is_ok_and(|base| base.with_bench(&config.bench).is_empty());
    let base = base(&checkout, &here, config);
    let replace = base.as_ref().map_or(here.needs_replacement(), |(_, replace)| *replace);
    let head = head(&here, config, checkouts, (&checkout, replace));
    let fails = if lacks { head.is_ok() } else { base.is_err() };
    (fails || head.is_err()).then_some(fails)
}

/// Builds base's worker. Also gives whether criterion is replaced: plain criterion is no worker. If a package has both criterion and
/// infergate, its built bench target shows which it is.
fn base(checkout: &Checkout, here: &Source, config: &Config) -> Result<(Program, bool)> {
    let build_request = &config.build_request();
    let (replace, depends_on_plain) = (here.needs_replacement(), here.workspace.depends_on(&config.bench, &is_plain));
    if depends_on_plain {
        checkout.take_lock_file(&here.workspace.lock_file())?;
    }
    let built = checkout.build(build_request, replace)?;
    if replace || !depends_on_plain || is_worker(&built, config)? {
        return Ok((built, replace));
    }
    Ok((checkout.build(build_request, true)?, true))
}

/// Builds head's worker in place. If criterion is replaced, builds in a checkout and returns it, too.
fn head(
    here: &Source,
    config: &Config,
    checkouts: &Checkouts,
    (base, replace): (&Checkout, bool),
) -> Result<(Program, Option<Rc<Checkout>>)> {
    let build_request = &config.build_request();
    if !replace {
        base.share_built_packages(build_request, here);
        let built = here.build()?;
        if !here.workspace.depends_on(&config.bench, &is_plain) || is_worker(&built, config)? {
            return Ok((built, None));
        }
    }
    let checkout = checkouts.get(Slot::Head, build_request, || Checkout::of_working_tree(build_request))?;
    for lock_file in [here.workspace.lock_file(), base.workspace()?.lock_file()] {
        checkout.take_lock_file(&lock_file)?;
    }
    base.share_built_packages(build_request, &checkout.source(build_request)?);
    Ok((checkout.build(build_request, true)?, Some(checkout)))
}

/// Whether a program answers as a worker.
fn is_worker(program: &Program, config: &Config) -> Result<bool> {
    let request = config.measured.load_request();
    Ok(Client::spawn(&program.open()?, &request, Timeouts::default(), progress::cancelled()).is_ok())
}

/// A note if base has commits that head lacks, because others pushed meanwhile: their changes are measured, too. `None` in a shallow clone,
/// which cannot tell.
fn note_if_base_is_ahead(revision: &str, commit: &str) -> Option<Note> {
    let here = Path::new(".");
    if git(here, &["rev-parse", "--is-shallow-repository"]).ok()? == "true" {
        return None;
    }
    let count = git(here, &["rev-list", "--count", &format!("HEAD..{commit}")]).ok()?;
    let text = format!(
        "{revision} has commits that head lacks ({count}); rebase, or give --against \"$(git merge-base {revision} HEAD)\""
    );
    (count != "0").then(|| Note::from(text))
}

/// Builds the revision first, then the working tree, so that head's build scripts cannot touch base's build.
fn against(revision: &str, gate: &Gate, config: &Config, checkouts: &Checkouts) -> Result<BuiltPair> {
    let build_request = &config.build_request();
    // The revision is checked before anything is compiled: a build of minutes should not come before an error that is known at once.
    let (checkout, with_heads_benches) = checkouts.base(revision, build_request)?;
    let mut notes = Vec::from_iter(note_if_base_is_ahead(revision, &checkout.commit));
    if let Some(with_heads_benches) = with_heads_benches {
        output::status_escaped(&with_heads_benches);
        notes.push(Note::from(with_heads_benches));
    }
    let here = Source::here(build_request)?;
    let not_in_checkout = checkout.settings_not_in_checkout()?;
    if not_in_checkout == Some(true) && !here.needs_replacement() {
        // Head is built in place, with them.
        return Err(WorkerError::NotComparable(profiles::SETTINGS_NOT_IN_CHECKOUT.to_owned()).into());
    }
    // Before any code of head runs, its build scripts among it.
    let (base, replace) = base(&checkout, &here, config)?;
    // Where head's benches are plain criterion, a target named `memory` is one of them and has no memory phase.
    // Otherwise base's memory target is built even if head deleted its own, so that a pull request cannot escape the
    // count by deleting it.
    let base_memory = if replace { None } else { checkout.source(build_request)?.build_memory()? };
    let opened = std::iter::once(&base).chain(&base_memory).map(Program::open).collect::<Result<Vec<_>, _>>()?;
    let (head, head_checkout) = head(&here, config, checkouts, (&checkout, replace))?;
    let (base_memory, head_memory, head_source) = match &head_checkout {
        Some(head) => {
            notes.push(Note::from(
                "both sides were built in checkouts with infergate's drop-in replacement for criterion",
            ));
            (None, None, head.source(build_request)?)
        }
        None => (base_memory, memory::worker(config, &gate.workers, &head, config.measured.memory.runs)?, here),
    };
    opened.iter().try_for_each(WorkerFile::ensure_unchanged)?;
    notes.extend(build_notes(&checkout, &head_source, not_in_checkout)?);
    let sources = Sources { base: Some(checkout.source(build_request)?), head: Some(head_source) };
    let checkouts = std::iter::once(checkout).chain(head_checkout).collect();
    Ok(BuiltPair { base, head, base_memory, head_memory, sources, notes, _checkouts: checkouts })
}

/// Notes of what differs in how cargo builds both: dependencies, profiles, settings.
fn build_notes(base: &Checkout, head: &Source, not_in_checkout: Option<bool>) -> Result<Vec<Note>> {
    let (was, is) = (base.workspace()?, &head.workspace);
    let found = [
        base.dependencies(&is.lock_file())?,
        profiles::difference(&was.manifest(), &is.manifest()),
        not_in_checkout.map(|_| profiles::SETTINGS_NOT_IN_CHECKOUT.to_owned()),
    ];
    Ok(found.into_iter().flatten().map(Note::from).collect())
}

/// Builds the working tree and a revision by the user's own command.
fn by_command(revision: &str, config: &Config, is_server: bool) -> Result<BuiltPair> {
    let checkout = Checkout::of(revision, Slot::Base, &config.build_request())?;
    let commit = (Some(checkout.commit.clone()), Some(false));
    let base = launched_workers::build_launched(config, is_server, &checkout.folder()?, "base", commit)?;
    let opened = base.open()?;
    let here = current_folder()?;
    let head = launched_workers::build_launched(config, is_server, &here, "head", checked_out(&here))?;
    opened.ensure_unchanged()?;
    Ok(BuiltPair { _checkouts: vec![Rc::new(checkout)], ..BuiltPair::of(base, head) })
}

/// Builds HEAD twice: as it is, and on other dependencies or by another toolchain.
fn two_builds_of_head(flags: &Paired, config: &Config, checkouts: &Checkouts) -> Result<BuiltPair> {
    let build_request = &config.build_request();
    let swaps = flags.swap.iter().map(|swap| swap::Swap::parse(swap)).collect::<Result<Vec<_>>>()?;
    let mut notes = Vec::new();
    if !git(Path::new("."), &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        notes.push(Note::from("HEAD is measured on both sides: what is not committed is not in it"));
    }
    // Base takes minutes to build, and is not needed where head cannot be built.
    let change = match &flags.toolchain {
        Some(name) => {
            toolchain::ensure_installed(name)?;
            format!("--toolchain {name}")
        }
        None => format!("--swap {}", flags.swap.join(" --swap ")),
    };
    let checkout = checkouts.of("HEAD", build_request)?;
    let changed = checkouts.get(Slot::Swap, build_request, || {
        let mut changed = Checkout::of("HEAD", Slot::Swap, build_request)?;
        if !swaps.is_empty() {
            swap::apply(&swaps, &changed, false)?;
        }
        (changed.change, changed.toolchain) = (Some(change), flags.toolchain.clone());
        Ok(changed)
    })?;
    let base = checkout.build(build_request, false)?;
    let (source, changed_source) = (checkout.source(build_request)?, changed.source(build_request)?);
    checkout.share_built_packages(build_request, &changed_source);
    let head = changed.build(build_request, false)?;
    let base_memory = source.build_memory()?;
    let head_memory = Follower::or_timed(changed_source.build_memory()?, &head, config.measured.memory.runs);
    notes.extend(build_notes(&checkout, &changed_source, checkout.settings_not_in_checkout()?)?);
    let sources = Sources { base: Some(source), head: Some(changed_source) };
    Ok(BuiltPair { base, head, base_memory, head_memory, sources, notes, _checkouts: vec![checkout, changed] })
}
