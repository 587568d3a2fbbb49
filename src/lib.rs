#![doc = include_str!("../README.md")]

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod criterion;
pub mod engine;
// Nobody calls `load`, `measure` and `worker` but infergate's own tests.
#[doc(hidden)]
pub mod load;
#[doc(hidden)]
pub mod measure;
#[cfg(feature = "bench")]
pub mod memory;
#[cfg(feature = "bench")]
mod profiler;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod worker;
