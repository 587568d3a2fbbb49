//! One request: its times, its connection, its attempts, its limits.

use std::time::Duration;

use infergate_core::load::{Failure, FailureClass, RequestRecord};
use infergate_load::api::body::{Api, RequestTemplate};
use infergate_load::client::connection::Connection;
use infergate_load::client::endpoint::{Endpoint, Limits};
use infergate_load::client::stamped::RunClock;
use infergate_load::client::url::Url;
use infergate_load::targets::live::Live;

use crate::load::script::{
    Act, END, HEAD, Script, answer, chunk, done, endpoint, in_made_up_time, send, template, token, wait_ms,
};

const MS: u64 = 1_000_000;

/// What `count` requests of 4 tokens on one connection do, one after the other.
fn requests(script: &Script, count: usize, limits: Limits) -> Vec<(RequestRecord, Result<(), Failure>)> {
    in_made_up_time(async {
        let endpoint = endpoint(script, limits);
        let (clock, live) = (RunClock::start(), Live::default());
        let mut connection: Option<Connection> = None;
        let mut all = Vec::new();
        for _ in 0..count {
            let now_ns = clock.now_ns();
            let mut record = RequestRecord { scheduled_ns: now_ns, sent_ns: now_ns, ..RequestRecord::default() };
            let body = endpoint.template.body("1", 4);
            let outcome = endpoint.request(body, 4, &mut connection, &mut record, (clock, &live)).await;
            all.push((record, outcome));
        }
        all
    })
}

fn one(acts: Vec<Act>) -> (RequestRecord, Result<(), Failure>) {
    requests(&Script::new([acts]), 1, Limits::default()).remove(0)
}

/// The class of the failure, and the record; the server's words are in neither.
#[track_caller]
fn failure(acts: Vec<Act>) -> (RequestRecord, FailureClass) {
    let (record, outcome) = one(acts);
    let failure = outcome.expect_err("it failed");
    assert!(!failure.detail.contains("SECRET") && !failure.detail.ends_with('.'), "{}", failure.detail);
    (record, failure.class)
}

#[test]
fn tokens_have_the_times_at_which_they_were_sent() {
    let (record, outcome) = one(answer(200, 20, 4));
    assert_eq!(outcome, Ok(()));
    assert_eq!(record.chunk_ns, [200 * MS, 220 * MS, 240 * MS, 260 * MS]);
    assert_eq!((record.connected_ns, record.first_byte_ns, record.ended_ns), (Some(0), Some(0), 260 * MS));
    assert_eq!((record.input_tokens, record.output_tokens, record.retries), (Some(5), Some(4), 0));
    assert_eq!(record.output_sha256.as_deref().map(str::len), Some(64));
}

#[test]
fn tokens_of_one_read_have_one_time_and_all_are_counted() {
    let piece = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
    let acts = vec![send(HEAD), wait_ms(10), send(chunk(piece) + &chunk(piece) + &chunk(&piece.repeat(2))), done(4)];
    let (record, outcome) = one(acts);
    assert_eq!((record.chunk_ns, outcome), (vec![10 * MS; 4], Ok(())));
}

#[test]
fn a_token_split_over_reads_has_the_time_of_its_end() {
    let whole = chunk("data: {\"choices\":[{\"text\":\"\u{e9}\"}]}\n\n").into_bytes();
    let within = whole.iter().position(|byte| *byte == 0xc3).expect("the first byte of the character") + 1;
    let (first, rest) = whole.split_at(within);
    let acts = vec![send(HEAD), wait_ms(5), Act::Send(first.into()), wait_ms(5), Act::Send(rest.into()), done(1)];
    let (record, outcome) = one(acts);
    assert_eq!((record.chunk_ns, outcome), (vec![10 * MS], Ok(())));
}

#[test]
fn a_slow_head_is_apart_from_the_first_token() {
    let mut acts: Vec<Act> = HEAD.bytes().flat_map(|byte| [wait_ms(10), Act::Send(vec![byte])]).collect();
    acts.extend([wait_ms(100), token(), done(1)]);
    let (record, outcome) = one(acts);
    assert_eq!(outcome, Ok(()));
    let head_ns = HEAD.len() as u64 * 10 * MS;
    assert_eq!((record.first_byte_ns, record.chunk_ns), (Some(10 * MS), vec![head_ns + 100 * MS]));
}

