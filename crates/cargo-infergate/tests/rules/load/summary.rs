//! Every number is derived from the records, and none from too few.

use infergate_core::load::{Arrivals, Failure, FailureClass, RequestRecord};
use infergate_core::metric::Metric;
use infergate_load::summary::{Counted, Window, scaling_efficiency, steady_window, summarise};
use infergate_load::validity;
use infergate_receipts::{LevelRecord, LoadReceipt};

use crate::gate::load_runs::{self, MS, of, request, run};

pub fn level(users: u32, each: u64) -> LevelRecord {
    load_runs::level(users, each, 100)
}

fn fail(record: &mut RequestRecord, class: FailureClass) {
    record.failure = Some(Failure { class, status: None, detail: "why".into() });
}

#[test]
fn numbers_of_a_known_level() {
    let summary = summarise(&level(2, 30));
    assert_eq!(summary.window, Some(Window { from_ns: 160 * MS, to_ns: 4800 * MS }));
    assert_eq!((summary.issued, summary.completed, summary.measured, summary.cancelled), (60, 60, 58, 0));
    assert_eq!(summary.values(Metric::Ttft).at(0.5), Some(100e6));
    assert_eq!(summary.values(Metric::Itl).at(0.5), Some(20e6));
    assert_eq!(summary.values(Metric::E2e).at(0.9), Some(160e6));
    assert_eq!(summary.values(Metric::Tpot).at(0.5), Some(20e6));
    assert_eq!(summary.values(Metric::DecodeSpeed).at(0.5), Some(50.0));
    assert_eq!(summary.values(Metric::OutputThroughput).at(0.5), Some(25.0));
    assert_eq!(summary.values(Metric::Ttft).at(0.99), None, "58 requests have no p99");
    assert_eq!(summary.system_tokens_per_s, Some(50.0), "2 users, 4 tokens each 160 ms");
    assert_eq!(summary.in_flight, Some(2.0));
    assert_eq!((summary.asked, summary.started), (Some(58), 58));
    assert_eq!(summary.little, None, "the users are in flight, and the law says nothing more");
    assert_eq!(summary.counted, Some(Counted::Usage));
    let single = summarise(&level(1, 30));
    assert_eq!(scaling_efficiency(&summary, &single), Some(1.0));
    assert_eq!(scaling_efficiency(&single, &summary), None, "two users are nobody alone");
}

/// 368 requests are needed, however many gaps they have.
#[test]
fn a_p99_of_gaps_needs_requests_and_not_gaps() {
    assert_eq!(summarise(&level(1, 368)).values(Metric::Itl).at(0.99), None);
    assert_eq!(summarise(&level(1, 369)).values(Metric::Itl).at(0.99), Some(20e6));
}

/// What averages over a request would hide.
#[test]
fn one_stall_in_each_request_is_seen_in_the_gaps() {
    let mut stalled = level(1, 400);
    stalled.steady = Some(Window { from_ns: 160 * MS, to_ns: stalled.wall_ns + 500 * MS });
    for record in &mut stalled.requests {
        record.chunk_ns.last_mut().into_iter().for_each(|last| *last += 500 * MS);
        record.ended_ns += 500 * MS;
    }
    assert_eq!(summarise(&stalled).values(Metric::Itl).at(0.99), Some(520e6));
}

#[test]
fn failed_and_cancelled_requests_are_counted_and_in_no_latency() {
    let mut level = level(2, 30);
    for (record, class) in level.requests.iter_mut().skip(20).zip([
        FailureClass::Timeout,
        FailureClass::Timeout,
        FailureClass::Status429,
        FailureClass::Cancelled,
    ]) {
        fail(record, class);
        record.chunk_ns.truncate(1);
    }
    level.requests[0].retries = 2;
    let summary = summarise(&level);
    assert_eq!((summary.issued, summary.completed, summary.cancelled, summary.retries), (60, 56, 1, 2));
    assert_eq!(summary.failures.get(&FailureClass::Timeout), Some(&2));
    assert_eq!(summary.failures.values().sum::<u64>() + summary.completed + summary.cancelled, summary.issued);
    assert_eq!((summary.measured, summary.values(Metric::Ttft).values.len()), (54, 54));
}

