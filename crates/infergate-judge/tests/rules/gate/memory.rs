//! The memory channel on synthetic series: what leaks is found, what only moves is not, and what it says of its own sight
//! is true.

use infergate_core::case::Case;
use infergate_core::memory::leak::{
    Finding, HeapGrowth, MIN_RUNS, MemoryMeasure, ResidentTrend, heap_rises, heap_trend, judge, needs_confirmation,
    resident_trend,
};
use infergate_receipts::{LoadMemory, MemoryRecord, MemorySample, MemorySeries, Outcome};
use proptest::prelude::*;

const PAGE: f64 = 4096.0;
const MIB: f64 = 1_048_576.0;

/// A phase whose heap and resident set after each run are what `run` says.
pub fn record(runs: usize, mut run: impl FnMut(usize) -> (f64, f64)) -> MemoryRecord {
    let mut series = MemorySeries::default();
    for at in 0..2 * runs {
        let (live, rss) = run(at);
        let sample = MemorySample {
            live_bytes: Some(live as u64),
            live_blocks: Some(7),
            rss_bytes: Some(rss as u64),
            ..MemorySample::default()
        };
        series.push(&sample).expect("nothing is lost");
    }
    let mut record = MemoryRecord {
        partial: false,
        invalid: Vec::new(),
        missing: Vec::new(),
        load: LoadMemory::default(),
        inference: None,
        case: "generate/p128-o64".parse::<Case>().expect("a case"),
        warm_up_runs: 5,
        asked_runs: runs,
        runs: series,
        sites: Vec::new(),
    };
    // The runs that confirm are only taken when they are asked for.
    if !needs_confirmation(&record) {
        for column in [&mut record.runs.live_bytes, &mut record.runs.live_blocks, &mut record.runs.rss_bytes] {
            column.truncate(runs);
        }
    }
    record
}

fn row(record: &MemoryRecord, measure: MemoryMeasure) -> Finding {
    let rows = judge(record);
    rows.into_iter().find(|row| row.evidence.measure == measure).expect("a row")
}

/// The resident set of a process that does not leak: pages come and go, and what came stays for a while.
struct Pages {
    random: fastrand::Rng,
    wandering: f64,
}

impl Pages {
    fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), wandering: 0.0 }
    }

    fn next(&mut self) -> f64 {
        let step = (self.random.f64() - 0.5) * 16.0;
        self.wandering = 0.5 * self.wandering + step;
        5e8 + PAGE * self.wandering.round()
    }
}

#[test]
fn noise_of_pages_is_no_leak_in_a_thousand_phases() {
    for seed in 0..1000 {
        let mut pages = Pages::new(seed);
        let row = row(&record(100, |_| (1e9, pages.next())), MemoryMeasure::Resident);
        assert_eq!(row.outcome, Outcome::Pass, "seed {seed}: {row:?}");
    }
}

#[test]
fn sixteen_kib_a_run_of_the_resident_set_are_a_leak() {
    let leaks = |seed: u64| {
        let mut pages = Pages::new(seed);
        row(&record(100, |at| (1e9, pages.next() + 16384.0 * at as f64)), MemoryMeasure::Resident).outcome
            == Outcome::Leak
    };
    let share = (0..200).filter(|seed| leaks(*seed)).count();
    assert!(share >= 190, "{share} of 200");
}

#[test]
fn the_stated_smallest_leak_is_the_one_that_is_found_nineteen_times_of_twenty() {
    // Noise large enough that the floor of 1 MiB is not all there is.
    let noisy = |seed: u64, at_a_run: f64| {
        let mut pages = Pages::new(seed);
        record(100, |at| (1e9, 5e8 + 40.0 * (pages.next() - 5e8) + at_a_run * at as f64))
    };
    let stated: Vec<f64> = (0..40)
        .filter_map(|seed| row(&noisy(seed, 0.0), MemoryMeasure::Resident).evidence.smallest_leak_bytes)
        .collect();
    let stated = stated.iter().sum::<f64>() / stated.len() as f64;
    // By the rule of the first look alone: that is what the formula speaks of.
    let share = |at_a_run: f64| {
        let hit = |seed: &u64| {
            resident_trend(&noisy(*seed, at_a_run).runs.rss_bytes[..100]).is_some_and(|trend| trend.rises())
        };
        (1000..1200).filter(hit).count() as f64 / 200.0
    };
    assert!(share(2.0 * stated) >= 0.95, "twice the stated {stated}: {}", share(2.0 * stated));
    assert!(share(0.5 * stated) < 0.95, "half the stated {stated}: {}", share(0.5 * stated));
}

