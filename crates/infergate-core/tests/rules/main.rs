//! What cases, times, texts and receipts mean, and the rules over them.

mod case;
mod fingerprint;
mod leak_rule;
mod printable;
mod resident;
mod subject;
mod trace;
mod worker_rules;
