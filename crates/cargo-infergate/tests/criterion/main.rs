//! Benches of criterion and divan, gated as they are. These tests compile both, so the nightly workflow runs them:
//! `cargo test -p cargo-infergate --test criterion`.

mod as_they_are;
mod refused;
#[path = "../cli/repositories.rs"]
#[allow(dead_code)]
mod repositories;
#[path = "../cli/sandbox.rs"]
#[allow(dead_code)]
mod sandbox;
mod stand_ins;
#[path = "../../../../tests/support/mod.rs"]
mod support;
