//! What a window of load says, by its requests.

use cargo_infergate::paired::load_window::{answers, bytes_per_token, window};
use cargo_infergate::server::answer::itl_ns;
use infergate_core::load::{Failure, FailureClass, RequestRecord, WindowPlan};
use infergate_core::sha256::{self, words_of_hex};
use infergate_receipts::{LoadCase, Metric, Side, WindowAnswers, WindowTimes};

fn record(user: u32, scheduled_ns: u64, chunk_ns: &[u64]) -> RequestRecord {
    RequestRecord {
        user,
        scheduled_ns,
        sent_ns: scheduled_ns,
        chunk_ns: chunk_ns.to_vec(),
        ended_ns: chunk_ns.last().copied().unwrap_or(scheduled_ns),
        output_tokens: Some(chunk_ns.len() as u64),
        ..RequestRecord::default()
    }
}

/// From 100 to 200: what came before and after does not count, what waited at the begin does.
#[test]
fn a_window_holds_what_ran_at_full_load() {
    let times = WindowTimes { ramp_ns: 10, from_ns: 100, to_ns: 200, stop_ns: 220, give_up_ns: 300 };
    let load = LoadCase { scenario: "chat".into(), users: 2, metric: Metric::SystemToken, times };
    let records = [
        // Its third gap begins within and ends behind.
        record(0, 0, &[50, 110, 190, 230]),
        // It waited at the begin.
        record(1, 80, &[120, 130]),
        // Its gap has lasted 50 when the window ends.
        record(1, 140, &[150, 210, 240]),
    ];
    let seen = window(Side::Head, &load, &records, None).expect("full from 0 to 230");
    assert_eq!((seen.output_tokens, seen.length_ns), (5, 100));
    assert_eq!(seen.value_ns(Metric::SystemToken), Some(20));
    assert_eq!(seen.ttft_ns, [40, 10]);
    assert_eq!((seen.starved, &seen.longest_gap_ns[..]), (0, &[80, 50][..]));
    // A user who stopped at 130 leaves half a load.
    assert!(window(Side::Head, &load, &records[..2], None).is_err());
    // One that got nothing is no number, and is counted.
    let silent = [records[0].clone(), record(1, 90, &[]), record(1, 205, &[240])];
    let mut silent = silent.to_vec();
    silent[1].ended_ns = 205;
    assert_eq!(window(Side::Head, &load, &silent, None).expect("full").starved, 1);
    // Who was refused waits on, and is counted once: until the next request gets its first token.
    let failure = Some(Failure { class: FailureClass::Status5xx, status: Some(503), detail: String::new() });
    let refused = RequestRecord { failure, ended_ns: 60, ..record(1, 50, &[]) };
    let again = RequestRecord { ended_ns: 70, ..RequestRecord { scheduled_ns: 65, ..refused.clone() } };
    let all: Vec<RequestRecord> = records.iter().cloned().chain([refused.clone(), again]).collect();
    assert_eq!(window(Side::Head, &load, &all, None).expect("full").ttft_ns, [70, 10]);
    // Who gets nothing any more waits to the end.
    let late = RequestRecord { scheduled_ns: 160, ended_ns: 240, ..refused };
    let all = [records[0].clone(), records[1].clone(), late];
    assert_eq!(window(Side::Head, &load, &all, None).expect("full").ttft_ns, [40, 80]);
}

