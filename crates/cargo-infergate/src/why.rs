//! Finds the functions that make a case slower.
//!
//! A verdict says that a case is slower; this says where. Both programs run once more in blocks of fresh processes, in turn, while a
//! profiler in them samples where their threads are. Each block gives one difference for each function, so that each has an error of its
//! own. It explains and never judges: the times that decided were taken without it.

mod change;
mod image;
mod lines;
pub mod names;
mod process;
mod stacks;
mod tally;

use std::collections::HashMap;
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::paired::{PairedRequest, TimedBuilds};
use infergate_build::code::{Changed, ChangedFunction};
use infergate_build::edited::Edited;
use infergate_core::text_file::read_bytes;
use infergate_core::worker::{Capability, Client, Profile, Sampling, Timeouts, WorkerFile};
use infergate_receipts::{Explained, PairedCase};

pub use change::{edited_first, explained};
use image::Image;
pub use image::{Change, Frame};
use names::last_part;
use process::{Images, each_stack};
pub use tally::Tally;

/// The fewest blocks of a profile, even if its time is over.
const FEWEST_BLOCKS: usize = 4;
/// The fewest blocks of a profile that has time.
const BLOCKS: usize = 8;
/// The most blocks of a profile.
const MOST_BLOCKS: usize = 20;
/// The number of blocks if the standard deviation of their differences is as large as the change. It grows with the square of that ratio.
const BLOCKS_BY_NOISE: f64 = 20.0;
/// The shortest turn of one side (ns): short, so that both sides see the same swings of the machine. At least one sample.
const TURN_NS: f64 = 2e7;
/// The fewest turns of each side in a pair of processes.
const FEWEST_TURNS: usize = 2;
/// The most turns of each side in a pair of processes.
const MOST_TURNS: usize = 320;
/// How far apart kernels check timers of processor time (ns): 250 times a second.
const TICK_NS: f64 = 4e6;
/// Samples of a side that find a change of all its time, in one function that has half of it: by 11 / change^2, in 95 of 100 at a
/// level of 0.001.
const SAMPLES_BY_CHANGE: f64 = 11.0;
/// The fewest samples of a side that a profile aims at.
const LEAST_SAMPLES: f64 = 3_000.0;
/// The most samples of a side that a profile aims at.
const MOST_SAMPLES: f64 = 13_000.0;
/// A smaller change of the time (a fraction) would need many more samples than that, so it is profiled as briefly as the largest.
const LEAST_CHANGE: f64 = 0.01;
/// The part of the available time that each side is profiled; starting processes takes the rest.
const LOOKED_SHARE: f64 = 1.0 / 3.0;
/// The longest a turn may last, with its set-up / the intended time of its timed regions.
const MOST_SET_UP: f64 = 3.0;
/// The largest file of stacks that is read. The worker writes it: some thousand samples of a few hundred frames.
const MAX_STACKS_BYTES: u64 = 64 << 20;
/// The fewest samples that a profile needs, on the side that has more.
const FEWEST_SAMPLES: u64 = 100;

/// The difference of a case's times that is explained.
#[derive(Clone, Copy)]
pub struct Difference {
    /// The change of the time, as a fraction.
    pub change: f64,
    /// Standard deviation of blocks, as a fraction, if it is known.
    pub block_std: Option<f64>,
    /// Whether the verdict reports it.
    pub is_reported: bool,
}

impl Difference {
    /// The number of blocks that are profiled.
    pub fn blocks(&self) -> usize {
        let noise = self.block_std.filter(|_| self.is_seen()).unwrap_or(0.0) / self.change.abs().max(LEAST_CHANGE);
        ((BLOCKS_BY_NOISE * noise.powi(2)).ceil() as usize).clamp(BLOCKS, MOST_BLOCKS)
    }

    /// How long each side is profiled, nanoseconds of processor time.
    fn looked_ns(&self) -> f64 {
        let samples = if self.is_seen() {
            (SAMPLES_BY_CHANGE / self.change.powi(2)).clamp(LEAST_SAMPLES, MOST_SAMPLES)
        } else {
            LEAST_SAMPLES
        };
        samples * TICK_NS
    }

