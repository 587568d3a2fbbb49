//! What a completion's events become: pieces with their times, counts, reasons.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::trace::Times;
use infergate_load::api::body::Api;
use infergate_load::api::completion::Completion;
use proptest::prelude::*;

/// Reads `pieces`, each at its own time (1000, 2000, ...), of an answer of 8 tokens.
fn read(pieces: &[&[u8]]) -> (RequestRecord, Result<(), FailureClass>) {
    reading(Api::Chat, pieces)
}

/// The same, of `api`.
fn reading(api: Api, pieces: &[&[u8]]) -> (RequestRecord, Result<(), FailureClass>) {
    let mut record = RequestRecord::default();
    let mut completion = Completion::new(api, 8);
    let mut now_ns = 0;
    for piece in pieces {
        now_ns += 1_000;
        if let Err(failure) = completion.read(now_ns, piece, &mut record) {
            assert!(!failure.detail.contains("SECRET"), "{}", failure.detail);
            return (record, Err(failure.class));
        }
    }
    let outcome = completion.finish(now_ns, false, &mut record).map_err(|failure| failure.class);
    (record, outcome)
}

fn whole(text: &str) -> (RequestRecord, Result<(), FailureClass>) {
    read(&[text.as_bytes()])
}

const DONE: &str = "data: [DONE]\n\n";

fn chat(delta: &str) -> String {
    format!("data: {{\"id\":\"1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
}

#[test]
fn roles_and_empty_texts_are_no_tokens() {
    let text = chat("{\"role\":\"assistant\"}")
        + &chat("{\"role\":\"assistant\",\"content\":\"\"}")
        + &chat("{\"role\":\"assistant\",\"name\":\"a speaker\",\"content\":\"\"}")
        + &chat("{\"content\":null}")
        + &chat("{}")
        + &chat("{\"content\":\"a\"}")
        + DONE;
    let (record, outcome) = whole(&text);
    assert_eq!((record.chunk_ns.len(), outcome), (1, Ok(())));
}

#[test]
fn every_kind_of_output_is_one() {
    for delta in [
        "{\"content\":\"a\"}",
        "{\"reasoning_content\":\"a\"}",
        "{\"content\":null,\"reasoning_text\":\"a\"}",
        "{\"reasoning\":\"a\",\"content\":null}",
        "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"a\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}",
        "{\"content\":null,\"refusal\":\"a\"}",
        "{\"content\":6}",
        "{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"a\"}]}]}",
        "{\"content\":[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"a\"}]}]}",
        "{\"audio\":{\"id\":\"1\",\"data\":\"AAAA\",\"transcript\":\"a\"}}",
        "{\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}",
        // Nobody knows this name.
        "{\"content\":\"\",\"musings\":[{\"step\":1,\"words\":\"a\"}]}",
    ] {
        let (record, outcome) = whole(&(chat(delta) + DONE));
        assert_eq!((record.chunk_ns.len(), outcome), (1, Ok(())), "{delta}");
    }
    let (record, outcome) = whole(&format!("data: {{\"choices\":[{{\"text\":\"a\"}}]}}\n\n{DONE}"));
    assert_eq!((record.chunk_ns.len(), outcome), (1, Ok(())));
}

#[test]
fn the_first_answer_is_apart_from_the_first_thought() {
    let answer = chat("{\"content\":\"a\"}");
    for thought in ["{\"reasoning_content\":\"hm\"}", "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"}]}"] {
        let (record, _) = read(&[chat(thought).as_bytes(), answer.as_bytes(), DONE.as_bytes()]);
        assert_eq!(record.chunk_ns, [1_000, 2_000], "{thought}");
        assert_eq!(record.first_answer_ns, Some(2_000), "{thought}");
    }
}