#[test]
fn a_rise_that_slows_down_is_inconclusive_and_says_how_many_runs_would_settle_it() {
    let slowing = |runs| {
        record(runs, |at| (1e9, 5e8 + PAGE * 20.0 * at.min(100) as f64 + PAGE * 5.0 * at.saturating_sub(100) as f64))
    };
    let first = row(&slowing(100), MemoryMeasure::Resident);
    assert_eq!(first.outcome, Outcome::Inconclusive, "{first:?}");
    let note = first.note.expect("a note");
    let words: Vec<&str> = note.strip_suffix(" runs may decide it").expect("an advice").split(' ').collect();
    let runs: usize = words.last().expect("a number").parse().expect("a number");
    assert_eq!(row(&slowing(runs), MemoryMeasure::Resident).outcome, Outcome::Leak, "it goes on rising; {note}");
}

#[test]
fn what_was_cut_short_or_broke_a_rule_passes_nothing() {
    let partial = MemoryRecord { partial: true, ..record(100, |_| (1e9, 5e8)) };
    let invalid = MemoryRecord { invalid: vec!["another output".into()], ..record(100, |_| (1e9, 5e8)) };
    for measure in [MemoryMeasure::Heap, MemoryMeasure::Resident] {
        assert_eq!(row(&partial, measure).outcome, Outcome::Partial);
        assert_eq!(row(&invalid, measure).outcome, Outcome::Invalid);
    }
    let leaking = MemoryRecord { partial: true, ..record(100, |at| (1e9 + at as f64, 5e8)) };
    assert_eq!(row(&leaking, MemoryMeasure::Heap).outcome, Outcome::Leak, "what was shown stays shown");
}

#[test]
fn what_ended_before_its_time_shows_neither_a_leak_nor_the_lack_of_one() {
    // It rose over the hundred asked for, and ended a quarter into the hundred that would have confirmed it.
    let mut confirming = record(100, |at| (1e9, 5e8 + PAGE * 20.0 * at.min(100) as f64));
    assert_eq!(row(&confirming, MemoryMeasure::Resident).outcome, Outcome::Plateau);
    confirming.partial = true;
    for column in [&mut confirming.runs.live_bytes, &mut confirming.runs.live_blocks, &mut confirming.runs.rss_bytes] {
        column.truncate(125);
    }
    let cut = row(&confirming, MemoryMeasure::Resident);
    assert_eq!(cut.outcome, Outcome::Partial);
    assert!(cut.note.is_some_and(|note| note.contains("after 125 of 200 runs")));

    let warming_up = record(24, |at| (1e9 + 1e5 * at as f64, 5e8));
    assert_eq!(row(&warming_up, MemoryMeasure::Heap).outcome, Outcome::Leak);
    let cut = row(&MemoryRecord { partial: true, asked_runs: 100, ..warming_up }, MemoryMeasure::Heap);
    assert_eq!(cut.outcome, Outcome::Partial);
    assert!(cut.note.is_some_and(|note| note.contains("after 48 of 100 runs")));
}

#[test]
fn a_rise_has_to_be_likely_and_large_and_a_leak_in_both_halves_of_all_runs() {
    let series: Vec<u64> = (0..100).map(|at| 500_000_000 + 40_960 * at).collect();
    let rising = resident_trend(&series).expect("enough runs");
    assert!(rising.rises());
    assert!(!ResidentTrend { p_rising: 0.02, ..rising }.rises());
    assert!(!ResidentTrend { floor_bytes: 2.0 * rising.floor_bytes * rising.slope, ..rising }.rises());
    // A single step in the middle is a trend by every other measure.
    let stepped = |places: &'static [usize]| {
        record(100, move |at| (1e9, 5e8 + 64.0 * MIB * places.iter().filter(|place| at >= **place).count() as f64))
    };
    let step = row(&stepped(&[50]), MemoryMeasure::Resident);
    assert_eq!((step.outcome, step.evidence.kept_bytes), (Outcome::Plateau, Some(64 << 20)), "{step:?}");
    let two = row(&stepped(&[50, 150]), MemoryMeasure::Resident);
    assert_eq!(two.outcome, Outcome::Inconclusive, "{two:?}");
    assert!(two.note.is_some_and(|note| note.ends_with("400 runs may decide it")));
    let pool = row(&stepped(&[30, 60, 90, 120, 150, 180]), MemoryMeasure::Resident);
    assert_eq!(pool.outcome, Outcome::Leak, "{pool:?}");
}

