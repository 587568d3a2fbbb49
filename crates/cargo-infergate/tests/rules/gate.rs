//! The gate decides what gate.md says it decides.

mod accept;
mod anchor;
mod bursts;
mod channels;
mod compare;
mod coverage;
mod days;
mod exact;
mod false_alarms;
mod invalid;
mod iterations;
mod limits;
mod load;
pub mod load_runs;
mod memory;
mod merge;
mod output;
pub mod paired;
mod pairs;
mod properties;
mod servers;
mod simulated_server;
mod stored;
mod support;
mod target;
mod undecided;
mod under_load;
