//! divan under its own name: benches stay as they are, and the gate can measure them.
//!
//! ```toml
//! [dev-dependencies]
//! divan = { package = "infergate-divan", version = "0.1" }
//! ```
//!
//! `cargo bench` still runs divan. Without this line `cargo infergate gate --against main` puts it into its own checkouts.
//!
//! The gate asks divan itself for each sample: one of so many iterations. What it took is read from the table that divan prints, which
//! has four digits.

mod builder;
#[cfg(unix)]
mod samples;

pub use builder::Divan;
pub use divan::*;

/// What benches take with one line.
pub mod prelude {
    pub use super::Divan;
    pub use divan::prelude::*;
}

/// In place of [`divan::main`]: divan's under `cargo bench`, a worker under the gate.
pub fn main() {
    Divan::from_args().main();
}

/// Answers the gate.
#[cfg(unix)]
fn work() {
    let benches = samples::list().unwrap_or_else(|error| fail("divan's benches cannot be listed", error));
    let groups = || {
        let mut criterion = infergate::criterion::Criterion::default();
        for name in &benches {
            criterion.bench_function(name.as_str(), |bencher| {
                bencher.iter_custom(|iterations| {
                    let took = samples::time(name, &benches, iterations);
                    took.unwrap_or_else(|error| fail(&format!("{name}: divan gave no time"), error))
                });
            });
        }
    };
    if !infergate::criterion::__worker_without_profile(&groups) {
        std::process::exit(2);
    }
}

#[cfg(unix)]
fn fail(why: &str, error: anyhow::Error) -> ! {
    eprintln!("error: {why}: {error:#}");
    std::process::exit(2)
}

/// Elsewhere than on Unix the gate cannot read what divan prints.
#[cfg(not(unix))]
fn work() {
    eprintln!("error: divan's benches are gated on Unix alone");
    std::process::exit(2);
}
