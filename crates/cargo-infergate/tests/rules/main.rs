//! What the command decides, derives, reads and writes.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
mod config;
#[allow(dead_code)]
mod gate;
mod load;
mod local_load;
mod machine;
mod paired;
mod receipt;
mod suite;
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod why;
