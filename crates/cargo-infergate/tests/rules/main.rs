//! What the command decides, derives, reads and writes.

mod config;
#[path = "../../../../tests/support/fake.rs"]
mod fake;
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
