//! [infergate's criterion](infergate::criterion) under criterion's name: benches stay as they are, and the gate can measure them.
//!
//! ```toml
//! [dev-dependencies]
//! criterion = { package = "infergate-criterion", version = "0.1" }
//! ```
//!
//! `cargo bench` still runs criterion. Without this line `cargo infergate gate --against main` puts it into its own checkouts.

#[cfg(feature = "counting")]
#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

pub use infergate::criterion::*;
