//! The heap's rule on simulated phases: caches are plateaus, leaks are leaks, and what is said of rare leaks holds.
//!
//! `cargo test -p infergate-core --test rules leak_rule -- --nocapture` prints each kind of the table in docs/evidence/leaks.md.

use fastrand::Rng;
use infergate_core::memory::leak::{HeapGrowth, MIN_RUNS, heap_rises, heap_trend};

const RUNS: usize = 100;
const PHASES: u64 = 400;
const AT_REST: u64 = 1_000_000_000;

/// What is live after each run of a phase, above what is live at rest.
type Phase = fn(&mut Rng, usize) -> Vec<f64>;

/// Called a leak, a plateau, open; the rest pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Called {
    leak: f64,
    plateau: f64,
    open: f64,
}

fn called(runs: usize, phases: u64, mut phase: impl FnMut(&mut Rng) -> Vec<f64>) -> Called {
    let mut called = Called::default();
    for seed in 0..phases {
        let mut random = Rng::with_seed(seed);
        let live: Vec<u64> = phase(&mut random).into_iter().map(|bytes| AT_REST + bytes as u64).collect();
        if heap_rises(&live[..runs]) == Some(true) {
            match heap_trend(&live, runs).expect("enough runs").growth {
                HeapGrowth::Leak => called.leak += 1.0 / phases as f64,
                HeapGrowth::Plateau => called.plateau += 1.0 / phases as f64,
                HeapGrowth::Open => called.open += 1.0 / phases as f64,
                HeapGrowth::CameBack => {}
            }
        }
    }
    called
}

fn each_run(runs: usize, mut live: impl FnMut(f64) -> f64) -> Vec<f64> {
    (0..2 * runs).map(|at| live(at as f64)).collect()
}

/// The sum of what each run adds.
fn added(runs: usize, mut add: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut live = 0.0;
    (0..2 * runs)
        .map(|at| {
            live += add(at);
            live
        })
        .collect()
}

fn saturating(random: &mut Rng, runs: usize, time_constant: f64) -> Vec<f64> {
    let late = 5.0 * random.f64();
    each_run(runs, |at| 3e6 * (1.0 - (-(at + late) / time_constant).exp()))
}

/// A cache of 64 bytes an entry, of which `a_run` are asked for at random.
fn asked_at_random(random: &mut Rng, runs: usize, entries: usize, a_run: usize) -> Vec<f64> {
    let mut known = vec![false; entries];
    added(runs, |_| {
        (0..a_run).filter(|_| !std::mem::replace(&mut known[random.usize(..entries)], true)).count() as f64 * 64.0
    })
}

/// Entries of 64 bytes, each known by 16 bytes of a hash table that doubles when it is full by seven eighths.
fn in_a_table(entries: Vec<f64>) -> Vec<f64> {
    let table = |bytes: f64| 17.0 * (bytes / 64.0 * 8.0 / 7.0).max(4.0).log2().ceil().exp2();
    entries.into_iter().map(|bytes| bytes + table(bytes)).collect()
}

fn full_at(runs: usize, full: f64) -> Vec<f64> {
    each_run(runs, |at| 3000.0 * at.min(full))
}

fn flushed(random: &mut Rng, runs: usize, each: usize) -> Vec<f64> {
    let offset = random.usize(..each);
    each_run(runs, |at| 1e4 * ((at as usize + offset) % each) as f64)
}

fn at_random(random: &mut Rng, runs: usize, interval: usize) -> Vec<f64> {
    added(runs, |_| if random.usize(..interval) == 0 { 100.0 } else { 0.0 })
}

fn plus(left: Vec<f64>, right: Vec<f64>) -> Vec<f64> {
    left.into_iter().zip(right).map(|(left, right)| left + right).collect()
}

fn bytes(runs: usize, each: f64) -> Vec<f64> {
    each_run(runs, |at| at * each)
}