/// The runs that confirm were taken because of the resident set.
#[test]
fn every_run_that_was_taken_is_looked_at() {
    let late = record(100, |at| (1e9 + 64.0 * at.saturating_sub(105) as f64, 5e8 + 65536.0 * at as f64));
    assert_eq!(late.runs.len(), 200);
    assert_eq!(row(&late, MemoryMeasure::Heap).outcome, Outcome::Leak);
    let flat = record(100, |at| (1e9, 5e8 + 65536.0 * at as f64));
    assert_eq!(row(&flat, MemoryMeasure::Heap).outcome, Outcome::Pass);
}

#[test]
fn what_is_not_seen_is_said() {
    let mut blind = record(100, |_| (1e9, 5e8));
    blind.runs.live_bytes.clear();
    assert_eq!(row(&blind, MemoryMeasure::Heap).outcome, Outcome::Advisory);
    assert_eq!(row(&blind, MemoryMeasure::Resident).outcome, Outcome::Pass);
    blind.runs.rss_bytes.clear();
    assert_eq!(row(&blind, MemoryMeasure::Resident).outcome, Outcome::Inconclusive, "nobody saw anything");
    let few = record(MIN_RUNS - 1, |_| (1e9, 5e8));
    assert_eq!(row(&few, MemoryMeasure::Heap).outcome, Outcome::Inconclusive);
    assert!(row(&few, MemoryMeasure::Resident).note.is_some_and(|note| note.contains("at least 20")));
}

#[test]
fn the_formula_is_the_published_one() {
    // F / n + 1.645 * 1.4826 MAD * sqrt(12 / n^3) * sqrt((1 + r) / (1 - r)), by hand for n = 100, MAD = 1 MiB, r = 0.5.
    let by_hand = 3.0 * MIB / 100.0 + 1.645 * 1.4826 * MIB * (12.0f64 / 1e6).sqrt() * 3.0f64.sqrt();
    let noisy = ResidentTrend {
        runs: 100,
        slope: 0.0,
        p_rising: 1.0,
        floor_bytes: 3.0 * MIB,
        both_halves_rise: false,
        mad_bytes: MIB,
        autocorrelation: 0.5,
    };
    assert!((noisy.smallest_leak_bytes(100) - by_hand).abs() < 1e-6);
    let quiet = resident_trend(&[500_000_000; 100]).expect("enough runs");
    assert!((quiet.smallest_leak_bytes(100) - MIB / 100.0).abs() < 1e-9, "without noise the floor is left");
}

proptest! {
    #[test]
    fn a_heap_bounded_by_its_period_never_rises(
        period in 1usize..=20, heights in prop::collection::vec(0u64..1_000_000, 20), phase in 0usize..20
    ) {
        let live: Vec<u64> = (0..100).map(|at| 1_000_000 + heights[(at + phase) % period]).collect();
        prop_assert_eq!(heap_rises(&live), Some(false));
    }

    #[test]
    fn any_leak_on_top_of_a_bounded_heap_is_found(
        period in 1usize..=20, heights in prop::collection::vec(0u64..1_000_000, 20), leak in 1u64..100_000
    ) {
        // A multiple of the period, so that each quarter holds the same low point.
        let runs = 4 * period * 5;
        let live: Vec<u64> = (0..2 * runs).map(|at| 1_000_000 + heights[at % period] + leak * at as u64).collect();
        prop_assert_eq!(heap_rises(&live[..runs]), Some(true));
        let trend = heap_trend(&live, runs).expect("enough runs");
        prop_assert_eq!(trend.growth, HeapGrowth::Leak);
        prop_assert!((trend.per_run - leak as f64).abs() < 0.4 * leak as f64, "{trend:?} for {leak}");
    }
}
