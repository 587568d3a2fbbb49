//! The command line of infergate, as a library: it starts bench targets as workers, compares, judges and reports. It never
//! links an engine.

// Nobody links this library but its own tests.
#![allow(missing_docs)]

pub mod cli;
mod command_worker;
pub mod config;
mod coverage;
pub mod machine;
pub mod paired;
pub mod server;
pub mod suite;
pub mod why;
