//! A scheduler under load, on a virtual clock: every time is known.

use anyhow::{Result, ensure};
use infergate::engine::{Engine, Event, RequestId, Scheduler};
use infergate::load::{Ask, Driven, drive};
use infergate_core::load::{Arrivals, FailureClass, RequestRecord, Spacing, Stop};
use infergate_core::receipt::output_sha256;

use crate::fake::{FakeEngine, FakeScript, VirtualClock};
use crate::local_load::engines::{Batch, MS, ask, plan, script};

fn closed(users: u32) -> Arrivals {
    Arrivals::Closed { users }
}

fn constant(requests_per_s: f64) -> Arrivals {
    Arrivals::Open { requests_per_s, spacing: Spacing::Constant }
}

/// Sequences of one fake engine that take turns.
fn turns(script: FakeScript, slots: usize, arrivals: Arrivals, stop: Stop) -> Driven {
    let clock = VirtualClock::default();
    // A run does not begin at the clock's origin.
    clock.advance_ns(12_345);
    let engine = FakeEngine::new(script, clock.clone());
    let mut scheduler = engine.scheduler(slots).expect("forks");
    drive(scheduler.as_mut(), &clock, &plan(arrivals, stop, 1), &mut ask).expect("runs")
}

fn requests(count: u64) -> Stop {
    Stop::Requests { count }
}

/// Of the measured requests.
fn times(driven: &Driven) -> Vec<(u64, u64, Vec<u64>)> {
    let ms = |ns: u64| ns / MS;
    let of = |record: &RequestRecord| {
        assert_eq!(record.chunk_ns.last(), Some(&record.ended_ns));
        (ms(record.scheduled_ns), ms(record.sent_ns), record.chunk_ns.iter().copied().map(ms).collect())
    };
    driven.records.iter().filter(|record| record.measured).map(of).collect()
}

#[test]
fn one_user_sends_the_next_request_when_the_last_one_ended() {
    let driven = turns(script(), 1, closed(1), requests(3));
    assert_eq!(times(&driven), [(0, 0, vec![4, 24]), (24, 24, vec![28, 48]), (48, 48, vec![52, 72])]);
    assert_eq!((driven.largest_batch, driven.failure), (1, None));
}

#[test]
fn two_users_take_turns_until_the_last_measured_request_has_ended() {
    let driven = turns(script(), 2, closed(2), requests(3));
    assert_eq!(times(&driven), [(0, 0, vec![4, 28]), (0, 0, vec![8, 48]), (28, 28, vec![52, 76])]);
    assert_eq!(driven.records.iter().map(|record| record.user).collect::<Vec<_>>(), [0, 1, 0, 1]);
    let behind = &driven.records[3];
    assert_eq!(
        (behind.measured, behind.scheduled_ns, behind.ended_ns),
        (false, 48 * MS, 76 * MS),
        "until the third ended"
    );
    assert_eq!(driven.largest_batch, 2);
}

#[test]
fn a_record_says_whose_tokens_it_counts() {
    let driven = turns(script(), 1, closed(1), requests(2));
    for (number, (record, output)) in driven.records.iter().zip(&driven.outputs).enumerate() {
        assert_eq!(record.request, number as u64);
        assert_eq!((record.input_tokens, record.output_tokens), (Some(4), Some(2)));
        assert_eq!(record.output_sha256.as_deref(), Some(output_sha256(output).as_str()));
        let mut alone = FakeEngine::new(script(), VirtualClock::default());
        let prompt = ask(number as u64).expect("a request").prompt;
        assert_eq!(*output, [alone.start(&prompt).expect("starts"), alone.next().expect("steps")]);
    }
    assert_ne!(driven.outputs[0], driven.outputs[1]);
}

#[test]
fn a_closed_loop_keeps_exactly_its_users_in_flight() {
    let clock = VirtualClock::default();
    let mut batch = Batch::new(clock.clone(), 8);
    // Outputs of 1 to 7 tokens: users end at different times.
    let mut ask = |request: u64| Some(Ask { output_tokens: 1 + (request % 7) as usize, ..ask(request)? });
    let driven = drive(&mut batch, &clock, &plan(closed(5), requests(200), 8), &mut ask).expect("runs");
    assert_eq!(driven.records.iter().filter(|record| record.measured).count(), 200);
    assert_eq!(driven.largest_batch, 5);
    assert!(batch.steps.iter().all(|in_flight| *in_flight == 5), "to the end: {:?}", batch.steps);
    for user in 0..5 {
        let own: Vec<&RequestRecord> = driven.records.iter().filter(|record| record.user == user).collect();
        assert!(own.windows(2).all(|pair| pair[0].ended_ns == pair[1].scheduled_ns), "user {user} never pauses");
    }
}

