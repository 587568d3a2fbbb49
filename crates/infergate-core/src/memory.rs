//! The memory phase from outside the measured process, and the rule by which it calls leaks.

pub mod leak;
mod phase;
pub mod resident;
mod size;

pub use phase::{MemoryRequest, run};
pub use size::size;
