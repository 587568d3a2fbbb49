//! Intervals of load percentiles hold the truth in 90 to 99 of 100 runs, where there are any, in each queue by itself: queues whose
//! truth is known.
//!
//! `cargo test -p cargo-infergate --test simulations coverage -- --nocapture` prints them, queue by queue (docs/evidence/load-client.md).

use infergate_core::metric::Metric;
use infergate_core::stats::clopper_pearson;
use infergate_core::stats::quantile;
use infergate_load::summary::slo::goodput;
use infergate_load::summary::summarise;
use infergate_receipts::Limit;

use crate::queue::{Load, Queue, Server};

const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
/// After so many runs a queue of which no interval was given is left.
const FIRST_RUNS: usize = 10;
/// Requests behind a truth, and for each of a run.
const LONG: usize = 100_000;
const LONG_OF_A_RUN: usize = 40;

/// Intervals that were asked for, given, and right.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    asked: usize,
    given: usize,
    right: usize,
}

impl Count {
    fn add(&mut self, within: Option<(f64, f64)>, truth: f64) {
        self.asked += 1;
        self.given += usize::from(within.is_some());
        self.right += usize::from(within.is_some_and(|(low, high)| low <= truth && truth <= high));
    }

    /// Whether the share of right ones can be from 90 to 99 %: as many runs as these show another one by chance in one of a thousand.
    fn is_right(self) -> bool {
        let within = clopper_pearson(self.right as u64, self.given as u64, 0.999);
        within.is_none_or(|(low, high)| high >= 0.90 && low <= 0.99)
    }

    fn text(self) -> String {
        match self.given {
            0 => "     \u{2014}     ".into(),
            given => format!("{:3.0}:{:5.1}  ", share(given, self.asked), share(self.right, given)),
        }
    }
}

fn share(some: usize, all: usize) -> f64 {
    100.0 * some as f64 / all as f64
}

/// Runs of a queue, fewer of long ones.
fn runs(requests: usize) -> usize {
    match requests {
        ..=200 => 400,
        201..=1_000 => 200,
        _ => 80,
    }
}

/// Of TTFT, E2E, and goodput.
fn counted(server: Server, load: Load, requests: usize) -> [[Count; 4]; 3] {
    let mut queue = Queue::warm(server, load, 22);
    let long: Vec<_> = queue.by_ref().take(LONG.max(LONG_OF_A_RUN * requests)).collect();
    let mut times: [Vec<f64>; 2] =
        [Metric::Ttft, Metric::E2e].map(|metric| long.iter().filter_map(|record| metric.value(record)).collect());
    times.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
    let truth = [0, 1].map(|metric| PERCENTILES.map(|p| quantile(&times[metric], p).expect("a truth")));
    let limit: Limit = format!("e2e={}ns", truth[1][1].round()).parse().expect("a limit");
    let mut counts = [[Count::default(); 4]; 3];
    for run in 0..runs(requests) {
        if run == FIRST_RUNS && counts.iter().flatten().all(|count| count.given == 0) {
            break;
        }
        let level = queue.level(requests);
        let summary = summarise(&level);
        let queue_of = summary.queue();
        for (at, metric) in [Metric::Ttft, Metric::E2e].into_iter().enumerate() {
            for (place, p) in PERCENTILES.iter().enumerate() {
                counts[at][place].add(summary.values(metric).within(*p, queue_of), truth[at][place]);
            }
        }
        let found = goodput(&level, &summary, &[limit]).expect("a goodput");
        let per_s = found.requests_per_s * found.all as f64 / found.good.max(1) as f64;
        counts[2][0].add(found.within, 0.9 * per_s);
    }
    counts
}

/// Prints and checks the queues of these loads and so many requests; how many kinds of interval were given.
fn check(loads: impl Fn(usize) -> Vec<Load>, requests: usize) -> usize {
    println!("intervals given, % : of these right, %");
    println!(
        "{:38} TTFT P50     P90        P95        P99       |  E2E P50    P90        P95        P99       | goodput",
        ""
    );
    let (mut given, mut wrong) = (0, Vec::new());
    for slots in [4, 16] {
        for load in loads(slots) {
            for fixed in [0.0, 0.8] {
                let counts = counted(Server { slots, fixed }, load, requests);
                let cells = |some: &[Count]| some.iter().map(|count| count.text()).collect::<String>();
                let name = format!("{slots:2} slots {fixed} fixed {requests:4} {load:?}");
                println!("{name:38} {}| {}| {}", cells(&counts[0]), cells(&counts[1]), cells(&counts[2][..1]));
                given += counts.iter().flatten().filter(|count| count.given > 0).count();
                let cells = counts.iter().flatten().filter(|count| !count.is_right());
                wrong.extend(cells.map(|count| format!("{name}: {count:?}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    given
}

fn open(_: usize) -> Vec<Load> {
    [0.5, 0.8, 0.9].map(Load::Open).into()
}

/// A user for each slot waits for nobody, however many slots there are.
fn closed(slots: usize) -> Vec<Load> {
    let slots = slots as u32;
    if slots == 4 { vec![Load::Closed(slots), Load::Closed(2 * slots)] } else { vec![Load::Closed(2 * slots)] }
}

#[test]
fn coverage_of_closed_loops_of_200_requests() {
    assert!(check(closed, 200) > 20);
}

#[test]
fn open_loops_below_3000_requests_have_no_interval() {
    assert_eq!(check(|_| vec![Load::Open(0.5)], 2_999), 0);
}

/// Of both times P50.
#[test]
fn coverage_of_open_loops_of_3000_requests() {
    assert_eq!(check(open, 3_000), 24);
}

/// Of both times P50 and P90, and goodput.
#[test]
fn coverage_of_open_loops_of_15000_requests() {
    assert_eq!(check(open, 15_000), 60);
}
