//! The command line of infergate, as a library: it starts bench targets as workers, compares, judges and reports. It never
//! links an engine.

// Nobody links this library but its own tests.
#![allow(missing_docs)]

mod builds;
pub mod cli;
pub mod code;
pub mod command_worker;
pub mod config;
pub mod coverage;
pub mod gate;
pub mod machine;
pub mod paired;
pub mod receipt;
pub mod report;
#[cfg(feature = "load")]
pub mod server;
pub mod suite;
mod terminal;
pub mod watcher;
pub mod why;