#[test]
fn more_users_than_slots_wait_first_come_first_served() {
    let driven = turns(script(), 1, closed(3), requests(5));
    assert_eq!(
        times(&driven),
        [
            (0, 0, vec![4, 24]),
            (0, 24, vec![28, 48]),
            (0, 48, vec![52, 72]),
            (24, 72, vec![76, 96]),
            (48, 96, vec![100, 120]),
        ]
    );
    assert_eq!(driven.largest_batch, 1);
}

#[test]
fn an_open_loop_starts_by_its_schedule_where_there_is_room() {
    let driven = turns(script(), 1, constant(10.0), requests(3));
    assert_eq!(times(&driven), [(0, 0, vec![4, 24]), (100, 100, vec![104, 124]), (200, 200, vec![204, 224])]);
}

#[test]
fn the_latency_of_an_open_loop_counts_from_the_schedule() {
    let driven = turns(script(), 1, constant(100.0), requests(4));
    assert_eq!(
        times(&driven),
        [(0, 0, vec![4, 24]), (10, 24, vec![28, 48]), (20, 48, vec![52, 72]), (30, 72, vec![76, 96])]
    );
}

#[test]
fn a_stop_by_time_ends_what_is_measured_and_not_the_requests() {
    let driven = turns(script(), 1, closed(1), Stop::Duration { ns: 50 * MS });
    assert_eq!(times(&driven).last(), Some(&(48, 48, vec![52, 72])));
    assert_eq!(driven.records.len(), 3);
    let driven = turns(script(), 1, constant(100.0), Stop::Duration { ns: 30 * MS });
    assert_eq!(times(&driven).iter().map(|(start, ..)| *start).collect::<Vec<_>>(), [0, 10, 20]);
    let starts: Vec<u64> = driven.records.iter().map(|record| record.scheduled_ns / MS).collect();
    assert_eq!(starts, [0, 10, 20, 30, 40, 50, 60, 70], "the rate is kept until the third ended, after 72");
}

/// A batch whose tokens are changed or lost on their way, and that is stepped so often at the most.
struct Changed(Batch, fn(Event) -> Option<Event>, u32);

impl Scheduler for Changed {
    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn submit(&mut self, prompt: &[u32], max_tokens: usize) -> Result<RequestId> {
        self.0.submit(prompt, max_tokens)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        self.2 += 1;
        ensure!(self.2 < 1000, "stepped on and on");
        if self.2 > 900 {
            return Ok(Vec::new());
        }
        Ok(self.0.step()?.into_iter().filter_map(self.1).collect())
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        self.0.cancel(request)
    }
}

/// So many requests of one user, one after the other.
fn changed(count: u64, change: fn(Event) -> Option<Event>) -> Driven {
    let clock = VirtualClock::default();
    let mut batch = Changed(Batch::new(clock.clone(), 1), change, 0);
    drive(&mut batch, &clock, &plan(closed(1), requests(count), 1), &mut ask).expect("runs")
}

#[test]
fn tokens_that_waited_in_the_engine_have_their_own_time() {
    let driven = changed(1, |event| Some(Event { age_ns: 3 * MS, ..event }));
    assert_eq!(times(&driven), [(0, 0, vec![7, 17])]);
}

#[test]
fn an_engine_that_fails_ends_the_run_and_every_request_has_an_end() {
    let script = FakeScript { fails_at_step: Some(2), ..script() };
    let driven = turns(script, 2, closed(3), requests(10));
    assert_eq!(driven.failure.as_deref(), Some("the fake engine failed at step 2"));
    let class = |record: &RequestRecord| record.failure.as_ref().map(|failure| failure.class);
    let count = |wanted| driven.records.iter().filter(|record| class(record) == wanted).count();
    let (completed, failed) = (count(None), count(Some(FailureClass::Engine)));
    assert!(completed > 0 && failed > 0, "{driven:?}");
    assert_eq!(completed + failed + count(Some(FailureClass::Cancelled)), driven.records.len());
    assert!(driven.records.iter().all(|record| record.output_sha256.is_some() == record.failure.is_none()));
    let in_order = |record: &RequestRecord| record.scheduled_ns <= record.sent_ns && record.sent_ns <= record.ended_ns;
    assert!(driven.records.iter().all(in_order), "{driven:?}");
}

#[test]
fn a_scheduler_that_breaks_its_rules_is_called() {
    let failure = |change: fn(Event) -> Option<Event>| changed(2, change).failure.expect("is called");
    assert!(failure(|event| Some(Event { index: event.index + 1, ..event })).contains("token 1 comes next"));
    assert!(failure(|event| Some(Event { finished: true, ..event })).contains("wrong about token 1 of 2"));
    assert!(failure(|event| Some(Event { finished: false, ..event })).contains("wrong about token 2 of 2"));
    assert!(failure(|event| Some(Event { request: RequestId(9), ..event })).contains("not in flight"));
    // Tokens that are lost: the requests stay in flight here, and no step takes time any more.
    assert!(failure(|_| None).contains("gave no token though 1 requests are in flight"));
}
