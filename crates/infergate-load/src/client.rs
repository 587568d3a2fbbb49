//! The client: it sends requests, stamps what comes back, and knows how late its stamps are.
//!
//! `request` is one request, `runner` a level of them, `endpoint` some servers as a target. `audit` drives the client against
//! `script_server`, whose times are known.

pub mod audit;
pub mod connection;
pub mod cpu;
pub mod dial;
pub mod endpoint;
pub mod kernel_time;
pub mod request;
pub mod runner;
pub mod script_server;
pub mod stamped;
pub mod stream;
#[cfg(feature = "tls")]
mod tls;
pub mod url;