#[test]
fn what_is_said_of_the_output_is_none() {
    let labels = "\"role\":\"assistant\",\"content\":\"\",\"phase\":\"final\",\"step\":1,\"item_id\":\"1\",\"thought_signature\":\"b\"";
    let (record, _) =
        whole(&(chat(&format!("{{{labels}}}")) + &chat("{\"content\":\"a\",\"html\":\"<b>a</b>\"}") + DONE));
    assert_eq!((record.chunk_ns.len(), record.text_bytes), (1, Some(1)));
    // Once it is said of the output; again and again it is output.
    let (intent, text) = (chat("{\"content\":\"\",\"intent\":\"search\"}"), chat("{\"content\":\"a\"}"));
    for (times, pieces) in [(1, 1), (2, 3)] {
        let (record, outcome) = whole(&(intent.repeat(times) + &text + DONE));
        assert_eq!((record.chunk_ns.len(), outcome), (pieces, Ok(())));
    }
}

#[test]
fn one_text_under_two_names_is_one() {
    let thoughts = "\"reasoning\":\"hm\",\"reasoning_content\":\"hm\",\"reasoning_details\":[{\"text\":\"hm\"}]";
    let answer = "\"content\":\"ab\"";
    for delta in [format!("{thoughts},{answer}"), format!("{answer},{thoughts}")] {
        let (record, _) =
            whole(&(format!("data: {{\"choices\":[{{\"delta\":{{{delta}}},\"text\":\"ab\"}}]}}\n\n") + DONE));
        assert_eq!((record.chunk_ns.len(), record.text_bytes), (1, Some(4)), "{delta}");
    }
}

#[test]
fn what_is_no_stream_of_events_is_known_by_its_beginning() {
    for text in ["{\"choices\":[]}", "\n[1]", "<html></html>"] {
        assert_eq!(whole(text).1, Err(FailureClass::MalformedStream), "{text}");
    }
    let error: [&[u8]; 2] = [b"{\"error\":{\"message\":\"SECRET\",", b"\"code\":429}}"];
    assert_eq!(read(&error).1, Err(FailureClass::Status429), "an error, in two reads");
    assert_eq!(read(&error[..1]).1, Err(FailureClass::MalformedStream), "half of one");
}

#[test]
fn words_in_place_of_an_event_are_an_error_of_the_server() {
    let piece = chat("{\"content\":\"a\"}");
    for (event, class) in [
        ("data: SECRET must be greater than 0.\n\n", FailureClass::ErrorEvent),
        ("error: {\"code\":500,\"message\":\"SECRET\"}\n\n", FailureClass::Status5xx),
        ("error: {\"message\":\"SECRET\"}\n\n", FailureClass::ErrorEvent),
        ("data: {\"object\":\"error\",\"message\":\"SECRET\",\"code\":400}\n\n", FailureClass::Status4xx),
        ("data: {\"choices\":null,\"error_type\":\"a\",\"error_message\":\"SECRET\"}\n\n", FailureClass::ErrorEvent),
        ("data: {\"code\":10013,\"message\":\"SECRET\"}\n\n", FailureClass::ErrorEvent),
        (
            "data: {\"choices\":null,\"base_resp\":{\"status_code\":1002,\"status_msg\":\"SECRET\"}}\n\n",
            FailureClass::ErrorEvent,
        ),
        ("{\"error\":{\"message\":\"SECRET\",\"code\":503}}\n", FailureClass::Status5xx),
    ] {
        assert_eq!(whole(&(piece.clone() + event + DONE)).1, Err(class), "{event}");
    }
    let sound = "data: {\"error\":\"\",\"error_code\":0,\"code\":0,\"message\":\"Success\",\"base_resp\":{\"status_code\":0}}\n\n";
    assert_eq!(whole(&(piece + sound + DONE)).1, Ok(()), "a code of success");
}

#[test]
fn tokens_before_the_first_text_take_no_part_in_the_speed_of_those_behind_it() {
    let piece = |text: &str, tokens: u32| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}],\"usage\":{{\"completion_tokens\":{tokens}}}}}\n\n"
        )
    };
    let pieces = [piece("", 1), piece("", 2), piece("a", 3), piece("a", 4), piece("a", 5), DONE.to_owned()];
    let (record, _) = read(&pieces.iter().map(|piece| piece.as_bytes()).collect::<Vec<_>>());
    let times = Times::from(&record);
    assert_eq!((times.ttft_ns(), times.tpot_ns()), (Some(3_000.0), Some(1_000.0)));
}

