//! Where allocations that outlive their run come from: while it is on, every allocation's call stack is kept until its
//! release. Slow, and therefore a pass of its own, taken only after a leak was found.

use std::cell::Cell;
use std::collections::HashMap;
use std::env;
use std::path::{Component, Path};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::receipt::LeakSite;

/// Return addresses kept of a stack.
const DEPTH: usize = 48;
/// Frames of it that are shown.
const SHOWN_FRAMES: usize = 8;
/// Places that are shown.
const SHOWN_SITES: usize = 5;

/// Crates that allocate on behalf of others: not where a leak is. By the folders of their sources, because a build with line
/// tables alone keeps no paths in the names of inlined functions.
const PLUMBING: &[&str] =
    &["/library/alloc/", "/library/core/", "/library/std/", "/backtrace-", "/hashbrown-", "/rayon-core-"];

static ON: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

thread_local! {
    /// Keeping a stack allocates, and that must not be kept again.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Kept {
    run: usize,
    /// Stacks by their return addresses.
    stacks: HashMap<Vec<usize>, usize>,
    live: HashMap<usize, Live>,
}

/// One allocation that was not released yet.
struct Live {
    run: usize,
    bytes: usize,
    stack: usize,
}

/// Begins run `run`; the first call turns the keeping on.
pub fn begin_run(run: usize) {
    with_kept(|kept| kept.get_or_insert_default().run = run);
    ON.store(true, Relaxed);
}

/// Ends the pass. The places whose allocations of the runs before `runs` are still there, by bytes: what was made in the last
/// run may be replaced by the next one and is left out.
pub fn finish(runs: usize) -> Vec<LeakSite> {
    ON.store(false, Relaxed);
    let mut found = Vec::new();
    with_kept(|kept| {
        let kept = kept.take().unwrap_or_default();
        let mut sums: HashMap<usize, (usize, usize)> = HashMap::new();
        for live in kept.live.values().filter(|live| live.run < runs) {
            let (bytes, blocks) = sums.entry(live.stack).or_default();
            *bytes += live.bytes;
            *blocks += 1;
        }
        let mut stacks: Vec<(Vec<usize>, (usize, usize))> =
            kept.stacks.into_iter().filter_map(|(stack, id)| Some((stack, sums.remove(&id)?))).collect();
        stacks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        stacks.truncate(SHOWN_SITES);
        found = stacks
            .into_iter()
            .map(|(stack, (bytes, blocks))| LeakSite {
                bytes_per_run: bytes as f64 / runs.max(1) as f64,
                blocks_per_run: blocks as f64 / runs.max(1) as f64,
                frames: frames(&stack),
            })
            .collect();
    });
    found
}

/// Called for every allocation.
pub(super) fn allocated(pointer: *mut u8, bytes: usize) {
    if ON.load(Relaxed) {
        keep(pointer as usize, bytes);
    }
}

/// Called for every release.
pub(super) fn released(pointer: *mut u8) {
    if ON.load(Relaxed) {
        with_kept(|kept| {
            if let Some(kept) = kept {
                kept.live.remove(&(pointer as usize));
            }
        });
    }
}

#[cold]
fn keep(pointer: usize, bytes: usize) {
    unless_busy(|| {
        // Not while `KEPT` is held: whoever takes a stack for reasons of their own holds its lock, allocates, and waits for it.
        let mut stack = Vec::with_capacity(DEPTH);
        backtrace::trace(|frame| {
            stack.push(frame.ip() as usize);
            stack.len() < DEPTH
        });
        if let Ok(mut kept) = KEPT.lock()
            && let Some(kept) = kept.as_mut()
        {
            let next = kept.stacks.len();
            let stack = *kept.stacks.entry(stack).or_insert(next);
            kept.live.insert(pointer, Live { run: kept.run, bytes, stack });
        }
    });
}

/// Runs `work` on what is kept, unless this thread is at it already.
fn with_kept(work: impl FnOnce(&mut Option<Kept>)) {
    unless_busy(|| {
        if let Ok(mut kept) = KEPT.lock() {
            work(&mut kept);
        }
    });
}

fn unless_busy(work: impl FnOnce()) {
    // A thread that is ending has no flag any more; what it releases then is missed, and shows as too much.
    let free = BUSY.try_with(|busy| !busy.replace(true)).unwrap_or(false);
    if free {
        work();
        let _ = BUSY.try_with(|busy| busy.set(false));
    }
}

fn frames(stack: &[usize]) -> Vec<String> {
    let mut frames = Vec::new();
    let mut in_run = true;
    for address in stack {
        backtrace::resolve(*address as *mut _, |symbol| {
            // What called the run is nobody's leak either.
            in_run &= !symbol.filename().is_some_and(|file| file.ends_with(super::counted::FILE));
            let Some(name) = symbol.name().map(|name| format!("{name:#}")) else { return };
            let place = symbol.filename().zip(symbol.lineno());
            let plumbing = place.map_or(name.contains("alloc::"), |(file, _)| is_plumbing(file));
            if in_run && !plumbing && frames.len() < SHOWN_FRAMES {
                frames.push(place.map_or(name.clone(), |(file, line)| format!("{name} at {}:{line}", short(file))));
            }
        });
    }
    frames
}

fn is_plumbing(file: &Path) -> bool {
    let text = file.to_string_lossy();
    file.ends_with(file!()) || file.ends_with(super::allocator::FILE) || PLUMBING.iter().any(|part| text.contains(part))
}

/// A source file without the folders of whoever built it: below the current folder, a crate of the registry, or its last
/// three components.
fn short(path: &Path) -> String {
    if let Some(own) = env::current_dir().ok().and_then(|folder| path.strip_prefix(folder).ok()) {
        return text(own.components());
    }
    let parts: Vec<Component> = path.components().collect();
    let crate_folder =
        parts.windows(2).position(|pair| pair[0].as_os_str() == "registry" && pair[1].as_os_str() == "src");
    let from = crate_folder.map_or(parts.len().saturating_sub(3), |at| (at + 3).min(parts.len()));
    text(parts[from..].iter().copied())
}

fn text<'a>(parts: impl Iterator<Item = Component<'a>>) -> String {
    parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}