/// One that got a token before the window and none in it; one that hangs within; one that began behind it.
#[test]
fn a_stream_that_goes_no_further_starves_and_its_wait_is_a_gap() {
    let times = WindowTimes { ramp_ns: 10, from_ns: 100, to_ns: 200, stop_ns: 220, give_up_ns: 300 };
    let load = LoadCase { scenario: "chat".into(), users: 2, metric: Metric::LongestGap, times };
    let hung = |user, scheduled_ns, chunk_ns: &[u64]| RequestRecord {
        ended_ns: 300,
        failure: Some(Failure { class: FailureClass::Cancelled, status: None, detail: String::new() }),
        ..record(user, scheduled_ns, chunk_ns)
    };
    let records = [hung(0, 10, &[40, 90]), record(1, 20, &[110, 120]), hung(1, 120, &[130, 140]), hung(1, 210, &[])];
    let seen = window(Side::Head, &load, &records, None).expect("full");
    assert_eq!((seen.starved, seen.failures[&FailureClass::Cancelled]), (1, 2));
    assert_eq!(seen.longest_gap_ns, [110, 60]);
    assert_eq!(seen.itl_p90_ns, Some(10), "an open gap is in no percentile");
    // A usual gap that the end cuts is shorter than what the user saw before.
    let usual = [record(0, 0, &[50, 110, 190, 230]), record(1, 10, &[120, 140, 150, 195, 205])];
    let seen = window(Side::Head, &load, &usual, None).expect("full");
    assert_eq!((seen.starved, seen.failed(), &seen.longest_gap_ns[..]), (0, 0, &[80, 45][..]));
}

/// One side says usage, and the other sends each token in two pieces: the same text in the same time is as many tokens.
#[test]
fn tokens_of_both_sides_are_of_one_size() {
    let times = WindowTimes { ramp_ns: 0, from_ns: 0, to_ns: 200, stop_ns: 220, give_up_ns: 300 };
    let load = LoadCase { scenario: "chat".into(), users: 1, metric: Metric::SystemToken, times };
    let said = |request: u64, scheduled_ns, chunk_ns: &[u64], usage, text: &str| RequestRecord {
        request,
        output_tokens: usage,
        text_bytes: Some(text.len() as u64),
        output_sha256: Some(sha256::of(text)),
        ..record(0, scheduled_ns, chunk_ns)
    };
    let base = [said(0, 0, &[50, 100], Some(2), "one two"), said(1, 100, &[150, 210], Some(2), "one two")];
    let head = [said(0, 0, &[25, 50, 75, 100], None, "one two"), said(1, 100, &[125, 150, 205, 210], None, "ano")];
    let each = bytes_per_token(&base);
    assert_eq!(each, Some(3.5));
    let same = [head[0].clone(), RequestRecord { text_bytes: Some(7), ..head[1].clone() }];
    let tokens = |records: &[RequestRecord]| window(Side::Head, &load, records, each).expect("full").output_tokens;
    assert_eq!((tokens(&base), tokens(&same)), (3, 3));
    // Of the second request's answer, and of the first one that is known.
    let plan = WindowPlan { users: 1, ramp_ns: 0, length_ns: 220, give_up_ns: 300, number: 0, repeats_each: 4 };
    let known = words_of_hex(&sha256::of("one two")).expect("a hash").repeat(2);
    let seen = answers(plan, &known, &head, &base);
    assert_eq!(seen, WindowAnswers { compared: 2, compared_bytes: 10, repeated: 1, changed: 1 });
    let seen = answers(plan, &known, &base, &head[..1]);
    assert_eq!(seen, WindowAnswers { compared: 1, compared_bytes: 7, repeated: 1, changed: 0 });
    assert_eq!(bytes_per_token(&[record(0, 0, &[1])]), None);
}

/// At half the speed, and each token in two pieces: as many pieces in a second.
#[test]
fn a_mean_gap_is_one_between_tokens() {
    let gap = |tokens, bytes, ns: &[u64]| {
        itl_ns(&RequestRecord { output_tokens: tokens, text_bytes: Some(bytes), ..record(0, 0, ns) })
    };
    assert_eq!(gap(None, 12, &[100, 120, 140]), Some(20));
    assert_eq!(gap(None, 12, &[100, 120, 140, 160, 180]), Some(40));
    assert_eq!(gap(Some(5), 8, &[100, 140]), Some(10), "by usage");
    assert_eq!((gap(Some(5), 8, &[100]), gap(Some(1), 8, &[100, 120]), gap(None, 4, &[100, 120])), (None, None, None));
    assert_eq!(gap(None, 12, &[100, 100, 100]), None, "all at once");
    // An answer that stops halfway is no faster.
    assert_eq!((gap(None, 20, &[100, 140, 180]), gap(None, 12, &[100, 140])), (Some(20), Some(20)));
}
