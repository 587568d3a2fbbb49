//! Builds that do the same and are laid out differently: the linker shuffles the sections that hold functions and constants,
//! by a seed. What a change of the code does to the layout of everything else by accident is done here on purpose.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::bench_target::{self, Built, Place};
use super::relink::Linker;
use super::{criterion_front, output, progress};
use crate::config::{BenchTarget, Config};
use crate::gate::paired::{known_tau, layouts_wanted, unknown_tau};
use crate::paired::{Layouts, PairedRequest, Program, ensure_not};
use crate::receipt::{Calibration, PairedReceipt};
use infergate_core::case::Case;
use infergate_core::printable::printable_within;
use infergate_core::receipt::file_word;
use infergate_core::sha256;
use infergate_core::text_file::read_text;
use infergate_core::worker::WorkerFile;

/// Unless a number is asked for, the last crate may be compiled for so long, and all links of a side together for so long.
const COMPILE: Duration = Duration::from_secs(90);
const LINKS: Duration = Duration::from_secs(60);

/// Characters of a compiler's error.
const MOST_CHARACTERS: usize = 160;

/// Names the build that a folder's layouts were made of.
const MADE_OF: &str = "made-of";

/// Where a side's builds come from.
#[derive(Debug, Clone)]
pub struct Source {
    target: BenchTarget,
    /// Its checkout; `None` for the working tree.
    place: Option<Place>,
    folder: PathBuf,
}

impl Source {
    /// The working tree.
    pub fn here(config: &Config) -> Self {
        let folder = config.measured.target_folder().join("layouts").join(file_word(&config.bench.name()));
        Self { target: config.bench.clone(), place: None, folder }
    }

    /// Another checkout, which is built.
    pub fn at(place: Place, config: &Config) -> Self {
        let folder = place.target.join("layouts").join(file_word(&config.bench.name()));
        Self { target: config.bench.clone(), place: Some(place), folder }
    }

    /// `timed` built once more, so that it counts its heap.
    ///
    /// # Errors
    /// Where criterion does not come from infergate's front, or it does not build so; when `stop` says so before it ends, or cargo does
    /// not start.
    pub fn counting(&self, timed: &Program, stop: &dyn Fn() -> bool) -> Result<Program> {
        let folder = self.place.as_ref().map_or(Path::new("."), |place| place.folder.as_path());
        let feature = criterion_front::counting(&self.target, folder)?;
        let feature = feature.context("only benches on infergate-criterion are")?;
        let mut target = self.target.clone();
        target.features.push(feature);
        let built = bench_target::build_beside(&target, self.place.as_ref(), &[], stop)?;
        let built = built.map_err(|why| {
            anyhow!(
                "bench target '{}' does not build with an allocator that counts (it may have one of its own): {}",
                target.target,
                printable_within(&why, MOST_CHARACTERS)
            )
        })?;
        Ok(Program { path: built.path, ..timed.clone() })
    }

    /// Links `plain` anew, `count` times; fewer, at least 2, where there is not the time for all. What an earlier call left is
    /// used again where the plain build is the same, and overwritten where it is not.
    ///
    /// # Errors
    /// When cargo does not start, a file cannot be written, or all was cancelled.
    pub fn link(&self, plain: &WorkerFile, count: usize, hurried: bool, cancelled: &AtomicBool) -> Result<Linked> {
        if self.kept(plain) >= count {
            return self.files(plain, count).map(Linked::Files);
        }
        let folder = &self.folder;
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("{}: cannot be removed", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        self.clear(plain.path())?;
        let began = Instant::now();
        let stop = || cancelled.load(Ordering::Relaxed) || hurried && began.elapsed() > COMPILE;
        let captured = Linker::capture(&self.target, self.place.as_ref(), plain.path(), folder, &stop);
        ensure_not(cancelled)?;
        let linker = match captured {
            Ok(Some(linker)) => linker,
            Ok(None) if hurried && began.elapsed() > COMPILE => {
                let text = format!("the last crate takes more than {} s to compile and link", COMPILE.as_secs());
                return Ok(Linked::Not(format!("{text}; --layouts 8 does it all the same")));
            }
            Ok(None) => return Ok(Linked::Not("the last crate does not build with its object files kept".into())),
            Err(error) => return Ok(Linked::Not(format!("{error:#}"))),
        };
        let (began, mut made) = (Instant::now(), 0);
        while made < count && linker.link(made + 1, &self.path(plain.path(), made + 1)) {
            ensure_not(cancelled)?;
            made += 1;
            // As long again as they took on average.
            if hurried && began.elapsed() * (made as u32 + 1) / made as u32 > LINKS {
                break;
            }
        }
        // A link that was ended is none that the linker cannot do.
        ensure_not(cancelled)?;
        match made {
            0 => return Ok(Linked::Not("this linker does not shuffle sections (lld does)".into())),
            1 if count > 1 => return Ok(Linked::Not(format!("a link takes {} s", began.elapsed().as_secs()))),
            _ => {}
        }
        let files = self.files(plain, made)?;
        fs::write(folder.join(MADE_OF), made_of(plain, made)).context("layouts: cannot be written")?;
        Ok(Linked::Files(files))
    }

    /// How many layouts of this build are there. Their number is written last.
    fn kept(&self, plain: &WorkerFile) -> usize {
        let text = read_text(&self.folder.join(MADE_OF), 1 << 10).unwrap_or_default();
        let count = text.rsplit_once(' ').and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0);
        let is_there = (1..=count).all(|seed| self.path(plain.path(), seed).is_file());
        if is_there && text == made_of(plain, count) { count } else { 0 }
    }

