//! Somebody's criterion benches, gated as they are: only the `use` line is infergate's.
//!
//! Words of the variable `EXAMPLE_BENCHES` make them do something else, for tests: `other-output`, `unrepeatable`, `no-loop`,
//! `no-sum` (that bench is gone), `once` (a set-up that works once in a process), `many` (4,100 benches more),
//! `folder` (a folder beside it that goes with its guard).

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use infergate::criterion::{
    BatchSize, Bencher, BenchmarkId, Criterion, Throughput, black_box, criterion_group, criterion_main,
};

static PASSES: AtomicU32 = AtomicU32::new(0);

fn is(word: &str) -> bool {
    env::var("EXAMPLE_BENCHES").is_ok_and(|words| words.split(',').any(|said| said == word))
}

fn fibonacci(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn alone(c: &mut Criterion) {
    if !is("no-sum") {
        sum(c);
    }
    c.bench_function("told", |b| b.iter_custom(|iterations| Duration::from_nanos(3 * iterations)));
    c.bench_with_input(BenchmarkId::new("square", 7), &7_u64, |b, n| {
        b.output([is("other-output").into()]);
        b.iter(|| black_box(n) * n);
    });
    // Cargo runs a bench in its package's folder.
    let manifest = fs::read_to_string("Cargo.toml").unwrap_or_default();
    c.bench_function("manifest", |b| {
        b.output(&manifest);
        b.iter(|| black_box(&manifest).lines().count());
    });
    let _folder = is("folder").then(Folder::new);
    for n in (0..4_100).filter(|_| is("many")) {
        c.bench_function(&format!("many/{n}"), |b| b.iter_custom(Duration::from_nanos));
    }
    if is("once") {
        set_up_once();
    }
}

/// As a database that a bench makes and removes.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = env::temp_dir().join(format!("example-{}", process::id()));
        fs::create_dir(&folder).expect("a new folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// As a global logger, and what moves to a folder of its own.
fn set_up_once() {
    static DONE: AtomicBool = AtomicBool::new(false);
    assert!(!DONE.swap(true, Ordering::Relaxed), "set up before");
    env::set_current_dir("/").expect("a folder");
}

fn sum(c: &mut Criterion) {
    c.bench_function("sum", |b| {
        if is("no-loop") {
            return;
        }
        b.iter(|| (0..black_box(1000_u64)).sum::<u64>());
    });
}

fn grouped(c: &mut Criterion) {
    let mut group = c.benchmark_group("fib");
    for n in [10_u64, 80] {
        group.throughput(Throughput::Elements(n));
        group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b: &mut Bencher<'_>, &n| {
            let mut found = fibonacci(n);
            if is("other-output") {
                found += 1;
            }
            if is("unrepeatable") {
                found += u64::from(PASSES.fetch_add(1, Ordering::Relaxed));
            }
            b.output(found.to_le_bytes());
            b.iter(|| fibonacci(black_box(n)));
        });
    }
    group.finish();
    let unsorted: Vec<u32> = (0..200_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
    let mut group = c.benchmark_group("sort");
    group.throughput(Throughput::Bytes(800));
    group.bench_function("small", |b| {
        b.iter_batched(|| unsorted.clone(), |mut v| v.sort_unstable(), BatchSize::SmallInput)
    });
    group.bench_function("lent", |b| {
        b.iter_batched_ref(|| unsorted.clone(), |v| v.sort_unstable(), BatchSize::PerIteration)
    });
    group.bench_function("large drop", |b| b.iter_with_large_drop(|| unsorted.clone()));
    group.finish();
}

criterion_group!(benches, alone);
criterion_group! {
    name = more;
    config = Criterion::default().sample_size(10);
    targets = grouped
}
criterion_main!(benches, more);
