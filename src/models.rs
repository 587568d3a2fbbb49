//! Engines on candle: where weights come from, and the architectures that run on them.

pub mod decoder;
pub mod gpt2;
pub mod parallel;
pub mod synthetic;