#[test]
fn usage_is_found_wherever_it_stands() {
    let piece = chat("{\"content\":\"a\"}");
    let usage = "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}";
    for last in [
        format!("data: {{\"choices\":[],{usage}}}\n\n"),
        format!("data: {{\"choices\":null,{usage}}}\n\n"),
        format!("data: {{{usage}}}\n\n"),
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}],{usage}}}\n\n"),
        format!("data: {{\"choices\":[],\"usage\":null,\"x_gateway\":{{\"id\":\"1\",{usage}}}}}\n\n"),
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\",{usage}}}]}}\n\n"),
    ] {
        let (record, outcome) = whole(&(piece.clone() + &last + DONE));
        assert_eq!((record.input_tokens, record.output_tokens, outcome), (Some(7), Some(3), Ok(())), "{last}");
        assert_eq!((record.chunk_ns.len(), record.chunk_tokens.len()), (1, 0));
    }
    let (record, outcome) = whole(&(piece + DONE));
    assert_eq!((record.output_tokens, outcome), (None, Ok(())), "a server may never send it");
}

/// Some servers send the names of another API, too, with counts of none.
#[test]
fn cached_tokens_of_the_prompt_are_a_part_of_it() {
    let of = |usage: &str| {
        let usage = format!("data: {{\"choices\":[],\"usage\":{{{usage}}}}}\n\n");
        let (record, outcome) = whole(&(chat("{\"content\":\"a\"}") + &usage + DONE));
        assert_eq!(outcome, Ok(()));
        (record.input_tokens, record.cached_tokens, record.output_tokens)
    };
    let chat = "\"prompt_tokens\":10,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":6}";
    assert_eq!(of(chat), (Some(10), Some(6), Some(3)));
    let both = format!("{chat},\"input_tokens\":0,\"output_tokens\":0,\"input_tokens_details\":null");
    assert_eq!(of(&both), (Some(10), Some(6), Some(3)));
    assert_eq!(of("\"prompt_tokens\":10,\"prompt_tokens_details\":null"), (Some(10), None, None));
    for name in ["cached_tokens", "prompt_cache_hit_tokens"] {
        assert_eq!(of(&format!("\"prompt_tokens\":10,\"{name}\":6")), (Some(10), Some(6), None), "{name}");
    }
}

/// As Anthropic's server sends them, an event a read.
const MESSAGES: [&str; 10] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"content\":[],\"stop_reason\":null,\
     \"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":1,\"cache_read_input_tokens\":6,\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"x\"}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\\u00e9\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"output_tokens\":8}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
];

/// As OpenAI's server sends them.
const RESPONSES: [&str; 7] = [
    "data: {\"type\":\"response.created\",\"response\":{\"error\":null,\"incomplete_details\":null,\"usage\":null}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"hm\"}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\u00e9\"}\n\n",
    "data: {\"type\":\"response.output_text.done\",\"text\":\"\\u00e9\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"content\":[{\"text\":\"\\u00e9\"}]}}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\"}\n\n",
    "data: {\"type\":\"response.incomplete\",\"response\":{\"error\":null,\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\
     \"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":6},\"output_tokens\":8,\"total_tokens\":18}}}\n\n",
];

#[test]
fn events_of_other_apis_are_read_alike() {
    for (api, events, times_ns, text_bytes) in [
        (Api::Messages, &MESSAGES[..], &[3_000, 6_000, 7_000, 8_000][..], 7),
        (Api::Responses, &RESPONSES[..], &[2_000, 3_000, 6_000][..], 6),
    ] {
        let pieces: Vec<&[u8]> = events.iter().map(|event| event.as_bytes()).collect();
        let (record, outcome) = reading(api, &pieces);
        assert_eq!((outcome, &record.chunk_ns[..], record.text_bytes), (Ok(()), times_ns, Some(text_bytes)), "{api:?}");
        assert_eq!(record.first_answer_ns, Some(times_ns[1]), "{api:?}");
        let counts = (record.input_tokens, record.cached_tokens, record.output_tokens);
        assert_eq!(counts, (Some(10), Some(6), Some(8)), "{api:?}");
        let cut = reading(api, &pieces[..pieces.len() - 2]).1;
        assert_eq!(cut, Err(FailureClass::CutStream), "{api:?}");
        let mut completion = Completion::new(api, 8);
        completion.read(1, events.concat().as_bytes(), &mut RequestRecord::default()).expect("sound events");
        assert_eq!((completion.is_done(), completion.limit_tokens()), (true, Some(8)), "{api:?}");
    }
}

