//! How many iterations of a criterion bench make a sample, of benches whose times are made up.

use std::convert::Infallible;

use cargo_infergate::paired::iterations::{Trial, cap_iterations, grow_iterations, trial_when_warm};

const MS: f64 = 1e6;

/// A bench that does `once_ns` for each sample, sets up for `set_up_ns` and is timed for `timed_ns` in each iteration. The looks
/// whose numbers are in `interrupted` wait for 200 ms more.
struct Bench {
    once_ns: f64,
    set_up_ns: f64,
    timed_ns: f64,
    interrupted: Vec<usize>,
}

impl Bench {
    fn new(once_ns: f64, set_up_ns: f64, timed_ns: f64) -> Self {
        Self { once_ns, set_up_ns, timed_ns, interrupted: Vec::new() }
    }

    fn iterations(&self) -> usize {
        let mut looks = 0;
        let mut trial = |iterations: usize| -> Result<Trial, Infallible> {
            looks += 1;
            let late_ns = if self.interrupted.contains(&looks) { 200.0 * MS } else { 0.0 };
            let each_ns = self.set_up_ns + self.timed_ns;
            let waited_ns = (self.once_ns + late_ns) / iterations as f64 + each_ns;
            Ok(Trial { timed_ns: self.timed_ns, waited_ns })
        };
        let first = trial(1).unwrap_or_else(|never| match never {});
        // 2 ms of what is timed.
        let fitting = |timed_ns: f64| ((2.0 * MS / timed_ns) as usize).clamp(1, 1_000_000);
        grow_iterations(first, fitting, trial).unwrap_or_else(|never| match never {})
    }
}

#[test]
fn a_bench_without_set_up_takes_what_fits_by_the_clock() {
    assert_eq!(Bench::new(0.1 * MS, 0.0, 50.0).iterations(), 40_000);
    assert_eq!(Bench::new(0.1 * MS, 0.0, 1.0).iterations(), 1_000_000);
    assert_eq!(Bench::new(0.1 * MS, 0.0, 20.0 * MS).iterations(), 1);
}

/// 100 us each: 150 of them are 15 ms.
#[test]
fn set_up_bounds_the_iterations() {
    let iterations = Bench::new(0.1 * MS, 0.1 * MS, 5.0).iterations();
    assert!((120..=150).contains(&iterations), "{iterations}");
    assert_eq!(Bench::new(0.1 * MS, 1000.0 * MS, 5.0).iterations(), 1);
}

#[test]
fn what_is_done_once_for_a_sample_does_not_bound_them() {
    assert_eq!(Bench::new(500.0 * MS, 0.0, 50.0).iterations(), 40_000);
}

#[test]
fn an_interruption_does_not_end_the_growth() {
    for interrupted in 1..=8 {
        let bench = Bench { interrupted: vec![interrupted, interrupted + 1], ..Bench::new(0.1 * MS, 0.0, 50.0) };
        assert_eq!(bench.iterations(), 40_000, "look {interrupted}");
    }
}

/// Looked at once more where the second iteration seems to take as long: one may have been interrupted.
#[test]
fn a_bench_is_warmed_up_where_its_second_iteration_is_clearly_shorter() {
    let second = |first_ns: f64, looks_ns: &[f64]| {
        let mut looks = looks_ns.iter();
        let trial = |timed_ns: f64| Trial { timed_ns, waited_ns: timed_ns };
        let next = || Ok::<_, Infallible>(trial(*looks.next().expect("no further look")));
        trial_when_warm(trial(first_ns), next).unwrap_or_else(|never| match never {}).map(|warm| warm.timed_ns)
    };
    assert_eq!(second(MS, &[0.001 * MS]), Some(0.001 * MS));
    assert_eq!(second(MS, &[3.0 * MS, 0.7 * MS]), Some(0.7 * MS));
    assert_eq!(second(MS, &[0.9 * MS, 0.85 * MS]), None);
    assert_eq!(second(400.0 * MS, &[390.0 * MS]), None, "a long one is looked at once");
    assert_eq!(second(400.0 * MS, &[300.0 * MS, 390.0 * MS]), None, "and twice if it looks warm");
    assert_eq!(second(400.0 * MS, &[0.002 * MS, 0.001 * MS]), Some(0.001 * MS));
    assert_eq!(second(4000.0 * MS, &[]), None, "one of seconds costs too much");
}

/// How many iterations another side bears, which takes `each_ns` for one: the looks in `late_ns` take so much longer. And how many it was
/// asked for at once at the most.
fn borne(iterations: usize, each_ns: f64, late_ns: &[f64]) -> (usize, usize) {
    let (mut looks, mut most) = (0, 0);
    let borne = cap_iterations(iterations, |some| -> Result<f64, Infallible> {
        looks += 1;
        most = most.max(some);
        Ok(each_ns + late_ns.get(looks - 1).unwrap_or(&0.0) / some as f64)
    });
    (borne.unwrap_or_else(|never| match never {}), most)
}

#[test]
fn a_side_that_is_a_thousand_times_slower_does_fewer_iterations() {
    // 2 ms of the other one's, and 2 s or more of its own.
    assert_eq!(borne(1_000_000, 3000.0, &[]).0, 100_000);
    assert_eq!(borne(1_000_000, 100.0 * MS, &[]), (3, 1));
    assert_eq!(borne(1_000_000, 1000.0 * MS, &[]), (1, 1));
    assert_eq!(borne(1, 1000.0 * MS, &[]), (1, 0));
}

#[test]
fn sides_alike_do_as_many_whatever_the_first_looks_say() {
    for late_ns in [&[][..], &[200.0 * MS], &[1.0 * MS, 1.0 * MS]] {
        assert_eq!(borne(1_000_000, 2.0, late_ns).0, 1_000_000);
        assert_eq!(borne(4000, 500.0, late_ns).0, 4000);
    }
}