const CACHES: &[(&str, Phase)] = &[
    ("saturates, time constant 20 runs", |random, runs| saturating(random, runs, 20.0)),
    ("46 runs", |random, runs| saturating(random, runs, 46.0)),
    ("100 runs", |random, runs| saturating(random, runs, 100.0)),
    ("140 runs", |random, runs| saturating(random, runs, 140.0)),
    ("5,000 entries, 50 a run at random", |random, runs| asked_at_random(random, runs, 5000, 50)),
    ("1,000 entries, 50 a run", |random, runs| asked_at_random(random, runs, 1000, 50)),
    ("500 entries, 5 a run", |random, runs| asked_at_random(random, runs, 500, 5)),
    ("100 entries, 1 a run", |random, runs| asked_at_random(random, runs, 100, 1)),
    ("full at run 76", |_, runs| full_at(runs, 76.0)),
    ("full at run 130", |_, runs| full_at(runs, 130.0)),
    ("a table of 5,000 entries that doubles", |random, runs| {
        let entries = asked_at_random(random, runs, 5000, 50);
        entries.into_iter().map(|bytes| (bytes.max(1.0)).log2().ceil().exp2()).collect()
    }),
    ("5,000 entries, 50 a run, in a table that doubles", |random, runs| {
        in_a_table(asked_at_random(random, runs, 5000, 50))
    }),
    ("at most 4,000 entries, about 50 more a run", |random, runs| {
        let entries = added(runs, |_| random.usize(25..=75) as f64);
        entries.into_iter().map(|entries| 64.0 * entries.min(4000.0)).collect()
    }),
    ("flushed each 20 runs", |random, runs| flushed(random, runs, 20)),
    ("flushed each 60 runs", |random, runs| flushed(random, runs, 60)),
    ("flushed each 90 runs", |random, runs| flushed(random, runs, 90)),
    ("flushed each 150 runs", |random, runs| flushed(random, runs, 150)),
    ("begins to fill at run 80, time constant 30 runs", |_, runs| {
        each_run(runs, |at| 3e6 * (1.0 - (-(at - 80.0).max(0.0) / 30.0).exp()))
    }),
    ("noise alone", |random, runs| each_run(runs, |_| 1e5 * random.f64())),
];

/// What two hundred runs cannot tell from a leak that slows down.
const OPEN: &[(&str, Phase)] = &[
    ("saturates, time constant 200 runs", |random, runs| saturating(random, runs, 200.0)),
    ("400 runs", |random, runs| saturating(random, runs, 400.0)),
    ("15,000 entries, 50 a run at random", |random, runs| asked_at_random(random, runs, 15_000, 50)),
    ("grows with the root of the runs", |_, runs| each_run(runs, |at| 1e5 * (at + 1.0).sqrt())),
    ("grows with their logarithm", |_, runs| each_run(runs, |at| 1e6 * (at + 6.0).ln())),
    ("5,000 entries, 50 a run, and 4 KiB a run", |random, runs| {
        plus(asked_at_random(random, runs, 5000, 50), bytes(runs, 4096.0))
    }),
];

const LEAKS: &[(&str, Phase)] = &[
    ("1 byte a run", |_, runs| bytes(runs, 1.0)),
    ("1 byte a run under a buffer that moves", |_, runs| {
        let noise = [0.0, 4096.0, 512.0, 9.0, 70_000.0, 33.0, 0.0];
        each_run(runs, |at| at + noise[at as usize % 7])
    }),
    ("128 j bytes at run j", |_, runs| added(runs, |at| 128.0 * at as f64)),
    ("each 10th run", |random, runs| {
        let offset = random.usize(..10);
        each_run(runs, |at| 100.0 * ((at as usize + offset) / 10) as f64)
    }),
    ("each 35th run", |random, runs| {
        let offset = random.usize(..35);
        each_run(runs, |at| 100.0 * ((at as usize + offset) / 35) as f64)
    }),
    ("a random half of the runs", |random, runs| at_random(random, runs, 2)),
    ("a random fifth", |random, runs| at_random(random, runs, 5)),
    ("of random sizes, exponential", |random, runs| added(runs, |_| -1000.0 * (1.0 - random.f64()).ln())),
    ("one entry a run in a table that doubles", |_, runs| in_a_table(bytes(runs, 64.0))),
    ("1 byte a run, and a cache full at run 76", |_, runs| plus(full_at(runs, 76.0), bytes(runs, 1.0))),
    ("each 10th run, and a cache full at run 76", |_, runs| {
        plus(full_at(runs, 76.0), each_run(runs, |at| (at / 10.0).floor()))
    }),
    ("1 KiB a run, and a cache that saturates, 15 runs", |random, runs| {
        plus(saturating(random, runs, 15.0), bytes(runs, 1024.0))
    }),
    // Leaks that begin late: a cache of a fixed size fills first, and what it evicts is kept.
    ("4 KiB a run from run 51", |_, runs| each_run(runs, |at| 4096.0 * (at - 51.0).max(0.0))),
    ("from run 80, under a buffer that moves", |random, runs| {
        each_run(runs, |at| 4096.0 * (at - 80.0).max(0.0) + 2e4 * random.f64())
    }),
    ("from run 90", |_, runs| each_run(runs, |at| 4096.0 * (at - 90.0).max(0.0))),
    ("1 KiB in each 3rd run from run 75", |_, runs| each_run(runs, |at| 1024.0 * ((at - 75.0).max(0.0) / 3.0).floor())),
];

const RARE: &[(&str, Phase)] = &[
    ("a random 10th of the runs", |random, runs| at_random(random, runs, 10)),
    ("a random 20th", |random, runs| at_random(random, runs, 20)),
    ("a random 25th", |random, runs| at_random(random, runs, 25)),
    ("a random 50th", |random, runs| at_random(random, runs, 50)),
    ("a random 5th, and a cache full at run 40", |random, runs| plus(full_at(runs, 40.0), at_random(random, runs, 5))),
];

