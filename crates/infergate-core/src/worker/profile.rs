//! What a worker says of where its threads were while it took samples.
//!
//! # The file
//! One record a sample, little-endian, one behind the other: the thread's number and the bytes of stack that follow, 32 bits each;
//! then instruction pointer, stack pointer, frame pointer and link register, 64 bits each (the last is 0 on x86-64); then as many
//! bytes of the stack, from the stack pointer upwards. Samples outside of timed regions are counted and not written.

use serde::{Deserialize, Serialize};

/// Whether this system can interrupt a thread by its processor time and copy its stack.
pub const IS_SUPPORTED: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// Bytes of a record before its stack.
pub const HEAD_BYTES: usize = 40;

/// The most bytes of stack in a record.
pub const STACK_BYTES: usize = 8 << 10;

/// The most records in a file: some 130 MB.
pub const MOST_RECORDS: usize = 16 << 10;

/// Answer to [`Request::Profile`](super::Request::Profile).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// As of [`Request::Sample`](super::Request::Sample).
    pub samples_ns: Vec<Vec<u64>>,
    /// Processor time of all threads meanwhile, nanoseconds.
    pub processor_ns: u64,
    /// Times that a thread was interrupted in a timed region, with those that there was no room for.
    pub timed: u64,
    /// Times that a thread was interrupted elsewhere, while something was set up.
    pub untimed: u64,
    /// The files that code was loaded from.
    pub modules: Vec<ProfileModule>,
}

/// A stretch of a file in the memory of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileModule {
    /// The file.
    pub path: String,
    /// Where it begins.
    pub from: u64,
    /// The address behind it.
    pub to: u64,
    /// The place in the file that lies at `from`.
    pub offset: u64,
}
