//! Existing criterion benches, gated as they are: `use infergate::criterion::*` in place of `criterion::*`.
//!
//! ```no_run
//! use infergate::criterion::{Criterion, black_box, criterion_group, criterion_main};
//!
//! fn sum(c: &mut Criterion) {
//!     c.bench_function("sum", |b| b.iter(|| (0..black_box(1000_u64)).sum::<u64>()));
//! }
//!
//! criterion_group!(benches, sum);
//! criterion_main!(benches);
//! ```
//!
//! `cargo bench` runs criterion itself and prints what it printed. The same binary is a measured worker of the gate, which
//! compares two builds of it bench by bench: `cargo infergate gate --against main --bench-target NAME`. Nothing of criterion's files
//! is read. The timed loops are the ones below for both, and do what criterion's do.
//!
//! In a worker the functions of a group run more than once, and a bench's closure runs when the gate asks for that bench: set-up
//! beside `bench_function` has to be repeatable. Where it panics the second time, each time is in a new process.
//!
//! # The output, too
//! A faster wrong answer is no improvement. A bench that says what it computed is compared before its time is:
//! [`Bencher::output`].
//!
//! # What is not here
//! - A measurement other than wall time: `cargo bench` runs such a bench, and the gate refuses it with a sentence.
//! - `bench_with_input` and the others of `Criterion` take this module's [`BenchmarkId`], which is made as criterion's is.
//! - `iter_custom` returns what the measurement returns, as in criterion; the gate takes that time as it is told.
//! - `criterion::runner`, the `criterion::profiler` hooks in the gate (a profiler works in `cargo bench -- --profile-time`), and
//!   `cargo-criterion`'s messages from a worker.
//! - `to_async` needs feature `async`. Executors are features of criterion itself: name it in Cargo.toml beside infergate, for
//!   example with `features = ["async_tokio"]`.

/// Criterion's settings of a bench, which mean nothing to a worker, and further ones: handed to the macro that makes them.
macro_rules! settings_of_benches {
    ($settings:ident { $($further:tt)* }) => {
        $settings! {
            /// Samples of a bench under `cargo bench`.
            sample_size(samples: usize);
            /// Warm-up of a bench under `cargo bench`.
            warm_up_time(time: Duration);
            /// Time for the samples of a bench under `cargo bench`.
            measurement_time(time: Duration);
            /// Resamples of criterion's bootstrap.
            nresamples(resamples: usize);
            /// Criterion's own threshold of noise.
            noise_threshold(threshold: f64);
            /// Criterion's own level of confidence.
            confidence_level(level: f64);
            /// Criterion's own level of significance.
            significance_level(level: f64);
            $($further)*
        }
    };
}

#[cfg(feature = "async")]
mod async_bencher;
mod at_bench;
mod bencher;
mod director;
mod front;
mod group;
mod id;
mod reexec;
mod shared;
mod v0_3_compat;

use std::process::ExitCode;

use crate::measure::untimed;
use crate::memory::uncounted;
use infergate_core::printable::print_error;

pub use std::hint::black_box;

pub use ::criterion::async_executor;
pub use ::criterion::{
    AxisScale, Baseline, BatchSize, BenchmarkFilter, PlotConfiguration, PlottingBackend, SamplingMode, Throughput,
    measurement, profiler,
};

#[cfg(feature = "async")]
pub use async_bencher::AsyncBencher;
pub use bencher::Bencher;
pub use front::Criterion;
pub use group::BenchmarkGroup;
pub use id::{BenchmarkId, IntoBenchmarkId};
pub use v0_3_compat::{Benchmark, BenchmarkDefinition, Fun, ParameterizedBenchmark};

pub use crate::{criterion_group, criterion_main};

/// Sets up what an iteration needs, or drops what it left: neither timed nor counted.
fn set_up<T>(work: impl FnOnce() -> T) -> T {
    uncounted(|| untimed(work))
}

/// A function that runs benches, as criterion's macro of this name makes it.
#[macro_export]
macro_rules! criterion_group {
    (name = $name:ident; config = $config:expr; targets = $( $target:path ),+ $(,)*) => {
        /// The function which runs the benchmarks.
        pub fn $name() {
            let mut criterion: $crate::criterion::Criterion<_> = $config.configure_from_args();
            $( $target(&mut criterion); )+
        }
    };
    ($name:ident, $( $target:path ),+ $(,)*) => {
        $crate::criterion_group! {
            name = $name;
            config = $crate::criterion::Criterion::default();
            targets = $( $target ),+
        }
    };
}

/// The `main` of a bench target: criterion's under `cargo bench`, a worker under the gate.
#[macro_export]
macro_rules! criterion_main {
    ( $( $group:path ),+ $(,)* ) => {
        fn main() -> ::std::process::ExitCode {
            $crate::criterion::__main(&|| { $( $group(); )+ })
        }
    };
}

/// What [`criterion_main!`] calls with all groups. Benches take all names with `use criterion::*`, so those that criterion does not have begin
/// as no other's do.
#[doc(hidden)]
pub fn __main(groups: &dyn Fn()) -> ExitCode {
    if !crate::bench::is_worker() {
        groups();
        Criterion::default().configure_from_args().final_summary();
        return ExitCode::SUCCESS;
    }
    if worker(groups) { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Whether the gate started this process.
#[doc(hidden)]
pub fn __is_worker() -> bool {
    crate::bench::is_worker()
}

/// As [`worker`], of benches that say themselves what they took: a profile would count what else they do.
#[doc(hidden)]
pub fn __worker_without_profile(groups: &dyn Fn()) -> bool {
    director::WITHOUT_PROFILE.store(true, std::sync::atomic::Ordering::Relaxed);
    worker(groups)
}

/// Answers the gate until it asks for nothing more. Whether that went well; why not is on stderr.
fn worker(groups: &dyn Fn()) -> bool {
    infergate_core::process::end_with_parent();
    crate::bench::beside_another(|| director::serve(groups)).inspect_err(print_error).is_ok()
}
