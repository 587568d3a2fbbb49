//! Criterion benches with a `main` of their own. The word `endless` in `EXAMPLE_BENCHES` leaves out its end, for tests. `folder` makes a
//! folder that goes when `main` returns.

use std::env;
use std::time::Duration;

use infergate::criterion::{BenchmarkId, Criterion, criterion_group};

fn told(c: &mut Criterion) {
    for ns in [3, 5] {
        c.bench_with_input(BenchmarkId::new("told", ns), &ns, |b, ns| {
            b.output(ns.to_string());
            b.iter_custom(|iterations| Duration::from_nanos(ns * iterations));
        });
    }
}

criterion_group!(benches, told);

fn main() {
    println!("Benches of a main of its own");
    // As what a global logger needs.
    assert!(env::args().count() > 0);
    let word = env::var("EXAMPLE_BENCHES").unwrap_or_default();
    let _folder = (word == "folder").then(|| tempfile::tempdir().expect("a folder"));
    benches();
    Criterion::default().final_summary();
    let mut last = Criterion::default().configure_from_args();
    last.bench_function("last", |b| b.iter_custom(|iterations| Duration::from_nanos(7 * iterations)));
    if word != "endless" {
        last.final_summary();
    }
}
