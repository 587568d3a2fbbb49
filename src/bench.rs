//! The criterion front: one call turns an engine factory into a bench target.
//!
//! ```no_run
//! use infergate::engine::{Engine, LoadRequest};
//!
//! fn load(_request: &LoadRequest) -> anyhow::Result<Box<dyn Engine + Send>> {
//!     todo!("your engine")
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     infergate::bench::main(&load)
//! }
//! ```
//!
//! The same binary is what `cargo bench` runs (criterion's flags work), and the measured worker of the gate.

mod arguments;
mod criterion_front;
mod memory_front;
#[cfg(target_os = "linux")]
mod random;
mod record;

use std::env;
use std::process::ExitCode;

use anyhow::{Error, Result};

use crate::engine::EngineFactory;
use crate::measure::InvariantBroken;
use crate::worker::{self, WORKER_ARGUMENT};
use infergate_core::clock::MonotonicClock;
use infergate_core::config::Config;
use infergate_core::printable::print_error;
use infergate_core::process;

pub use arguments::Arguments;
pub use memory_front::main as memory_main;

/// The whole of a bench target's `main`. Errors go to stderr as one line; exit code 2 then, 3 for a broken invariant.
pub fn main(factory: &dyn EngineFactory) -> ExitCode {
    ExitCode::from(run(factory).map_or_else(|error| failed(&error), |()| 0))
}

/// Prints `error`; the exit code that it has.
fn failed(error: &Error) -> u8 {
    print_error(error);
    if error.is::<InvariantBroken>() { 3 } else { 2 }
}

fn run(factory: &dyn EngineFactory) -> Result<()> {
    if is_worker() {
        return work(factory);
    }
    process::outlive_file_limits();
    let config = Config::load(&env::current_dir()?)?;
    process::ensure_environment(&factory.environment(&config.load_request()))?;
    criterion_front::run(factory, &config, &Arguments::parse(arguments()))
}

/// Whether this process is a measured worker.
pub(crate) fn is_worker() -> bool {
    arguments().any(|argument| argument == WORKER_ARGUMENT)
}

/// The arguments after the program's name. One that is not UTF-8 names no bench, and is no reason to panic.
fn arguments() -> impl Iterator<Item = String> {
    env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// What a worker of benches or of an engine does, which the gate starts beside another one: what luck is alike in both.
pub(crate) fn beside_another<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_os = "linux")]
    random::link();
    process::stack::placed(work)
}

/// Answers requests until there are no more.
fn work(factory: &dyn EngineFactory) -> Result<()> {
    process::ensure_environment(&factory.environment(&Config::from_environment()?.load_request()))?;
    process::end_with_parent();
    beside_another(|| worker::serve_here(factory, &MonotonicClock::default()))
}