/// Heartbeats can be empty objects, and counts can come by themselves.
#[test]
fn an_event_that_says_nothing_of_the_answer_changes_nothing() {
    let counts = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n";
    for (api, events, pieces) in [(Api::Messages, &MESSAGES[..], 4), (Api::Responses, &RESPONSES[..], 3)] {
        for nothing in ["event: ping\ndata: {}\n\n", counts] {
            let mut events = events.to_vec();
            events.insert(3, nothing);
            let (record, outcome) = reading(api, &[events.concat().as_bytes()]);
            let counted = (record.chunk_ns.len(), record.output_tokens);
            assert_eq!((counted, outcome), ((pieces, Some(8)), Ok(())), "{api:?} {nothing}");
        }
    }
}

#[test]
fn a_text_that_comes_only_whole_is_a_piece() {
    let name = "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"\"}}\n\n";
    let (record, _) = reading(Api::Responses, &[name.as_bytes()]);
    assert_eq!(record.text_bytes, Some(1), "so does the name of a tool");
    let whole = "data: {\"type\":\"response.output_text.done\",\"text\":\"a b\"}\n\n";
    let last = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    let (record, outcome) = reading(Api::Responses, &[whole.as_bytes(), whole.as_bytes(), last.as_bytes()]);
    assert_eq!((&record.chunk_ns[..], record.text_bytes, outcome), (&[1_000][..], Some(3), Ok(())));
}

#[test]
fn errors_of_other_apis_are_failures_with_the_servers_words() {
    let completed = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    for (api, event, class) in [
        (Api::Messages, "event: error\ndata: {\"error\":{\"message\":\"SECRET\"}}\n\n", FailureClass::ErrorEvent),
        (Api::Messages, "data: {\"type\":\"error\",\"error\":{\"message\":\"SECRET\"}}\n\n", FailureClass::ErrorEvent),
        (Api::Messages, "data: {\"error\":{\"message\":\"SECRET\"}}\n\n", FailureClass::ErrorEvent),
        (Api::Chat, "data: [{\"error\":{\"code\":429,\"message\":\"SECRET\"}}]\n\n", FailureClass::Status429),
        (Api::Responses, "data: {\"type\":\"error\",\"message\":\"SECRET\"}\n\n", FailureClass::ErrorEvent),
        (
            Api::Responses,
            "data: {\"type\":\"response.failed\",\"error\":{\"message\":\"SECRET\"}}\n\n",
            FailureClass::ErrorEvent,
        ),
        (
            Api::Responses,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"SECRET\"}}}\n\n",
            FailureClass::ErrorEvent,
        ),
    ] {
        let mut completion = Completion::new(api, 8);
        let failure = completion.read(1, event.as_bytes(), &mut RequestRecord::default()).expect_err(event);
        assert_eq!((failure.class, completion.words()), (class, "SECRET"), "{event}");
        assert_eq!(reading(api, &[event.as_bytes()]).1, Err(class), "its sentence repeats nothing");
    }
    assert_eq!(reading(Api::Responses, &[completed.as_bytes()]).1, Err(FailureClass::WrongLength), "no output");
}

#[test]
fn a_server_that_counts_along_gives_the_tokens_of_each_piece() {
    let piece = |tokens: u32| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}],\"usage\":{{\"completion_tokens\":{tokens}}}}}\n\n"
        )
    };
    let (record, outcome) = whole(&(piece(2) + &piece(3) + &piece(6) + DONE));
    assert_eq!((record.chunk_tokens, record.output_tokens, outcome), (vec![2, 1, 3], Some(6), Ok(())));
    let (record, _) = whole(&(piece(1) + &piece(2) + DONE));
    assert!(record.chunk_tokens.is_empty(), "one each is what an empty list says");
    let (record, _) = whole(&(piece(2) + &chat("{\"content\":\"a\"}") + &piece(5) + DONE));
    assert!(record.chunk_tokens.is_empty(), "counts with gaps are none");
    let (record, outcome) = whole(&(piece(2) + &piece(2)));
    assert_eq!((record.chunk_tokens.len(), outcome), (0, Err(FailureClass::CutStream)), "nor where it is cut then");
}

