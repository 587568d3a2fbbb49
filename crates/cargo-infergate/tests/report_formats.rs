//! Reports as files: each format to the letter, the same numbers in all of them, and nothing that a hostile file could make of
//! them.
//!
//! After a change that is meant: `INSTA_UPDATE=always cargo test --package cargo-infergate --test report_formats`, and read the
//! diff of `snapshots/`.

#[path = "report_formats/runs.rs"]
mod runs;
#[path = "report_formats/support.rs"]
mod support;

#[path = "report_formats/agree.rs"]
mod agree;
#[path = "report_formats/commands.rs"]
mod commands;
#[path = "report_formats/every_field.rs"]
mod every_field;
#[path = "report_formats/headline.rs"]
mod headline;
#[path = "report_formats/hostile.rs"]
mod hostile;
#[path = "report_formats/load.rs"]
mod load;
#[path = "report_formats/load_targets.rs"]
mod load_targets;
#[path = "report_formats/many_cases.rs"]
mod many_cases;
#[path = "report_formats/numbers.rs"]
mod numbers;
#[path = "report_formats/pages.rs"]
mod pages;
#[path = "report_formats/run_sections.rs"]
mod run_sections;
#[path = "report_formats/splice.rs"]
mod splice;
