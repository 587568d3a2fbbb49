//! The APIs of servers: what a request asks for, and how its streamed answer is read. Pure.

pub mod body;
mod chunk;
pub mod completion;
pub mod events;
pub mod failures;
pub mod text;
