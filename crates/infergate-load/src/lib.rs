//! Load: many requests at once on a server or an engine, by a client that measures its own accuracy.
//!
//! - [`plan`]: what a level asks, by which users, when; which level to try next.
//! - [`api`]: what a request says to a server, and how its streamed answer is read.
//! - [`client`]: sends requests over HTTP, and checks itself against a scripted server (feature `client`).
//! - [`targets`]: what load is put on: a server, or an engine in a worker process.
//! - [`receipt`]: the files of a load run and of its baseline.
//! - [`summary`]: every number that follows from a receipt, and the session of a baseline that a run becomes.
//! - [`validity`]: whether a run's numbers can be used.
//! - [`merge`]: receipts of several machines into one.

pub mod api;
#[cfg(feature = "client")]
pub mod client;
pub mod merge;
pub mod plan;
pub mod receipt;
pub mod summary;
pub mod targets;
pub mod validity;
