//! Files that nobody meant well: whatever is in them, reading, judging and showing them ends, without a panic, in one line or
//! in a table that says nothing of its own on a terminal.
//!
//! `cargo test` tries 2,000 inputs of each kind; `PROPTEST_CASES=100000 cargo test --workspace --test hostile` as many as told.

mod corpus;
mod files;
mod mutation;
mod words;

/// How many inputs of each kind.
fn inputs() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}
