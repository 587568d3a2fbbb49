//! The random numbers that a process begins with, the same in both processes of a pair.
//!
//! Hash maps are seeded anew in each process, and one whose keys fall together badly stays slower to its end; other benches draw what they
//! work on. So the gate names a seed for both processes of a pair, another one each time, and what luck costs is the same on both sides.

use std::env;
use std::ffi::{c_uint, c_void};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use infergate_core::process::RANDOM_SEED;
use sha2::{Digest as _, Sha256};

/// As many draws come from the seed. Later ones are the system's: a bench that draws in its loop is timed with its call.
const SHARED_DRAWS: u64 = 1_000;

/// Lets the linker take this file: whoever calls [`getrandom`] would be content with the C library's.
pub(crate) fn link() {
    black_box(getrandom as unsafe extern "C" fn(*mut c_void, usize, c_uint) -> isize);
}

/// The C library's function, by which the standard library and most others draw, in its place. It asks the system first, so that it takes as
/// long and fails as that does.
///
/// # Safety
/// As `getrandom(2)`: `length` bytes at `buffer` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    static DRAWS: AtomicU64 = AtomicU64::new(0);
    // SAFETY: the caller's promise.
    let drawn = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) } as isize;
    let (Some(seed), Ok(bytes)) = (seed(), usize::try_from(drawn)) else { return drawn };
    let draw = DRAWS.fetch_add(1, Ordering::Relaxed);
    if draw < SHARED_DRAWS && bytes > 0 {
        // SAFETY: the system has just written these bytes.
        let drawn = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
        for (at, part) in (0_u64..).zip(drawn.chunks_mut(32)) {
            let numbers =
                Sha256::new().chain_update(seed).chain_update(draw.to_le_bytes()).chain_update(at.to_le_bytes());
            part.copy_from_slice(&numbers.finalize()[..part.len()]);
        }
    }
    drawn
}

/// What the environment names.
fn seed() -> Option<&'static str> {
    static SEED: OnceLock<Option<String>> = OnceLock::new();
    SEED.get_or_init(|| env::var(RANDOM_SEED).ok()).as_deref()
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};
    use std::process::Command;

    use super::*;

    #[test]
    fn two_processes_with_one_seed_hash_alike() {
        const PRINTS: &str = "INFERGATE_TEST_PRINTS";
        if env::var_os(PRINTS).is_some() {
            return println!("hash {}.", RandomState::new().hash_one("a key"));
        }
        let of_process = |seed: Option<&str>| {
            let mut command = Command::new(env::current_exe().expect("a program"));
            command.args(["--exact", "bench::random::tests::two_processes_with_one_seed_hash_alike", "--nocapture"]);
            command.env(PRINTS, "1").env_remove(RANDOM_SEED).envs(seed.map(|seed| (RANDOM_SEED, seed)));
            let output = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
            output.split("hash ").nth(1).and_then(|rest| rest.split('.').next()).expect("a hash").to_owned()
        };
        assert_eq!(of_process(Some("1")), of_process(Some("1")));
        assert_ne!(of_process(Some("1")), of_process(Some("2")));
        assert_ne!(of_process(None), of_process(None));
    }
}
