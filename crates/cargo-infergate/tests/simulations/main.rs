//! How often rules are right, by minutes of simulation. The nightly workflow runs them:
//! `cargo test -p cargo-infergate --test simulations -- --nocapture`.

mod coverage;
#[path = "../rules/gate.rs"]
#[allow(dead_code)]
mod gate;
mod queue;
mod search;
mod servers;
