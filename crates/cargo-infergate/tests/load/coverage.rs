//! Intervals of load percentiles cover the truth, where there are any: queues whose truth is known.
//!
//! `cargo test -p cargo-infergate --test load coverage -- --nocapture` prints them, queue by queue (docs/LOAD.md).

use cargo_infergate::load::slo::{Limit, goodput};
use cargo_infergate::load::summary::{LevelSummary, e2e_ns, summarise, ttft_ns};
use infergate::stats::quantile;

use crate::queue::{Load, Queue, Server};

const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];
/// Runs of each queue.
const RUNS: usize = 40;
/// Requests behind a truth.
const LONG: usize = 100_000;

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

    fn sum(self, other: Self) -> Self {
        Self { asked: self.asked + other.asked, given: self.given + other.given, right: self.right + other.right }
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

/// Of TTFT, E2E, and goodput.
fn counted(server: Server, load: Load, requests: usize) -> [[Count; 4]; 3] {
    let mut queue = Queue::warm(server, load, 22);
    let long: Vec<_> = queue.by_ref().take(LONG).collect();
    let mut times: [Vec<f64>; 2] =
        [long.iter().filter_map(ttft_ns).collect(), long.iter().filter_map(e2e_ns).collect()];
    times.iter_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
    let truth = [0, 1].map(|metric| PERCENTILES.map(|p| quantile(&times[metric], p).expect("a truth")));
    let limit: Limit = format!("e2e={}ns", truth[1][1].round()).parse().expect("a limit");
    let mut counts = [[Count::default(); 4]; 3];
    for _ in 0..RUNS {
        let level = queue.level(requests);
        let summary = summarise(&level);
        let queue_of = summary.queue();
        for (metric, of) in
            [|s: &LevelSummary| s.ttft_ns.clone(), |s: &LevelSummary| s.e2e_ns.clone()].iter().enumerate()
        {
            let values = of(&summary);
            for (place, p) in PERCENTILES.iter().enumerate() {
                counts[metric][place].add(values.within(*p, queue_of), truth[metric][place]);
            }
        }
        let found = goodput(&level, &summary, &[limit]).expect("a goodput");
        let per_s = found.requests_per_s * found.all as f64 / found.good.max(1) as f64;
        counts[2][0].add(found.within, 0.9 * per_s);
    }
    counts
}

#[test]
fn coverage_of_intervals_where_requests_wait_for_each_other() {
    println!("intervals given, % : of these right, %");
    println!(
        "{:38} TTFT P50     P90        P95        P99       |  E2E P50    P90        P95        P99       | goodput",
        ""
    );
    let mut all = [Count::default(); 2];
    for requests in [200, 1_000, 3_000] {
        for slots in [4, 16] {
            for load in
                [0.5, 0.7, 0.8, 0.9].map(Load::Open).into_iter().chain([1, 2].map(|n| Load::Closed(n * slots as u32)))
            {
                if requests > 1_000 && matches!(load, Load::Closed(_)) {
                    continue;
                }
                for fixed in [0.0, 0.8] {
                    let counts = counted(Server { slots, fixed }, load, requests);
                    let cells = |some: &[Count]| some.iter().map(|count| count.text()).collect::<String>();
                    let name = format!("{slots:2} slots {fixed} fixed {requests:4} {load:?}");
                    println!("{name:38} {}| {}| {}", cells(&counts[0]), cells(&counts[1]), cells(&counts[2][..1]));
                    let kind = usize::from(matches!(load, Load::Closed(_)));
                    all[kind] = counts.iter().flatten().fold(all[kind], |sum, count| sum.sum(*count));
                }
            }
        }
    }
    for (kind, all) in ["open", "closed"].iter().zip(all) {
        println!("{kind}: {} intervals, {:.1} % right", all.given, share(all.right, all.given));
        assert!(all.given > 500 && share(all.right, all.given) >= 90.0, "{kind}: {all:?}");
    }
}
