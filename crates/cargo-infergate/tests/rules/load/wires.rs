//! Dialects that servers speak, each at its own times: ten tokens, the first after 100 ms and then one each 20 ms.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::trace::Times;
use infergate_load::api::body::Api;
use infergate_load::api::completion::Completion;

const FIRST_NS: u64 = 100_000_000;
const STEP_NS: u64 = 20_000_000;
const TOKENS: u64 = 10;
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":10,\"total_tokens\":15}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// What comes at a time.
type Wire = Vec<(u64, String)>;

fn delta(delta: &str, more: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]{more}}}\n\n")
}

fn word(at: u64) -> String {
    delta(&format!("{{\"content\":\"w{at} \"}}"), "")
}

/// An event a token, and `end` with the last one.
fn tokens(event: impl Fn(u64) -> String, end: &str) -> Wire {
    let time = |at| FIRST_NS + at * STEP_NS;
    let mut wire: Wire = (0..TOKENS).map(|at| (time(at), event(at))).collect();
    wire.push((time(TOKENS - 1), end.to_owned()));
    wire
}

fn read(wire: &Wire) -> (RequestRecord, Result<(), FailureClass>) {
    let (mut record, mut completion) = (RequestRecord::default(), Completion::new(Api::Chat, 10));
    for (now_ns, text) in wire {
        if let Err(failure) = completion.read(*now_ns, text.as_bytes(), &mut record) {
            return (record, Err(failure.class));
        }
    }
    let ended_ns = wire.last().map_or(0, |(now_ns, _)| *now_ns);
    let outcome = completion.finish(ended_ns, false, &mut record).map(drop).map_err(|failure| failure.class);
    (record, outcome)
}

#[test]
fn each_dialect_has_its_tokens_and_their_times() {
    let end = format!("{}{USAGE}{DONE}", delta("{}", ""));
    let thought = |at| {
        let text = format!("{{\"type\":\"text\",\"text\":\"t{at} \"}}");
        delta(&format!("{{\"content\":[{{\"type\":\"thinking\",\"thinking\":[{text}]}}]}}"), "")
    };
    let growing = |at: u64| {
        let text = if at < 3 { String::new() } else { format!("w{at} ") };
        let usage = format!(",\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{},\"total_tokens\":15}}", at + 1);
        delta(&format!("{{\"content\":\"{text}\"}}"), &usage)
    };
    let mut pinged = tokens(word, &end);
    pinged.insert(0, (FIRST_NS / 3, ":\n\n:\n\n".to_owned()));
    for (name, wire, first_ns) in [
        ("plain", tokens(word, &end), FIRST_NS),
        ("thinking", tokens(|at| if at < 6 { thought(at) } else { word(at) }, &end), FIRST_NS),
        ("a number", tokens(|at| if at == 4 { delta("{\"content\":4}", "") } else { word(at) }, &end), FIRST_NS),
        ("no line end", tokens(word, &format!("{USAGE}data: [DONE]")), FIRST_NS),
        ("pings", pinged, FIRST_NS),
        ("usage that grows before text", tokens(growing, &end), FIRST_NS + 3 * STEP_NS),
        (
            "finished first",
            tokens(
                |at| word(at).replace("null}", if at == 0 { "\"stop\"}" } else { "null}" }),
                &format!("{USAGE}{DONE}"),
            ),
            FIRST_NS,
        ),
    ] {
        let (record, outcome) = read(&wire);
        assert_eq!((outcome, record.tokens()), (Ok(()), TOKENS), "{name}");
        let times = Times::from(&record);
        assert_eq!((times.ttft_ns(), times.tpot_ns()), (Some(first_ns as f64), Some(STEP_NS as f64)), "{name}");
    }
}

#[test]
fn errors_within_a_stream_are_the_servers() {
    for (error, class) in [
        ("error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n", FailureClass::Status5xx),
        ("data: {\"error\":{\"code\":500,\"message\":\"boom\"}}\n\n", FailureClass::Status5xx),
        ("data: [{\"error\":{\"code\":503,\"message\":\"boom\"}}]\n\n", FailureClass::Status5xx),
        ("data: Number of choices must be greater than 0.\n\n", FailureClass::ErrorEvent),
    ] {
        let wire = vec![(FIRST_NS, word(0)), (FIRST_NS + STEP_NS, error.to_owned())];
        assert_eq!(read(&wire).1, Err(class), "{error}");
    }
}