/// What the server says of its tokens is taken where it can be true.
#[test]
fn a_count_that_cannot_be_the_answers_is_none() {
    let piece = chat("{\"content\":\"a\"}");
    let counted = |tokens: u32, choices: &str| {
        format!("data: {{\"choices\":{choices},\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{tokens}}}}}\n\n")
    };
    let (record, outcome) = whole(&(piece.clone() + &counted(0, "[]") + DONE));
    assert_eq!((record.input_tokens, record.output_tokens, record.tokens(), outcome), (Some(7), None, 1, Ok(())));
    let (record, _) = whole(&(piece.clone() + &counted(3, "[]") + &counted(0, "[]") + DONE));
    assert_eq!((record.input_tokens, record.output_tokens), (Some(7), Some(3)), "nor is one behind");
    for (count, tokens) in [("-35", None), ("3.0", Some(3)), ("\"3\"", Some(3))] {
        let usage = format!("data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{count}}}}}\n\n");
        let (record, outcome) = whole(&(piece.clone() + &usage + DONE));
        assert_eq!((record.output_tokens, outcome), (tokens, Ok(())), "{count}");
    }
    let first = counted(1, "[{\"delta\":{\"content\":\"a\"}}]");
    let (record, outcome) = whole(&(first + &piece + &piece + DONE));
    assert_eq!((record.output_tokens, record.tokens(), outcome), (None, 3, Ok(())), "it counted the first piece");
}

/// A server that thinks for itself counts tokens that were never sent: the time of each token is that of those that were.
#[test]
fn reasoning_that_is_counted_and_not_sent_is_apart() {
    let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7,\"completion_tokens_details\":{\"reasoning_tokens\":5}}}\n\n";
    let (answer, thought) = (chat("{\"content\":\"a\"}"), chat("{\"reasoning\":\"b\"}"));
    let (record, outcome) = read(&[answer.as_bytes(), answer.as_bytes(), usage.as_bytes(), DONE.as_bytes()]);
    assert_eq!((record.tokens(), record.sent_tokens(), outcome), (7, 2, Ok(())));
    assert_eq!(Times::from(&record).tpot_ns(), Some(1_000.0));
    let (record, _) = whole(&(thought.clone() + &answer + &answer + usage + DONE));
    assert_eq!((record.tokens(), record.sent_tokens()), (7, 3), "a summary of it");
    let more = thought.repeat(4) + &answer;
    let (record, _) = read(&[more.as_bytes(), answer.as_bytes(), usage.as_bytes(), DONE.as_bytes()]);
    assert_eq!((record.tokens(), record.sent_tokens()), (7, 7), "it was sent");
    let (record, _) = whole(&(answer.repeat(6) + usage + DONE));
    assert_eq!((record.tokens(), record.sent_tokens()), (7, 7), "it is in the answer's pieces");
    let (record, _) = whole(&(answer.repeat(3) + usage + DONE));
    assert_eq!((record.tokens(), record.sent_tokens()), (7, 2), "one piece more than tokens is no reasoning");
    for aloud in ["{\"content\":\"<think>b c d\"}", "{\"content\":\"b c d</think>\"}"] {
        let (record, _) = whole(&(chat(aloud) + &answer + usage + DONE));
        assert_eq!((record.tokens(), record.sent_tokens()), (7, 7), "it is in the answer, several tokens a piece");
    }
}

