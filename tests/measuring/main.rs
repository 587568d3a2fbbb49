//! What a bench target does: engines and their contract, what is timed, the worker's protocol.

mod bench_flags;
mod engine_contract;
#[path = "../support/fake.rs"]
mod fake;
#[cfg(unix)]
mod idle;
mod measure;
mod memory_runs;
mod numeric_crates;
mod prompt;
mod reread;
mod streaming;
#[path = "../support/mod.rs"]
mod support;
mod ttft;
#[cfg(unix)]
mod worker;