    /// Whether the change is large enough to show within [`MOST_SAMPLES`].
    fn is_seen(&self) -> bool {
        self.change.abs() >= LEAST_CHANGE
    }
}

pub struct Sides<'a> {
    /// Base and head as they were timed. A block profiles as many pairs as a timed one started.
    pub builds: &'a TimedBuilds,
    /// The request that both were timed by.
    pub request: &'a PairedRequest,
    /// Functions whose machine code differs, if that is known.
    pub changed: Option<&'a Changed>,
    /// Functions that head edits, if that is known.
    pub edited: Option<&'a Edited>,
}

/// Finds the functions whose time differs in `case`, within `most`; `None`: without a time limit. `begun` gets the number of each block.
///
/// # Errors
/// Why they cannot be found.
pub fn explain(
    case: &PairedCase,
    difference: Difference,
    most: Option<Duration>,
    sides: &Sides,
    begun: &mut dyn FnMut(usize),
) -> Result<Explained> {
    let folder = tempfile::tempdir().context("a folder for what is seen cannot be made")?;
    let begun_at = Instant::now();
    let most_ns = most.map_or(f64::INFINITY, |most| most.as_nanos() as f64);
    let TimedBuilds { pairs, per_block } = sides.builds;
    let pair_ns = difference.looked_ns().min(most_ns * LOOKED_SHARE) / (difference.blocks() * per_block) as f64;
    let mut seen = Seen { images: Images::new(), changed: changed(sides).into(), file: folder.path().join("stacks") };
    let mut builds = pairs.iter().cycle();
    let mut blocks: Vec<(Tally, Tally)> = Vec::new();
    for block in 0..difference.blocks() {
        let with_this_ns = begun_at.elapsed().as_nanos() as f64 * (block + 1) as f64 / block as f64;
        if block >= FEWEST_BLOCKS && with_this_ns > most_ns {
            break;
        }
        begun(block);
        let mut tallies = (Tally::default(), Tally::default());
        for pair in builds.by_ref().take(*per_block) {
            look(case, pair, pair_ns, block % 2 == 1, sides, &mut seen, &mut tallies)?;
        }
        blocks.push(tallies);
    }
    let has_names = |(_, head): &(WorkerFile, WorkerFile)| seen.images.get(&path(head))?.as_ref().map(Image::has_names);
    ensure!(
        pairs.iter().any(|pair| has_names(pair) == Some(true)),
        "its program has no symbols (strip), so functions have no names"
    );
    let knows_changed = sides.changed.is_some_and(|changed| changed.is_complete);
    let mut found = explained(case.id, &blocks, knows_changed);
    // Functions of a time that did not change come and go with the samples: they explain nothing.
    if !difference.is_reported && !found.total.is_some_and(|total| total.is_sure()) {
        found.functions.clear();
    }
    // A side that is many times faster works little.
    let seen = found.base_samples.max(found.head_samples);
    ensure!(seen >= FEWEST_SAMPLES, "its threads ran too briefly for a profile ({seen} of {FEWEST_SAMPLES} samples)");
    Ok(with_edited(found, sides.edited))
}

/// Marks the functions that the change edits.
fn with_edited(mut explained: Explained, edited: Option<&Edited>) -> Explained {
    for function in &mut explained.functions {
        // A function that kept its machine code was not edited, another one of its name was.
        let inlined = function.place.as_deref().and_then(|place| place.split_once(" at ")).map(|(name, _)| name);
        let has = |edited: &Edited| {
            edited.has(last_part(&function.name)) || inlined.is_some_and(|name| edited.has(last_part(name)))
        };
        function.edited = edited.map(|edited| function.changed != Some(false) && has(edited));
    }
    edited_first(&mut explained.functions);
    explained
}

