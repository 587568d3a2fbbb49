//! Files that nobody meant well: whatever is in them, reading, judging and showing them ends, without a panic, in one line or
//! in a table that says nothing of its own on a terminal.
//!
//! `cargo test` tries 2,000 inputs of each kind; `PROPTEST_CASES=100000 cargo test --workspace --test hostile` as many as told. A process of its own, whose heap is counted.

#[path = "../../../../tests/support/hostile.rs"]
mod hostile;

mod corpus;
mod doors;
mod files;
mod memory;
mod mutation;
mod resident;
mod swell;
mod words;

use hostile::inputs;

#[global_allocator]
static COUNTING: hostile::Counting = hostile::Counting;
