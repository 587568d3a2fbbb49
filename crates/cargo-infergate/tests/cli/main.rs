//! The command line, run as a user runs it, on a fake engine that keeps virtual time.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod alike;
mod base_build;
mod bench_targets;
mod benches;
mod bisect;
mod carried;
#[cfg(target_os = "linux")]
mod ci;
mod command_worker;
#[cfg(unix)]
mod demo;
mod engine_rules;
mod harness;
mod init;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod kept;
#[cfg(target_os = "linux")]
mod left_behind;
mod memory;
mod paired;
mod repositories;
mod revisions;
mod same_code;
mod sandbox;
mod server;
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod swap;
#[cfg(unix)]
mod terminal;
mod terms;
mod toolchain;
#[cfg(unix)]
mod turns;
