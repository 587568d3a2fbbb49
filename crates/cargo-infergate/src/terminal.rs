//! What is said while a command runs: results to stdout, words and progress to stderr; and when the user wants it to end.

pub mod output;
pub mod progress;