#[test]
fn a_connection_is_used_again_and_a_closed_one_is_made_anew() {
    let script = Script::new([answer(1, 1, 2)]);
    let all = requests(&script, 3, Limits::default());
    let connected: Vec<bool> = all.iter().map(|(record, _)| record.connected_ns.is_some()).collect();
    assert_eq!((connected, script.dials.get()), (vec![true, false, false], 1));

    let head = HEAD.replace("Transfer", "Connection: close\r\nTransfer");
    let closing = vec![send(head), token(), done(1), Act::Close];
    let script = Script::new([closing]);
    let all = requests(&script, 3, Limits::default());
    assert!(all.iter().all(|(record, outcome)| outcome.is_ok() && record.connected_ns.is_some()));
    assert_eq!(script.dials.get(), 3);
}

#[test]
fn a_connection_that_is_closed_as_it_is_used_again_is_no_failure() {
    let script = Script::new([answer(1, 1, 2), vec![Act::Close], answer(1, 1, 2)]);
    let all = requests(&script, 2, Limits::default());
    assert!(all.iter().all(|(_, outcome)| outcome.is_ok()), "{all:?}");
    let retries: Vec<u32> = all.iter().map(|(record, _)| record.retries).collect();
    assert_eq!((retries, script.dials.get()), (vec![0, 1], 2), "it is made again, and said");
    let far = vec![wait_ms(300), Act::Close];
    let script = Script::new([answer(1, 1, 2), far, answer(1, 1, 2)]);
    assert_eq!(requests(&script, 2, Limits::default()).remove(1).0.retries, 1, "over a long way, too");
    let late = vec![wait_ms(400), Act::Close];
    let script = Script::new([answer(1, 1, 2), late, answer(1, 1, 2)]);
    let (record, outcome) = requests(&script, 2, Limits::default()).remove(1);
    let class = outcome.expect_err("the server had begun to work on it").class;
    assert_eq!((class, record.retries, script.dials.get()), (FailureClass::CutStream, 0, 1));
    let (_, class) = failure(vec![Act::Close]);
    assert_eq!(class, FailureClass::CutStream, "a new connection that is closed is one");
}

#[test]
fn retry_after_is_kept_to_and_the_start_does_not_move() {
    let full = send("HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\nContent-Length: 6\r\n\r\nSECRET");
    let script = Script::new([vec![full], answer(10, 10, 4)]);
    let (record, outcome) = requests(&script, 1, Limits::default()).remove(0);
    assert_eq!((outcome, record.retries, record.scheduled_ns), (Ok(()), 1, 0));
    assert_eq!(record.chunk_ns.first(), Some(&(2_010 * MS)));
    assert_eq!(script.dials.get(), 1, "the connection is used again");
}

#[test]
fn a_server_that_stays_full_or_broken_is_asked_three_times_and_one_that_refuses_once() {
    for (status, class, retries) in [
        (404, FailureClass::Status4xx, 0),
        (429, FailureClass::Status429, 2),
        (500, FailureClass::Status5xx, 2),
        (503, FailureClass::Status5xx, 2),
    ] {
        let script = Script::new([vec![send(format!("HTTP/1.1 {status} No\r\nContent-Length: 6\r\n\r\nSECRET"))]]);
        let (record, outcome) = requests(&script, 1, Limits::default()).remove(0);
        let failure = outcome.expect_err("it failed");
        assert_eq!((failure.class, failure.status, record.retries), (class, Some(status), retries));
        assert_eq!(script.requests.borrow().len(), retries as usize + 1);
        assert!(!failure.detail.contains("SECRET"), "{}", failure.detail);
    }
}

#[test]
fn what_is_no_stream_is_named() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    for text in
        [json, "SECRET, no HTTP\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: /SECRET\r\nContent-Length: 0\r\n\r\n"]
    {
        let (_, class) = failure(vec![send(text)]);
        assert_eq!(class, FailureClass::MalformedStream, "{:.40}", text);
    }
}

