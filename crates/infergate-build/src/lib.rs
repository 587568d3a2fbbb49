//! From a revision, dependency or toolchain to runnable programs with the same code layout: checkouts, edits to them, cargo calls.

// Only the command links it.
#![allow(missing_docs)]

mod alike;
pub mod bench_choice;
pub mod bench_target;
pub mod build_command;
mod built_packages;
pub mod cargo_settings;
mod carried;
pub mod checkout;
mod checkout_folder;
pub mod checkouts;
pub mod code;
pub mod edited;
pub mod git;
mod heads_benches;
pub mod keep_objects;
pub mod lock_file;
mod manifest;
pub mod origin;
pub mod output;
mod outside_paths;
pub mod profiles;
pub mod progress;
pub mod relink;
mod replacement;
pub mod run_captured;
pub mod sources;
pub mod start_files;
mod submodules;
pub mod swap;
pub mod toolchain;
pub mod watcher;
mod working_tree;
pub mod workspace;