#[test]
fn without_a_steady_window_nothing_is_said() {
    for level in [level(4, 1), level(1, 1), of(Arrivals::Closed { users: 3 }, vec![request(0, 0, 0, 100)]), level(0, 0)]
    {
        assert_eq!(steady_window(&level), None);
        let summary = summarise(&level);
        assert_eq!(
            (summary.measured, summary.values(Metric::Ttft).at(0.5), summary.system_tokens_per_s),
            (0, None, None)
        );
        assert_eq!((summary.in_flight, summary.little, summary.counted), (None, None, None));
    }
}

#[test]
fn tokens_are_counted_by_what_there_is() {
    let mut level = level(1, 10);
    for record in &mut level.requests {
        record.output_tokens = None;
    }
    let summary = summarise(&level);
    assert_eq!((summary.counted, summary.values(Metric::Tpot).at(0.5)), (Some(Counted::Pieces), Some(20e6)));
    for record in &mut level.requests {
        record.chunk_tokens = vec![1, 1, 3, 3];
    }
    let summary = summarise(&level);
    assert_eq!(summary.counted, Some(Counted::Usage));
    assert_eq!(summary.values(Metric::Tpot).at(0.5), Some(60e6 / 7.0));
    assert_eq!(summary.system_tokens_per_s, Some(50.0), "8 tokens each 160 ms");
}

#[test]
fn one_token_has_no_gap_and_no_decode_speed() {
    let mut level = level(1, 10);
    for record in &mut level.requests {
        record.chunk_ns.truncate(1);
        record.output_tokens = Some(1);
    }
    let summary = summarise(&level);
    assert_eq!(
        (
            summary.values(Metric::Itl).at(0.5),
            summary.values(Metric::Tpot).at(0.5),
            summary.values(Metric::DecodeSpeed).at(0.5)
        ),
        (None, None, None)
    );
    assert_eq!(summary.values(Metric::E2e).at(0.5), Some(100e6));
}

fn judged(level: LevelRecord, change: impl FnOnce(&mut LoadReceipt)) -> Vec<String> {
    let mut receipt = run(1, 100);
    receipt.levels = vec![level];
    change(&mut receipt);
    validity::reasons(&receipt)
}

/// A server that writes two tokens at once: the middle gap is none, and the client does not get it wrong.
#[test]
fn a_server_that_sends_in_bursts_is_valid() {
    let mut bursts = level(2, 30);
    for record in &mut bursts.requests {
        let (first_ns, last) = (record.chunk_ns[0], record.chunk_ns.len() - 1);
        record.chunk_ns[..last].fill(first_ns);
    }
    assert_eq!(summarise(&bursts).values(Metric::Itl).at(0.5), Some(0.0));
    assert_eq!(judged(bursts, |receipt| receipt.audits[0].gap_error_ns.p99 = Some(1e6)), Vec::<String>::new());
}

#[test]
fn what_makes_numbers_useless_is_named_with_what_to_change() {
    let inaccurate = judged(level(2, 30), |receipt| receipt.audits[0].gap_error_ns.p99 = Some(2.1e6));
    assert_eq!(
        inaccurate,
        [
            "chatbot, 2 users: the client is off by 2.10 ms (p99 of the self-audit), which is above 10 % of the median gap of \
          20.00 ms; give the client an idle core, or fewer users"
        ]
    );
    let mut busy = level(2, 30);
    busy.client_cpu_ns = Some(busy.wall_ns * 95 / 100);
    assert!(judged(busy, |_| {})[0].contains("the client used 95 % of its core"));

    let mut idle = level(2, 30);
    for record in &mut idle.requests {
        record.ended_ns -= 20 * MS;
        record.chunk_ns.truncate(2);
    }
    let mut limited = idle.clone();
    fail(&mut limited.requests[20], FailureClass::Status429);
    assert_eq!(judged(limited, |_| {}), Vec::<String>::new(), "refusing is a result");
    assert!(
        judged(idle, |_| {})[0].contains("1.75 requests were in flight in the mean while it was measured, not 2 users")
    );

    let mut failed = level(2, 30);
    for record in &mut failed.requests {
        fail(record, FailureClass::Connect);
    }
    assert!(judged(failed, |_| {})[0].contains("no request completed"));
    assert!(judged(level(2, 30), |receipt| receipt.audits[0].wrong_requests = 1)[0].contains("1 of 12 answers"));
}