#[test]
fn a_compressed_stream_is_not_asked_for_and_refused_by_its_name() {
    for (coding, name) in [("gzip", "(gzip)"), ("SECRET, Br", "(br)")] {
        let head = HEAD.replace("Transfer", &format!("Content-Encoding: {coding}\r\nTransfer"));
        let script = Script::new([vec![send(head), Act::Hang]]);
        let (_, outcome) = requests(&script, 1, Limits::default()).remove(0);
        let failure = outcome.expect_err("it failed");
        assert_eq!(failure.class, FailureClass::MalformedStream);
        assert!(failure.detail.contains(name) && !failure.detail.contains("SECRET"), "{}", failure.detail);
        assert!(script.requests.borrow()[0].contains("accept-encoding: identity\r\n"));
    }
    for coding in ["identity", "none", "utf-8"] {
        let head = HEAD.replace("Transfer", &format!("Content-Encoding: {coding}\r\nTransfer"));
        assert_eq!(one(vec![send(head), token(), done(1)]).1, Ok(()), "{coding} changes no byte");
    }
}

#[test]
fn a_cut_stream_keeps_the_tokens_that_came() {
    let (record, class) = failure(vec![send(HEAD), wait_ms(5), token(), wait_ms(5), token(), Act::Close]);
    assert_eq!((record.chunk_ns, class), (vec![5 * MS, 10 * MS], FailureClass::CutStream));
    let (_, class) = failure(vec![send(HEAD), token(), send(END)]);
    assert_eq!(class, FailureClass::CutStream, "whole HTTP, and no [DONE]");
}

#[test]
fn whatever_hangs_is_ended_by_the_time_limit() {
    let limits = Limits { request: Duration::from_secs(3), ..Limits::default() };
    for acts in [vec![Act::Hang], vec![send(HEAD), Act::Hang], vec![send(HEAD), token(), Act::Hang]] {
        let (record, outcome) = requests(&Script::new([acts.clone()]), 1, limits).remove(0);
        assert_eq!(outcome.expect_err("it failed").class, FailureClass::Timeout);
        assert_eq!(record.chunk_ns.len(), acts.len() / 3);
    }
}

/// And nothing that not every server of it knows.
#[test]
fn each_api_has_its_own_path_headers_and_fields() {
    for (api, start, key, expected) in [
        (
            Api::Completions,
            "POST /v1/completions ",
            "authorization: Bearer SECRET\r\n",
            serde_json::json!({
                "model": "m", "prompt": "1", "max_tokens": 4, "stream": true, "temperature": 0.0,
                "stream_options": { "include_usage": true },
            }),
        ),
        (
            Api::Responses,
            "POST /v1/responses ",
            "authorization: Bearer SECRET\r\n",
            serde_json::json!({
                "model": "m", "input": "1", "max_output_tokens": 4, "stream": true, "temperature": 0.0,
            }),
        ),
        (
            Api::Messages,
            "POST /v1/messages ",
            "x-api-key: SECRET\r\n",
            serde_json::json!({
                "model": "m", "messages": [{ "role": "user", "content": "1" }], "max_tokens": 4, "stream": true,
                "temperature": 0.0,
            }),
        ),
    ] {
        let script = Script::new([vec![Act::Close]]);
        in_made_up_time(async {
            let (dial, url) = (Box::new(script.clone()), Url::parse("http://server", api).expect("a URL"));
            let template = RequestTemplate { api, ..template() };
            let endpoint = Endpoint::new(dial, &url, Some("SECRET"), template, Limits::default());
            let endpoint = endpoint.expect("an endpoint");
            let (body, mut record) = (endpoint.template.body("1", 4), RequestRecord::default());
            let run = (RunClock::start(), &Live::default());
            endpoint.request(body, 4, &mut None, &mut record, run).await.expect_err("it was closed");
        });
        let request = script.requests.borrow()[0].clone();
        let (head, body) = request.split_once("\r\n\r\n").expect("a head");
        let head = format!("{head}\r\n");
        assert!(head.starts_with(start) && head.contains(key) && head.contains("host: server\r\n"), "{head}");
        assert_eq!(head.contains("anthropic-version: 2023-06-01\r\n"), api == Api::Messages, "{head}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).expect("JSON"), expected);
    }
}

/// Servers repeat what they were sent.
#[test]
fn what_a_server_says_of_an_error_is_for_the_terminal_without_what_is_secret() {
    let event = |text: &str| vec![send(HEAD), token(), send(chunk(text)), done(4)];
    let whole = |status: &str, text: &str| {
        vec![send(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len()))]
    };
    for (acts, words) in [
        (event("data: Number of choices\n\n"), "Number of choices"),
        (event("error: {\"code\":500,\"message\":\"boom\"}\n\n"), "boom"),
        (event("data: {\"error\":{\"message\":\"SECRET is no key\"}}\n\n"), "[hidden] is no key"),
        (whole("400 No", "{\"error\":\"\\u001b[31mboom\"}"), "\\u{1b}[31mboom"),
        (whole("404 No", "no\nsuch"), "no such"),
        (whole("200 OK", "{\"detail\":\"boom\"}"), "boom"),
        (whole("422 No", "{\"detail\":[\"boom\"]}"), "{\"detail\":[\"boom\"]}"),
        (whole("422 No", "{\"detail\":[\"boom \\u0053ECRET\"]}"), "{\"detail\":[\"boom [hidden]\"]}"),
    ] {
        let script = Script::new([acts]);
        let live = in_made_up_time(async {
            let endpoint = endpoint(&script, Limits::default());
            let (live, mut record) = (Live::default(), RequestRecord::default());
            let body = endpoint.template.body("1", 4);
            let outcome = endpoint.request(body, 4, &mut None, &mut record, (RunClock::start(), &live)).await;
            let failure = outcome.expect_err("it failed");
            assert!(!failure.detail.contains("boom") && !failure.detail.contains("SECRET"), "{}", failure.detail);
            live
        });
        assert_eq!(live.words.get().map(String::as_str), Some(words));
    }
}