/// Draws and prints a part of the table.
fn table(kinds: &[(&str, Phase)]) -> Vec<(String, Called)> {
    let draw = |(name, phase): &(&str, Phase)| {
        let found = called(RUNS, PHASES, |random| phase(random, RUNS));
        let percent = [found.leak, found.plateau, found.open, 1.0 - found.leak - found.plateau - found.open]
            .map(|share| format!("{:.1}", 100.0 * share.abs()));
        println!("| {name} | {} |", percent.join(" | "));
        ((*name).to_owned(), found)
    };
    kinds.iter().map(draw).collect()
}

#[test]
fn caches_are_no_leaks() {
    for (name, found) in table(CACHES) {
        assert!(found.leak <= 0.01 && found.open <= 0.06, "{name}: {found:?}");
    }
}

#[test]
fn what_slows_down_without_an_end_is_left_open() {
    for (name, found) in table(OPEN) {
        assert!(found.open >= 0.98, "{name}: {found:?}");
    }
}

#[test]
fn leaks_are_found_also_behind_a_cache_and_where_they_begin_late() {
    for (name, found) in table(LEAKS) {
        assert!(found.leak >= 0.98, "{name}: {found:?}");
    }
}

#[test]
fn steps_as_large_and_as_often_as_before_are_left_open() {
    let of = |at: &[usize], sizes: &[f64]| {
        let step = |run: usize| at.iter().position(|step| *step == run).map_or(0.0, |step| sizes[step]);
        called(RUNS, 1, |_| added(RUNS, step))
    };
    let open = Called { open: 1.0, ..Called::default() };
    assert_eq!(of(&[20, 70, 120, 170], &[1e8; 4]), open);
    let plateau = Called { plateau: 1.0, ..Called::default() };
    assert_eq!(of(&[10, 30, 70, 150], &[1e6, 2e6, 4e6, 8e6]), plateau, "a table that doubles");
    assert_eq!(of(&[20, 70], &[1e8; 2]), plateau, "no more than two");
}

#[test]
fn rare_leaks_are_found_as_often_as_is_said() {
    table(RARE);
    for runs in [MIN_RUNS, 40, 100, 200] {
        for (part, chance) in [(10, 0.94), (5, 0.6)] {
            let interval = runs / part;
            let found = called(runs, 2000, |random| at_random(random, runs, interval)).leak;
            println!("of {runs} runs a random {interval}th: stated {chance}, found {found:.3}");
            assert!(found > chance - 0.02, "{runs} runs, each {interval}th: {found}");
            assert!(runs < 100 || found < chance + 0.04, "{runs} runs, each {interval}th: {found}");
        }
    }
}

#[test]
fn a_leak_in_each_kth_run_is_certain_up_to_the_stated_interval() {
    for runs in MIN_RUNS..=160 {
        // Seven quarters hold five of them, each in another one.
        let stated = 7 * (runs / 4) / 5;
        let is_leak = |k: usize, start: usize| {
            let live: Vec<u64> = (0..2 * runs).map(|at| AT_REST + ((at + k - start) / k) as u64).collect();
            heap_rises(&live[..runs]) == Some(true)
                && heap_trend(&live, runs).is_some_and(|heap| heap.growth == HeapGrowth::Leak)
        };
        for k in 1..=stated {
            assert!((0..k).all(|start| is_leak(k, start)), "each {k}th of {runs} runs");
        }
        let beyond = stated + stated / 4 + 1;
        assert!(!(0..beyond).all(|start| is_leak(beyond, start)), "each {beyond}th of {runs} runs");
    }
}

#[test]
fn a_trend_says_how_much_was_kept_and_how_fast_it_grows() {
    let of =
        |live: Vec<f64>| heap_trend(&live.iter().map(|bytes| *bytes as u64).collect::<Vec<_>>(), RUNS).expect("runs");
    let leak = of(bytes(RUNS, 3.0));
    assert_eq!(
        (leak.growth, leak.per_run, leak.last_per_run, leak.runs_between_rises),
        (HeapGrowth::Leak, 3.0, 3.0, 1.0)
    );
    let full = of(full_at(RUNS, 76.0));
    assert_eq!((full.growth, full.kept, full.last_per_run), (HeapGrowth::Plateau, 76 * 3000, 0.0));
    let steps = of(added(RUNS, |at| if [20, 70].contains(&at) { 1e6 } else { 0.0 }));
    assert_eq!((steps.rises, steps.last_rise_run), (2, 71), "the 71st run came after 70 others");
    // Flushed in the last quarter: all of it was given back.
    let gone = of(each_run(RUNS, |at| if at < 180.0 { at } else { 0.0 }));
    assert_eq!((gone.growth, gone.kept), (HeapGrowth::CameBack, 0));
    assert!(heap_trend(&[0; 2 * RUNS - 1], RUNS).is_none());
}
