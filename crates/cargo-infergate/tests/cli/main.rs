//! The command line, run as a user runs it, on a fake engine that keeps virtual time.

mod benches;
#[cfg(target_os = "linux")]
mod ci;
#[cfg(unix)]
mod demo;
mod engine_rules;
mod init;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod kept;
mod memory;
mod paired;
#[allow(dead_code)]
mod repositories;
mod sandbox;
#[path = "../../../../tests/support/mod.rs"]
mod support;
#[cfg(unix)]
mod terminal;
mod terms;
mod toolchain;