/// Some servers count the answer alone, and say by the total that its reasoning comes on top.
#[test]
fn reasoning_beside_the_count_of_the_answer_is_added() {
    let (answer, thought) = (chat("{\"content\":\"a\"}"), chat("{\"reasoning_content\":\"b\"}"));
    let of = |total: u64, thoughts: usize| {
        let usage = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":8,\"total_tokens\":{total},\
             \"completion_tokens_details\":{{\"reasoning_tokens\":20}}}}}}\n\n"
        );
        let (record, outcome) = whole(&(thought.repeat(thoughts) + &answer.repeat(8) + &usage + DONE));
        assert_eq!(outcome, Ok(()), "the limit of 8 is the answer's");
        (record.tokens(), record.sent_tokens())
    };
    assert_eq!(of(35, 20), (28, 28));
    assert_eq!(of(35, 0), (28, 8), "it was not sent");
    assert_eq!(of(15, 0).0, 8, "it is in the count");
}

/// A receipt with such a number is read by nobody, and all other requests are in it, too.
#[test]
fn more_tokens_than_there_can_be_are_no_count() {
    for count in [
        "\"prompt_tokens\":9223372036854775808",
        "\"completion_tokens\":1000000000000001",
        "\"total_tokens\":1000000000000002,\"completion_tokens_details\":{\"reasoning_tokens\":1000000000000000}",
    ] {
        let usage = format!("data: {{\"choices\":[],\"usage\":{{{count}}}}}\n\n");
        let (record, outcome) = whole(&(chat("{\"content\":\"a\"}") + &usage + DONE));
        let counted = (record.input_tokens, record.output_tokens, record.unsent_tokens);
        assert_eq!((counted, outcome), ((None, None, None), Ok(())), "{count}");
    }
}

#[test]
fn an_answer_has_an_end() {
    let piece = chat("{\"content\":\"a\"}");
    let reason = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    assert_eq!(whole(&piece).1, Err(FailureClass::CutStream));
    assert_eq!(whole(&(piece.clone() + DONE)).1, Ok(()));
    assert_eq!(whole(&(piece.clone() + reason)).1, Ok(()), "a finish reason is one too");
    assert_eq!(whole(&(piece.clone() + "data: [DONE]")).1, Ok(()), "the end of its last line may be missing");
    for none in ["", "null"] {
        let none = reason.replace("length", none);
        assert_eq!(whole(&(piece.clone() + &none)).1, Err(FailureClass::CutStream), "an empty one is none");
    }
    for whole_answer in ["stop", "eos_token", "end_turn", "pause_turn", "tool_calls", "COMPLETE", "MAX_TOKENS"] {
        assert_eq!(whole(&(piece.clone() + &reason.replace("length", whole_answer))).1, Ok(()), "{whole_answer}");
    }
    for cut in ["abort", "insufficient_system_resource", "content_filter"] {
        let cut = reason.replace("length", cut) + DONE;
        assert_eq!(whole(&(piece.clone() + &cut)).1, Err(FailureClass::CutStream), "{cut}");
        assert_eq!(whole(&(piece.repeat(8) + &cut)).1, Ok(()), "all that was asked for came: {cut}");
    }
    assert_eq!(whole(&(piece + "data: [DON")).1, Err(FailureClass::CutStream));
    assert_eq!(whole(DONE).1, Err(FailureClass::WrongLength), "an answer without output is none");
}

#[test]
fn errors_after_status_200_are_failures() {
    for (text, class) in [
        ("data: {\"error\":{\"message\":\"SECRET\",\"code\":503}}\n\n", FailureClass::Status5xx),
        ("data: {\"error\":{\"message\":\"SECRET\",\"code\":429}}\n\n", FailureClass::Status429),
        ("data: {\"error\":{\"message\":\"SECRET\",\"code\":\"bad\"}}\n\n", FailureClass::ErrorEvent),
        ("data: {\"error\":\"SECRET\"}\n\n", FailureClass::ErrorEvent),
        ("event: error\ndata: SECRET\n\n", FailureClass::ErrorEvent),
        ("data: SECRET\n\n", FailureClass::ErrorEvent),
        ("{\"error\":{\"message\":\"SECRET\"}}", FailureClass::ErrorEvent),
        ("data: {\"choices\":[{\"delta\":{\"content\":\n\n", FailureClass::MalformedStream),
        ("data: {\"choices\":3}\n\n", FailureClass::MalformedStream),
    ] {
        assert_eq!(whole(text).1, Err(class), "{text}");
    }
    assert_eq!(whole(&(chat("{\"content\":\"a\"}").replace("\"id\":\"1\"", "\"error\":null") + DONE)).1, Ok(()));
}

