//! The server over loopback, spoken to by hand: what OpenAI clients rely on, and what must not break it.

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod client;
mod engines;

mod answers;
mod connections;
mod program;
mod queue;
mod refused;
mod stop;
mod streams;
mod timed;
