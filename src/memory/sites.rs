//! Where allocations that outlive their run come from: while it is on, every allocation's call stack is kept until its
//! release. Slow, and therefore a pass of its own, taken only after a leak was found.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use infergate_core::receipt::{AllocationSite, LeakSite};

/// Return addresses kept of a stack.
const DEPTH: usize = 48;
/// Frames of it that are shown.
const SHOWN_FRAMES: usize = 8;
/// Places whose allocations are counted.
const COUNTED_SITES: usize = 500;
/// Places that are shown.
const SHOWN_SITES: usize = 5;

/// Crates that allocate on behalf of others: not where a leak is. By the folders of their sources, because a build with line
/// tables alone keeps no paths in the names of inlined functions.
const PLUMBING: &[&str] = &["/library/alloc/", "/library/core/", "/library/std/", "/hashbrown-", "/rayon-core-"];

/// The same by the names of functions, where a build keeps no lines of its dependencies.
const PLUMBING_NAMES: &[&str] = &[
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "rayon_core::",
    "infergate::memory::allocator",
    "infergate::memory::sites",
];

/// What calls a run, by name.
const CALLERS: &[&str] = &["infergate::memory::counted", "infergate::criterion::"];

static ON: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

thread_local! {
    /// Keeping a stack allocates, and that must not be kept again.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Kept {
    run: usize,
    /// Stacks by their return addresses: the place of each in `places`.
    stacks: HashMap<Vec<usize>, usize>,
    /// The same stacks as the standard library can name their frames.
    places: Vec<Backtrace>,
    live: HashMap<usize, Live>,
    /// Allocations and bytes of each stack, whatever was released since.
    made: HashMap<usize, (usize, usize)>,
}

impl Kept {
    fn frames(&self, stack: usize) -> Vec<String> {
        self.places.get(stack).map(|place| frames(&place.to_string())).unwrap_or_default()
    }
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
    let kept = take();
    let mut sums: HashMap<usize, (usize, usize)> = HashMap::new();
    for live in kept.live.values().filter(|live| live.run < runs) {
        let (bytes, blocks) = sums.entry(live.stack).or_default();
        *bytes += live.bytes;
        *blocks += 1;
    }
    let mut stacks: Vec<(usize, (usize, usize))> = sums.into_iter().collect();
    stacks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    stacks.truncate(SHOWN_SITES);
    let site = |(stack, (bytes, blocks))| LeakSite {
        bytes_per_run: bytes as f64 / runs.max(1) as f64,
        blocks_per_run: blocks as f64 / runs.max(1) as f64,
        frames: kept.frames(stack),
    };
    stacks.into_iter().map(site).collect()
}

/// Ends the pass. All places that allocated in it, in each of `parts` equal parts of it, those that allocated most first.
pub fn finish_counting(parts: usize) -> Vec<AllocationSite> {
    let kept = take();
    let mut sums: BTreeMap<Vec<String>, (usize, usize)> = BTreeMap::new();
    for (stack, (blocks, bytes)) in &kept.made {
        let (all_blocks, all_bytes) = sums.entry(kept.frames(*stack)).or_default();
        (*all_blocks, *all_bytes) = (*all_blocks + blocks, *all_bytes + bytes);
    }
    let each = |sum: usize| sum as f64 / parts as f64;
    let site = |(frames, (blocks, bytes))| AllocationSite { allocations: each(blocks), bytes: each(bytes), frames };
    let mut found: Vec<AllocationSite> = sums.into_iter().map(site).collect();
    found.sort_by(|a, b| b.allocations.total_cmp(&a.allocations));
    found.truncate(COUNTED_SITES);
    found
}

/// Turns the keeping off, and gives what was kept. Whoever prints a stack holds the standard library's lock, and may not wait for ours.
fn take() -> Kept {
    ON.store(false, Relaxed);
    let mut taken = None;
    with_kept(|kept| taken = kept.take());
    taken.unwrap_or_default()
}

/// Does `work` whose allocations are nobody's.
pub fn paused<T>(work: impl FnOnce() -> T) -> T {
    let was_on = ON.swap(false, Relaxed);
    let done = work();
    if was_on {
        ON.store(true, Relaxed);
    }
    done
}

/// Called for every allocation, of `live_bytes`, of which `made_bytes` are new.
pub fn allocated(pointer: *mut u8, live_bytes: usize, made_bytes: usize) {
    if ON.load(Relaxed) {
        keep(pointer as usize, live_bytes, made_bytes);
    }
}

/// Called for every release.
pub fn released(pointer: *mut u8) {
    if ON.load(Relaxed) {
        with_kept(|kept| {
            if let Some(kept) = kept {
                kept.live.remove(&(pointer as usize));
            }
        });
    }
}

