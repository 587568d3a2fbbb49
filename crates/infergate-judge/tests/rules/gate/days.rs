//! Sessions of one day count as one: what that is worth, by simulation with fixed seeds.

use infergate_core::stats::normal;
use infergate_judge::{Policy, judge, newest_of_each_day, stored_limit};
use infergate_receipts::{Outcome, Reason, Receipt};

use crate::gate::support::{baseline, decode_baseline, note, row, run, time};

const SUITE: [&str; 5] = ["prefill/p128", "prefill/p512", "decode/p128", "decode/p512", "decode/p768"];

/// Unchanged programs on a machine whose days and hours differ.
struct World {
    /// Standard deviations of what a whole day, an hour, and a session of one case share, natural log.
    day_std: f64,
    hour_std: f64,
    own_std: f64,
    /// Days with sessions, and sessions of each.
    days: usize,
    sessions: usize,
    /// Those of a day are of one hour.
    one_hour: bool,
}

const QUIET: World = World { day_std: 0.0, hour_std: 0.0, own_std: 0.02, days: 8, sessions: 1, one_hour: false };

/// One history: the log times of each case, by day and session, and of head, measured on another day.
struct History {
    days: Vec<Vec<[f64; 5]>>,
    head: [f64; 5],
}

impl World {
    fn history(&self, seed: u64) -> History {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut draw = |std: f64| std * normal(&mut random);
        let mut day = |sessions: usize| -> Vec<[f64; 5]> {
            let (day, mut hour) = (draw(self.day_std), draw(self.hour_std));
            let mut session = || {
                if !self.one_hour {
                    hour = draw(self.hour_std);
                }
                std::array::from_fn(|_| day + hour + draw(self.own_std))
            };
            (0..sessions).map(|_| session()).collect()
        };
        let days = (0..self.days).map(|_| day(self.sessions)).collect();
        History { days, head: day(1)[0] }
    }

    /// The fraction of `suites` in which any case regresses.
    fn regressed(&self, suites: u64, rule: fn(&History) -> bool) -> f64 {
        let regressed = (0..suites).filter(|seed| rule(&self.history(*seed))).count();
        regressed as f64 / suites as f64
    }
}

fn ns(log: f64) -> u64 {
    (1e7 * log.exp()) as u64
}

fn receipt(logs: &[f64; 5]) -> Receipt {
    let times = logs.map(|log| [ns(log)]);
    run(&std::array::from_fn::<_, 5, _>(|case| (SUITE[case], &times[case][..])))
}

/// The gate itself, on a baseline of these days.
fn gate(history: &History) -> bool {
    let sessions: Vec<Receipt> = history.days.iter().flatten().map(receipt).collect();
    let mut base = baseline(&sessions);
    let of_day = history.days[0].len();
    for (at, session) in base.sessions.iter_mut().enumerate() {
        session.created = format!("2026-01-{:02}T{:02}:00:00Z", at / of_day + 1, at % of_day + 7);
    }
    let verdict = judge(&receipt(&history.head), Some(&base), &Policy::default()).expect("a verdict");
    verdict.rows.iter().any(|row| row.outcome == Outcome::Regressed)
}

/// The same limit, from other units.
fn regressed_by(history: &History, units: impl Fn(usize) -> Vec<f64>) -> bool {
    (0..SUITE.len()).any(|case| {
        let units: Vec<f64> = units(case).into_iter().map(f64::exp).collect();
        let limit = stored_limit(&[units], SUITE.len()).expect("a limit");
        history.head[case] - limit.centre > limit.limit
    })
}

/// A rule that is wrong: every session counts.
fn by_sessions(history: &History) -> bool {
    regressed_by(history, |case| history.days.iter().flatten().map(|session| session[case]).collect())
}

#[test]
fn eight_sessions_of_one_hour_failed_unchanged_suites_and_fail_none_now() {
    for (hour_std, least) in [(0.05, 0.08), (0.10, 0.25)] {
        let world = World { hour_std, days: 1, sessions: 8, one_hour: true, ..QUIET };
        let (before, after) = (world.regressed(4000, by_sessions), world.regressed(300, gate));
        println!("8 of one hour, hours of {hour_std}: each counts {before}, days count {after}");
        assert!(before > least && after == 0.0, "{before} {after}");
    }
}

#[test]
fn sessions_of_eight_days_keep_to_the_level_however_many_a_day_has() {
    let mut worst_each = 0.0_f64;
    for (day_std, hour_std, sessions) in [(0.05, 0.05, 1), (0.05, 0.05, 4), (0.0, 0.10, 4), (0.10, 0.0, 4)] {
        let world = World { day_std, hour_std, sessions, ..QUIET };
        let (newest, each) = (world.regressed(1000, gate), world.regressed(1000, by_sessions));
        println!("days of {day_std}, hours of {hour_std}, {sessions} a day: newest {newest}, each {each}");
        assert!(newest <= 0.012, "{newest}");
        worst_each = worst_each.max(each);
    }
    assert!(worst_each > 0.015, "the simulation would not show a rule that is wrong: {worst_each}");
}

#[test]
fn sessions_of_too_few_days_are_advisory_and_say_how_many_days_are_missing() {
    let mut base = decode_baseline(&[1000; 8]);
    for (at, session) in base.sessions.iter_mut().enumerate() {
        session.created = format!("2026-11-2{}T0{at}:00:00Z", 1 + at / 4);
    }
    let verdict = judge(&run(&[("decode/p128", &[5000; 3])]), Some(&base), &Policy::default()).expect("a verdict");
    let found = row(&verdict, "decode/p128", "itl_ns");
    assert_eq!((found.outcome, verdict.exit_code), (Outcome::Advisory, 0));
    assert_eq!(found.reasons, [Reason::TooFewSessions { sessions: 8, days: 2, needed: 8 }]);
    assert_eq!(note(found), "8 sessions of 2 days: time is advisory, 6 more days needed");
    assert_eq!((time(found).sessions, time(found).days), (Some(8), Some(2)));
}

#[test]
fn the_newest_session_of_a_day_in_utc_stands_for_it() {
    let sessions = [
        ("2026-11-22T00:00:01Z", 4),
        ("2026-11-21T09:00:00Z", 2),
        ("2026-11-21T23:59:59Z", 3),
        ("2026-11-20T12:00:00Z", 1),
    ];
    assert_eq!(newest_of_each_day(sessions), [1, 3, 4]);
    // What names no day in UTC cannot be told apart.
    let unknown = [("yesterday", 1), ("", 2), ("2026-11-21T09:00:00+02:00", 3), ("2026-11-21", 4)];
    assert_eq!(newest_of_each_day(unknown).len(), 1);
}
