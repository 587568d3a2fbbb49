//! Engines on candle: where weights come from, and the architectures that run on them.

pub mod decoder;