#[cold]
fn keep(pointer: usize, live_bytes: usize, made_bytes: usize) {
    unless_busy(|| {
        let addresses = return_addresses();
        let note = |kept: &mut Kept, stack: usize| {
            kept.live.insert(pointer, Live { run: kept.run, bytes: live_bytes, stack });
            let (blocks, all_bytes) = kept.made.entry(stack).or_default();
            (*blocks, *all_bytes) = (*blocks + 1, *all_bytes + made_bytes);
        };
        if let Ok(mut kept) = KEPT.lock() {
            let known = kept.as_mut().and_then(|kept| kept.stacks.get(&addresses).copied().map(|stack| (kept, stack)));
            if let Some((kept, stack)) = known {
                return note(kept, stack);
            }
        }
        // A stack that was not seen before, which is seldom. Not while `KEPT` is held: whoever takes one for reasons of their
        // own holds the standard library's lock, allocates, and waits for `KEPT`.
        let place = Backtrace::force_capture();
        if let Some(kept) = KEPT.lock().ok().as_mut().and_then(|kept| kept.as_mut()) {
            let next = kept.places.len();
            let stack = *kept.stacks.entry(addresses).or_insert(next);
            if stack == next {
                kept.places.push(place);
            }
            note(kept, stack);
        }
    });
}

/// Return addresses of this thread's stack, the innermost first. The C library gives them without a lock of ours.
#[cfg(any(all(target_os = "linux", target_env = "gnu"), target_vendor = "apple"))]
fn return_addresses() -> Vec<usize> {
    let mut addresses = [std::ptr::null_mut(); DEPTH];
    // SAFETY: the array has room for as many addresses as are asked for.
    let found = unsafe { libc::backtrace(addresses.as_mut_ptr(), DEPTH as libc::c_int) };
    addresses.iter().take(usize::try_from(found).unwrap_or(0)).map(|address| *address as usize).collect()
}

/// Elsewhere the names of the frames have to do, which takes longer.
#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), target_vendor = "apple")))]
fn return_addresses() -> Vec<usize> {
    Backtrace::force_capture().to_string().bytes().map(usize::from).collect()
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

/// The frames of a printed stack that say where a leak is.
fn frames(printed: &str) -> Vec<String> {
    let mut frames = Vec::new();
    let mut in_run = true;
    let mut lines = printed.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        // `12: name`, and a function inlined into it without the number.
        let name = match line.split_once(": ") {
            Some((number, name)) if number.parse::<usize>().is_ok() => name,
            _ => line,
        };
        let place = lines.next_if(|line| line.starts_with("at ")).and_then(|line| place(&line[3..]));
        // What called the run is nobody's leak either.
        in_run &= !place.is_some_and(|(file, _)| file.ends_with("memory/counted.rs")) && !is_of(name, CALLERS);
        let by_name = || is_of(name, PLUMBING_NAMES);
        let plumbing = place.map_or_else(by_name, |(file, _)| is_plumbing(file));
        // The compiler places these at the line of the program's `#[global_allocator]`.
        let plumbing = plumbing || name.contains("__rust_alloc") || name.contains("__rust_realloc");
        if in_run && !plumbing && frames.len() < SHOWN_FRAMES {
            frames.push(place.map_or(name.to_owned(), |(file, line)| format!("{name} at {}:{line}", short(file))));
        }
    }
    frames
}

/// Whether a function is of one of these modules, or one of their traits for a type that has no name.
fn is_of(name: &str, modules: &[&str]) -> bool {
    let own = name.trim_start_matches(['<', '&', '[', '*']);
    let of = |module: &&str| {
        let of_trait = |(kind, of): (&str, &str)| !kind.contains("::") && of.starts_with(module);
        own.starts_with(module) || own.split_once(" as ").is_some_and(of_trait)
    };
    modules.iter().any(of)
}

/// `FILE:LINE:COLUMN`; below the current folder FILE begins with `./`, which is left out.
fn place(text: &str) -> Option<(&Path, &str)> {
    let (rest, _column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((Path::new(file.strip_prefix("./").unwrap_or(file)), line))
}

fn is_plumbing(file: &Path) -> bool {
    let text = file.to_string_lossy();
    file.ends_with(file!()) || file.ends_with("memory/allocator.rs") || PLUMBING.iter().any(|part| text.contains(part))
}

/// A source file without the folders of whoever built it: below the current folder whole, of a crate of the registry from its
/// folder on, of any other its last three components.
fn short(path: &Path) -> String {
    let parts: Vec<Component> = path.components().collect();
    let crate_folder =
        parts.windows(2).position(|pair| pair[0].as_os_str() == "registry" && pair[1].as_os_str() == "src");
    let from = match crate_folder {
        _ if path.is_relative() => 0,
        Some(at) => (at + 3).min(parts.len()),
        None => parts.len().saturating_sub(3),
    };
    parts[from..].iter().collect::<PathBuf>().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::frames;

    #[test]
    fn without_lines_the_names_say_whose_a_frame_is() {
        let printed = "   0: infergate::memory::sites::keep\n   1: __rust_alloc\n   2: <alloc::vec::Vec<T> as core::clone::Clone>::clone\n   \
                       3: <T as alloc::string::SpecToString>::spec_to_string\n   4: my_core::upper\n   \
                       5: <words::Line as core::iter::traits::iterator::Iterator>::next\n   \
                       6: infergate::criterion::bencher::Bencher<M>::iter\n   7: bench::main\n";
        let own = ["my_core::upper", "<words::Line as core::iter::traits::iterator::Iterator>::next"];
        assert_eq!(frames(printed), own);
    }
}
