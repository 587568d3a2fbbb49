//! What the command decides, derives, reads and writes.

mod calibration;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
mod config;
mod gate;
mod gate_looks;
mod load;
mod local_load;
mod machine;
mod receipt;
mod report_command;
mod suite;
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod why;
