//! Models: where they come from, what they compute, and what is said of one that cannot be used.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../tests/support/mod.rs"]
mod support;

mod bad_input;
mod engine;
mod generate;
mod gpt2;
mod gpt2_together;
mod hub;
mod match_transformers;
mod memory;
mod output_evidence;
mod serve;
mod spec;
mod tokenizer;
