//! Gates of repositories whose two sides cargo builds, of servers in real time, and programs that the compiler makes. That takes minutes,
//! so CI runs them in a job of their own: `cargo test -p cargo-infergate --test builds`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod alike;
mod base_build;
mod bench_targets;
mod bisect;
mod carried;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
mod command_worker;
mod harness;
#[cfg(unix)]
#[path = "../cli/interrupt.rs"]
#[allow(dead_code)]
mod interrupt;
#[cfg(target_os = "linux")]
mod left_behind;
#[path = "../cli/paired.rs"]
#[allow(dead_code)]
mod paired;
#[path = "../cli/repositories.rs"]
#[allow(dead_code)]
mod repositories;
mod revisions;
mod same_code;
#[path = "../cli/sandbox.rs"]
#[allow(dead_code)]
mod sandbox;
mod server;
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod swap;
#[cfg(unix)]
mod turns;