/// Some servers count the beginning of a sequence, its end, or both.
#[test]
fn more_than_was_asked_for_is_the_wrong_length() {
    let outcome = |tokens: u32, reason: &str, exact: bool| {
        let last = format!(
            "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}],\"usage\":{{\"completion_tokens\":{tokens}}}}}\n\n"
        );
        let mut record = RequestRecord::default();
        let mut completion = Completion::new(Api::Chat, 8);
        let text = chat("{\"content\":\"a\"}") + &last + DONE;
        completion.read(1, text.as_bytes(), &mut record).expect("sound events");
        completion.finish(1, exact, &mut record).map_err(|failure| failure.class)
    };
    for (tokens, reason, exact, is_whole) in [
        (9, "length", true, true),
        (10, "length", true, true),
        (11, "length", true, false),
        (9, "stop", false, true),
        (9, "stop", true, false),
        (11, "stop", false, false),
    ] {
        let expected = if is_whole { Ok(()) } else { Err(FailureClass::WrongLength) };
        assert_eq!(outcome(tokens, reason, exact), expected, "{tokens} {reason} {exact}");
    }
    let endless = chat("{\"content\":\"a\"}").repeat(10_000);
    assert_eq!(whole(&endless).1, Err(FailureClass::WrongLength), "a stream without an end is ended");
}

/// A server that was asked for answers of full length, and sends no usage.
#[test]
fn an_answer_that_the_model_ended_is_too_short_where_its_full_length_was_asked_for() {
    let end =
        |reason: &str| format!("data: {{\"choices\":[{{\"text\":\"\",\"finish_reason\":\"{reason}\"}}]}}\n\n{DONE}");
    let outcome = |pieces: usize, reason: &str, exact: bool| {
        let mut record = RequestRecord::default();
        let mut completion = Completion::new(Api::Chat, 8);
        let text = chat("{\"content\":\"a\"}").repeat(pieces) + &end(reason);
        completion.read(1, text.as_bytes(), &mut record).expect("sound events");
        completion.finish(1, exact, &mut record).map_err(|failure| failure.class)
    };
    assert_eq!(outcome(3, "stop", true), Err(FailureClass::WrongLength));
    assert_eq!(outcome(3, "stop", false), Ok(()));
    assert_eq!(outcome(3, "length", true), Ok(()), "a piece can hold several tokens");
    assert_eq!(outcome(8, "stop", true), Ok(()));
}

#[test]
fn an_endless_stream_of_comments_is_ended() {
    let comments = ": ping\n".repeat(10_000);
    let mut record = RequestRecord::default();
    let mut completion = Completion::new(Api::Chat, 8);
    let read = (0..10_000).map_while(|_| completion.read(1, comments.as_bytes(), &mut record).ok()).count();
    assert!(read < 200, "{read} reads of {} bytes", comments.len());
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut bytes = chat("{\"content\":\"a\"}").into_bytes();
    let place = bytes.windows(3).position(|three| three == b"\"a\"").expect("a text") + 1;
    bytes[place] = 0xff;
    assert_eq!(read(&[&bytes]).1, Err(FailureClass::MalformedStream));
}

proptest! {
    #[test]
    fn tokens_are_the_same_however_the_bytes_are_split(
        tokens in prop::collection::vec("[a-zé日\u{1f600}\"\\\\]{1,4}", 1..8),
        crlf in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let mut text = String::new();
        for token in &tokens {
            text += &chat(&serde_json::json!({ "content": token }).to_string());
        }
        text += DONE;
        if crlf {
            text = text.replace('\n', "\r\n");
        }
        let bytes = text.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (split, outcome) = read(&pieces);
        prop_assert_eq!(outcome, Ok(()));
        prop_assert_eq!(split.chunk_ns.len(), tokens.len());
        prop_assert!(split.chunk_ns.is_sorted());
        prop_assert_eq!(split.output_sha256, whole(&text).0.output_sha256);
    }
}