    fn files(&self, plain: &WorkerFile, count: usize) -> Result<Vec<WorkerFile>> {
        let program = |seed| Program { path: self.path(plain.path(), seed), ..plain.program().clone() };
        (1..=count).map(|seed| Ok(program(seed).open()?)).collect()
    }

    /// Beside the plain build: benches look for other files by where they lie themselves. Names of equal length, which a process finds
    /// on its stack, and others for each package, since bench targets of one name lie in one folder.
    fn path(&self, plain: &Path, seed: usize) -> PathBuf {
        let (target, whose) = (&self.target.target, sha256::of(self.target.name()));
        plain.with_file_name(format!("{target}-layout{seed:03}{}{}", &whose[..8], std::env::consts::EXE_SUFFIX))
    }

    /// Removes the layouts of an earlier build.
    fn clear(&self, plain: &Path) -> Result<()> {
        let mut seed = 1;
        while self.path(plain, seed).exists() {
            let path = self.path(plain, seed);
            fs::remove_file(&path).with_context(|| format!("{}: cannot be removed", path.display()))?;
            seed += 1;
        }
        Ok(())
    }
}

fn made_of(plain: &WorkerFile, count: usize) -> String {
    format!("{} {} {count}", plain.sha256(), env!("CARGO_PKG_VERSION"))
}

/// `plain`, the working tree's bench target as cargo builds it, and as many layouts of it as can be linked; where none can, a
/// sentence that says so.
///
/// # Errors
/// As [`Source::link`].
pub fn beside(config: &Config, plain: &Built, shuffled: usize, cancelled: &AtomicBool) -> Result<Vec<WorkerFile>> {
    let program = plain.clone().program(None, None);
    let (source, built) = (Source::here(config), program.open()?);
    let mut builds = Vec::new();
    if shuffled > 0 {
        output::say(&format!("linking {shuffled} layouts"));
        match source.link(&built, shuffled, false, cancelled)? {
            Linked::Files(files) => builds = files,
            Linked::Not(why) => {
                output::line(&format!(
                    "luck of layout is not measured: {why}; give builds of your own with --other-worker"
                ));
            }
        }
    }
    // Where the others lie, under a name of the same length.
    let copy = source.path(&plain.path, 0);
    let copied = fs::copy(&plain.path, &copy);
    copied.with_context(|| format!("{}: this copy of the worker cannot be written", copy.display()))?;
    builds.insert(0, Program { path: copy, ..program }.open()?);
    Ok(builds)
}

/// What came of it.
pub enum Linked {
    /// The builds.
    Files(Vec<WorkerFile>),
    /// Why there are none.
    Not(String),
}

/// Where the builds of all sides come from; `None` where a program was given.
#[derive(Default, Clone)]
pub struct Sources {
    /// What is compared with.
    pub base: Option<Source>,
    /// What is judged.
    pub head: Option<Source>,
}

/// Links the layouts of all sides once, however often a gate measures.
pub struct Chooser<'a> {
    sources: Sources,
    request: &'a PairedRequest,
    asked: Option<usize>,
    cancelled: &'a AtomicBool,
    /// The layouts, and what the verdict says of them.
    chosen: OnceCell<(Option<Layouts>, Option<String>)>,
}

