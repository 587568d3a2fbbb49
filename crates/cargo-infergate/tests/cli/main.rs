//! The command line, run as a user runs it, on a fake engine that keeps virtual time.

mod benches;
#[cfg(target_os = "linux")]
mod ci;
mod command_worker;
#[cfg(unix)]
mod demo;
mod engine_rules;
mod init;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod kept;
#[cfg(target_os = "linux")]
mod left_behind;
mod memory;
mod paired;
#[allow(dead_code)]
mod repositories;
mod sandbox;
mod server;
#[path = "../../../../tests/support/mod.rs"]
mod support;
#[cfg(unix)]
mod terminal;
mod terms;
mod toolchain;
#[cfg(unix)]
mod turns;
