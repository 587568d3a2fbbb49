//! Open files and threads over many runs: those that leak are reported, pools are not.

use infergate_core::memory::leak::{MemoryMeasure, judge, needs_confirmation};
use infergate_receipts::{MemoryRecord, MemorySample, MemorySeries, Outcome};

use super::memory::record;

/// A phase of 100 runs in which nothing but the number of open files and of threads moves.
fn counts(files: impl Fn(u64) -> u64, threads: impl Fn(u64) -> u64) -> MemoryRecord {
    let mut record = record(100, |_| (1e9, 2e9));
    record.runs = MemorySeries::default();
    for at in 0..200 {
        let sample = MemorySample {
            live_bytes: Some(1 << 30),
            rss_bytes: Some(2 << 30),
            open_files: Some(files(at)),
            threads: Some(threads(at)),
            ..MemorySample::default()
        };
        record.runs.push(&sample).expect("nothing is lost");
    }
    record
}

#[test]
fn open_files_and_threads_are_reported_only_if_they_leak() {
    let judged = |record: &MemoryRecord| -> Vec<(MemoryMeasure, Option<f64>, Option<String>)> {
        let rows = judge(record);
        rows.into_iter().skip(2).map(|row| (row.evidence.measure, row.evidence.count_per_run, row.note)).collect()
    };
    let leaks = counts(|at| 9 + at, |at| 4 + at / 3);
    assert!(needs_confirmation(&leaks));
    let [(files, one, note), (threads, third, _)] = &judged(&leaks)[..] else { panic!("two rows") };
    assert_eq!(
        (*files, *one, note.as_deref()),
        (MemoryMeasure::OpenFiles, Some(1.0), Some("open files rise by 1 a run"))
    );
    assert!(*threads == MemoryMeasure::Threads && third.is_some_and(|third| (0.3..0.4).contains(&third)));
    let worst = judge(&leaks).into_iter().map(|row| row.outcome).collect::<Vec<_>>();
    assert_eq!(worst, [Outcome::Pass, Outcome::Pass, Outcome::Leak, Outcome::Leak]);

    let pool = |at: u64| 4 + at.min(60);
    let tables: [&dyn Fn(u64) -> u64; 5] = [&|_| 9, &|at| 9 + at % 7, &pool, &|at| 9 + at / 50, &|at| 9 + at.min(3)];
    for (nth, table) in tables.into_iter().enumerate() {
        assert!(judged(&counts(table, table)).is_empty(), "{nth}");
    }
    assert!(!needs_confirmation(&counts(|at| 9 + at % 7, |_| 4)));
}
