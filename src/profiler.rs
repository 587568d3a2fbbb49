//! Where this process's threads are while it takes samples.
//!
//! A timer on each thread's processor time interrupts it every millisecond of that, or as often as the kernel looks (each 4 ms at
//! 250 Hz). The handler takes the registers and lets the kernel copy the top of the stack into memory that was reserved before, so
//! it allocates nothing and reads nothing that may not be there. Whoever asked unwinds the stacks later, by the programs' own tables:
//! neither frame pointers nor another build are needed. It takes no rights and works in a container. Threads that end within some
//! milliseconds get no timer in time; where they do much of the work, one timer on the whole process's time takes the place of theirs.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod records;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod timers;

use std::path::Path;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Result;
use infergate_core::worker::Profile;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use timers::{Of, Timers};

/// The part of all processor time that threads with a timer of their own have to have.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
const LEAST_TIMED: f64 = 0.9;

/// Does `work`, which gives what [`Profile::samples_ns`] holds, and writes to `file` where threads were meanwhile.
///
/// # Errors
/// Those of `work`; a system that cannot, a signal that is used already, a file that cannot be written.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn profile(file: &Path, work: &mut dyn FnMut() -> Result<Vec<Vec<u64>>>) -> Result<Profile> {
    /// Set once threads were seen that end too soon to get a timer of their own.
    static SOON_ENDED: AtomicBool = AtomicBool::new(false);
    let of = if SOON_ENDED.load(Relaxed) { Of::Process } else { Of::EachThread };
    let records = records::Records::begin()?;
    let timers = Timers::start(records::SIGNAL, of)?;
    let done = work();
    let spent = timers.stop()?;
    let samples_ns = done?;
    if of == Of::EachThread && (spent.timed_ns as f64) < LEAST_TIMED * spent.all_ns as f64 {
        SOON_ENDED.store(true, Relaxed);
        drop(records);
        return profile(file, work);
    }
    let (timed, untimed) = records.end(file)?;
    Ok(Profile { samples_ns, processor_ns: spent.all_ns, timed, untimed, modules: timers::modules()? })
}

/// Does `work`, which gives what [`Profile::samples_ns`] holds, and writes to `file` where threads were meanwhile.
///
/// # Errors
/// Always: it is not known how on this system.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn profile(_: &Path, _: &mut dyn FnMut() -> Result<Vec<Vec<u64>>>) -> Result<Profile> {
    anyhow::bail!("worker: threads are looked at on Linux for x86-64 and aarch64 alone")
}

#[cfg(all(test, target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;
    use std::path::Path;
    use std::thread;

    use infergate_core::worker::profile::HEAD_BYTES;

    use super::profile;

    fn work() {
        let mut sum = 1_u64;
        (0..200_000_u64).for_each(|at| sum = black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at)));
    }

    /// The threads of the records in `file`.
    fn threads(file: &Path) -> Vec<u32> {
        let bytes = std::fs::read(file).expect("what was seen");
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (mut at, mut found) = (0, Vec::new());
        while at + HEAD_BYTES <= bytes.len() {
            found.push(word(at));
            at += HEAD_BYTES + word(at + 4) as usize;
        }
        found
    }

    /// One that lives for less than a millisecond has no timer of its own, and does all the work.
    #[test]
    fn threads_that_end_soon_are_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("stacks");
        let mut seen = Vec::new();
        for _ in 0..50 {
            let rounds = || (0..40).for_each(|_| thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work)))));
            profile(&file, &mut || {
                Ok(vec![vec![{
                    rounds();
                    1
                }]])
            })
            .expect("a profile");
            seen.extend(threads(&file));
            if seen.len() >= 40 {
                break;
            }
        }
        let mut distinct = seen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(
            seen.len() >= 40 && distinct.len() > seen.len() / 2,
            "{} threads in {} records",
            distinct.len(),
            seen.len()
        );
    }
}