impl<'a> Chooser<'a> {
    /// As many as `asked` for; `None` follows from what is measured, and how long a link takes.
    pub fn new(sources: Sources, request: &'a PairedRequest, asked: Option<usize>, cancelled: &'a AtomicBool) -> Self {
        Self { sources, request, asked, cancelled, chosen: OnceCell::new() }
    }

    /// What the verdict says of layouts; `None` before they were chosen, or where nothing is to be said.
    pub fn note(&self) -> Option<String> {
        self.chosen.get().and_then(|(_, note)| note.clone())
    }

    /// The layouts that blocks of this suite are to draw from; `None` for one build a side.
    ///
    /// # Errors
    /// As [`Source::link`].
    pub fn choose(
        &self,
        receipt: &PairedReceipt,
        calibration: Option<&Calibration>,
        line: &progress::Line,
    ) -> Result<Option<Layouts>> {
        if let Some((layouts, _)) = self.chosen.get() {
            return Ok(layouts.clone());
        }
        let (layouts, note) = self.link(receipt, calibration, line)?;
        Ok(self.chosen.get_or_init(|| (layouts, note)).0.clone())
    }

    fn link(
        &self,
        receipt: &PairedReceipt,
        known: Option<&Calibration>,
        line: &progress::Line,
    ) -> Result<(Option<Layouts>, Option<String>)> {
        let one = |why: String| Ok((None, Some(format!("one build a side: {why}"))));
        let (Some(base), Some(head)) = (&self.sources.base, &self.sources.head) else {
            return if self.asked.is_some_and(|count| count > 1) {
                one("--layouts links what is built here, and a program was given".to_owned())
            } else {
                Ok((None, None))
            };
        };
        let count = match (self.asked, wanted(receipt, known)) {
            (Some(1), _) => return Ok((None, Some("one build a side, as asked for".to_owned()))),
            (Some(count), _) => count,
            (None, (1, why)) => return one(why),
            (None, (count, _)) => count,
        };
        let hurried = self.asked.is_none();
        line.above(|| output::say(&format!("linking {count} layouts a side")));
        let sides = [(base, &self.request.base), (head, &self.request.head)];
        let mut files = Vec::new();
        for linked in self.all(sides.into_iter(), count, hurried)? {
            match linked {
                Linked::Files(side) => files.push(side),
                Linked::Not(why) => return one(format!("{why}, so the luck of a build's layout counts as a change")),
            }
        }
        // All alike: a side with more layouts would be the quieter one.
        let least = files.iter().map(Vec::len).min().unwrap_or(0);
        files.iter_mut().for_each(|side| side.truncate(least));
        let mut side = files.into_iter();
        let mut next = || side.next().unwrap_or_default();
        let layouts = Layouts { base: next(), head: next() };
        let note = format!(
            "{least} layouts a side: each block draws one of each, so that where the linker puts the code is noise"
        );
        Ok((Some(layouts), Some(note)))
    }

    /// Side by side where there are cores for it.
    fn all<'s>(
        &self,
        sides: impl Iterator<Item = (&'s Source, &'s Program)>,
        count: usize,
        hurried: bool,
    ) -> Result<Vec<Linked>> {
        let link = |source: &Source, program: &Program| {
            let plain = program.open()?;
            source.link(&plain, count, hurried, self.cancelled)
        };
        if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
            return sides.map(|(source, program)| link(source, program)).collect();
        }
        thread::scope(|scope| {
            let link = &link;
            let threads: Vec<_> = sides.map(|(source, program)| scope.spawn(move || link(source, program))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }
}

/// Layouts a side for this suite, and why where it is one.
fn wanted(receipt: &PairedReceipt, calibration: Option<&Calibration>) -> (usize, String) {
    let timed: Vec<_> = receipt.cases.iter().filter(|case| case.timed).collect();
    let tau = |case: Case| calibration.and_then(|calibration| known_tau(calibration, case));
    let known: Vec<Option<f64>> = timed.iter().map(|case| tau(case.id)).collect();
    let count = layouts_wanted(timed.iter().zip(&known).map(|(case, tau)| {
        let limit = case.threshold.ln();
        (limit, tau.unwrap_or_else(|| unknown_tau(case.id, limit)))
    }));
    let most = known.iter().flatten().copied().fold(0.0, f64::max);
    let why = if known.iter().any(Option::is_none) {
        "how much layouts differ here was not measured (`calibrate` does; for GPT-2 at most .5 %, as a standard deviation)".to_owned()
    } else {
        format!("builds that differ in layout alone differ by {:.2} % here (standard deviation)", most * 100.0)
    };
    (count, why)
}
