//! The memory phase: what loading takes, what a generation takes, and whether a hundred of them take more and more.
//!
//! It runs in a process of its own, never one that is timed. A binary that installs the [`struct@CountingAllocator`] counts its heap
//! to the byte and names the places of a leak; any other worker still shows its resident set.
//!
//! A bench target of it is three lines, in `benches/memory.rs` with `harness = false`:
//!
//! ```no_run
//! # use infergate::engine::{Engine, LoadRequest};
//! #[global_allocator]
//! static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;
//!
//! # fn load(_request: &LoadRequest) -> anyhow::Result<Box<dyn Engine + Send>> {
//! #     todo!("your engine")
//! # }
//! fn main() -> std::process::ExitCode {
//!     infergate::bench::memory_main(&load)
//! }
//! ```

mod allocator;
mod counted;
mod sites;

pub(crate) use allocator::uncounted;
pub use allocator::{CountingAllocator, Heap, heap, reset_peak};
pub use counted::{allocations, count, inference, locate, run_once, state};
pub(crate) use counted::{allocations_of_iteration, count_iteration};
