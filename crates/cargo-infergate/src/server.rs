//! A server that is measured: started, waited for, sent requests, followed and ended.
//!
//! [`worker`] makes one a worker of the gate, so that two builds of it are compared as two bench targets are.

pub mod answer;
pub mod memory;
mod process;
pub mod worker;
