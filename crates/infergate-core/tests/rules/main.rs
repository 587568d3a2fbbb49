//! What cases, times, texts and receipts mean, and the rules over them.

mod beta;
mod case;
mod exact_intervals;
mod fingerprint;
mod leak_rule;
mod measuring_properties;
mod printable;
mod resident;
mod stats;
mod subject;
mod trace;
mod worker_rules;
