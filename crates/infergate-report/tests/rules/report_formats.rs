//! Reports as files: a small one in each format, the same numbers in all of them, and nothing that a hostile file could make of
//! them.
//!
//! After a change that is meant: `INSTA_UPDATE=always cargo test --package cargo-infergate --test rules report_formats`, and read the
//! diff of `snapshots/`.

mod runs;
pub mod support;

mod agree;
mod commands;
mod headline;
mod hostile;
mod letter;
mod load;
mod load_targets;
mod many_cases;
mod numbers;
mod pages;
mod run_sections;
