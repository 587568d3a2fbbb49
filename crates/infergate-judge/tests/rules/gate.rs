//! The gate decides what gate.md says it decides.

mod accept;
mod bursts;
mod channels;
mod compare;
mod counts;
mod coverage;
mod days;
mod exact;
mod false_alarms;
mod idle_cpu;
mod invalid;
mod limits;
mod load;
mod load_runs;
mod memory;
mod merge;
mod output;
mod paired;
mod platforms;
mod properties;
mod shares;
mod stored;
pub mod support;
mod target;
mod undecided;