#[test]
fn what_is_merged_into_a_request_adds_changes_and_removes() {
    let extra = serde_json::json!({
        "temperature": null, "top_p": 0.5, "stream_options": { "continuous_usage_stats": true },
    });
    let extra = extra.as_object().expect("an object").clone();
    let body: serde_json::Value =
        serde_json::from_str(&RequestTemplate { extra, ..template() }.body("1", 4)).expect("JSON");
    let expected = serde_json::json!({
        "model": "m", "prompt": "1", "max_tokens": 4, "stream": true, "top_p": 0.5,
        "stream_options": { "include_usage": true, "continuous_usage_stats": true },
    });
    assert_eq!(body, expected);
}

#[test]
fn a_refusal_whose_text_does_not_end_keeps_its_status_and_is_made_again() {
    let full = send("HTTP/1.1 503 Full\r\nRetry-After: 2\r\nContent-Length: 600\r\n\r\nSECRET");
    let script = Script::new([vec![full.clone(), Act::Hang], answer(10, 10, 4)]);
    let (record, outcome) = requests(&script, 1, Limits::default()).remove(0);
    assert_eq!((outcome, record.retries, script.dials.get()), (Ok(()), 1, 2));
    assert_eq!(record.chunk_ns.first(), Some(&(3_010 * MS)), "a second for the text, two that the server asks for");
    let script = Script::new([vec![full, Act::Hang]]);
    let (_, outcome) = requests(&script, 1, Limits::default()).remove(0);
    assert_eq!(outcome.expect_err("it stays full").class, FailureClass::Status5xx);
}

#[test]
fn what_goes_on_behind_done_is_not_waited_for_either() {
    let last = chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n");
    let mut acts = vec![send(HEAD), send(last)];
    acts.extend((0..100).flat_map(|_| [wait_ms(100), send(chunk("\n"))]));
    let script = Script::new([acts]);
    let all = requests(&script, 4, Limits::default());
    assert!(all.iter().all(|(_, outcome)| outcome.is_ok()));
    let starts: Vec<u64> = all.iter().map(|(record, _)| record.scheduled_ns).collect();
    assert_eq!((starts, script.dials.get()), (vec![0, 20 * MS, 20 * MS, 20 * MS], 4), "only the first one was");
}