/// Profiles fresh processes of both builds in turn, each for `pair_ns`.
fn look(
    case: &PairedCase,
    (base, head): &(WorkerFile, WorkerFile),
    pair_ns: f64,
    head_first: bool,
    sides: &Sides,
    seen: &mut Seen,
    tallies: &mut (Tally, Tally),
) -> Result<()> {
    let mut base = start(case, base, sides).map_err(|error| error.context("base"))?;
    let mut head = start(case, head, sides).map_err(|error| error.context("head"))?;
    let (of_base, of_head) = (sample_ns(case, &mut base)?, sample_ns(case, &mut head)?);
    let least_ns = TURN_NS.max(of_base.1).max(of_head.1);
    let turns = ((pair_ns / least_ns).round() as usize).clamp(FEWEST_TURNS, MOST_TURNS).next_multiple_of(2);
    let turn_ns = pair_ns / turns as f64;
    // Fewer samples if setting them up takes most of the time.
    let samples = |(timed_ns, passed_ns): (f64, f64)| (turn_ns / timed_ns).min(turn_ns * MOST_SET_UP / passed_ns);
    let (in_base, in_head) = (samples(of_base), samples(of_head));
    // As many of both sides, unless that would take head much longer.
    let in_head = if in_head < in_base / 2.0 { in_head } else { in_base };
    for turn in 0..2 * turns {
        // A B B A, or the other way round.
        let is_head = (turn % 4 == 1 || turn % 4 == 2) != head_first;
        let (client, tally, samples) =
            if is_head { (&mut head, &mut tallies.1, in_head) } else { (&mut base, &mut tallies.0, in_base) };
        let each = case.iterations_per_sample.max(1);
        let count = (samples.round() as usize).clamp(1, 1_000_000);
        let profile = client.profile(case.id, count, each, &seen.file)?;
        tally.turn(&profile, (count * each) as u64);
        seen.count(&profile, tally)?;
    }
    Ok(())
}

fn start(case: &PairedCase, file: &WorkerFile, sides: &Sides) -> Result<Client<'static>> {
    let mut client = sides.request.start(file, Timeouts::default())?;
    ensure!(
        client.can(Capability::Profile),
        "its worker cannot sample its threads (it takes an engine in Rust or criterion benches, on Linux on x86-64 or aarch64)"
    );
    client.prepare(case.id, None)?;
    Ok(client)
}

/// How long the timed regions of a sample take, and how long the whole sample takes, nanoseconds.
fn sample_ns(case: &PairedCase, client: &mut Client) -> Result<(f64, f64)> {
    let sampling = Sampling::of(1, case.iterations_per_sample);
    // The first sample sets up what later ones reuse, such as a prompt that was read.
    client.sample(case.id, sampling)?;
    let begun = Instant::now();
    let sample = client.sample(case.id, sampling)?.samples_ns;
    let passed_ns = begun.elapsed().as_nanos() as f64;
    let timed_ns = sample.iter().filter_map(|times| times.last()).map(|ns| *ns as f64).sum::<f64>();
    Ok((timed_ns.max(1.0), passed_ns.max(1.0)))
}

/// The images that were read, what changed in them, and where the next stacks are.
struct Seen {
    images: Images,
    changed: Rc<HashMap<String, Change>>,
    file: std::path::PathBuf,
}

impl Seen {
    /// Counts the stacks of a turn.
    fn count(&mut self, profile: &Profile, tally: &mut Tally) -> Result<()> {
        for module in &profile.modules {
            let read = || Image::read(&module.path, self.changed.clone());
            self.images.entry(module.path.clone()).or_insert_with(read);
        }
        let bytes = read_bytes(&self.file, MAX_STACKS_BYTES).context("what was seen cannot be read")?;
        each_stack(&profile.modules, &self.images, &bytes, |frames| tally.stack(frames))
    }
}

/// A program's path without links, as the system reports it.
fn path(file: &WorkerFile) -> String {
    let path = fs::canonicalize(file.path()).unwrap_or_else(|_| file.path().to_owned());
    path.to_string_lossy().into_owned()
}

/// Functions that may have changed, by name, and how.
fn changed(sides: &Sides) -> HashMap<String, Change> {
    let how = |function: &ChangedFunction| match function.has_other_instructions {
        false => Change::Refers,
        true if sides.edited.is_some_and(|edited| edited.has(last_part(&function.name))) => Change::Edited,
        true => Change::Instructions,
    };
    let functions = sides.changed.iter().flat_map(|changed| &changed.functions);
    functions.map(|function| (function.name.clone(), how(function))).collect()
}
