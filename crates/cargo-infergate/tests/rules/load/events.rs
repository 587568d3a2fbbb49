//! The event-stream parser: however the bytes are split, the events are the same.

use infergate_core::load::Failure;
use infergate_load::api::events::{Event, Events, MAX_EVENT_BYTES};
use proptest::prelude::*;

type Found = Vec<(Vec<u8>, bool)>;

/// The events of `pieces`, and whether one was too large.
fn parse(pieces: &[&[u8]]) -> (Found, Result<(), Failure>) {
    let mut events = Events::default();
    let mut found = Found::new();
    let mut keep = |event: Event<'_>| {
        found.push((event.data.to_vec(), event.is_error));
        Ok::<(), Failure>(())
    };
    let mut outcome = pieces.iter().try_for_each(|piece| events.push(piece, &mut keep));
    if outcome.is_ok() {
        outcome = events.finish(&mut keep);
    }
    (found, outcome)
}

fn data(text: &str) -> Vec<String> {
    let (found, outcome) = parse(&[text.as_bytes()]);
    assert_eq!(outcome, Ok(()));
    found.into_iter().map(|(data, _)| String::from_utf8(data).expect("UTF-8")).collect()
}

#[test]
fn line_ends_spaces_and_comments() {
    for text in [
        "data: a\n\ndata: b\n\n",
        "data:a\n\ndata:b\n\n",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        "data: a\r\rdata: b\r\r",
        "data: a\n\r\ndata: b\r\n\n",
        ": ping\n\ndata: a\n\n\n\n: ping\ndata: b\n\n",
        "\u{feff}data: a\n\nid: 3\nretry: 5\ndata: b\nunknown\n\n",
        "data: a\n\ndata: b\n",
    ] {
        assert_eq!(data(text), ["a", "b"], "{text:?}");
    }
}

#[test]
fn several_lines_of_one_event_are_joined() {
    assert_eq!(data("data: {\ndata:  \"a\": 1\ndata: }\n\n"), ["{\n \"a\": 1\n}"]);
    assert_eq!(data("data\ndata\n\n"), ["\n"]);
}

#[test]
fn the_end_of_a_stream_ends_its_last_line() {
    assert_eq!(data("data: a\n\ndata: b"), ["a", "b"]);
    assert_eq!(data("data: a\n\ndata: b\ndata: c"), ["a", "b\nc"]);
}

#[test]
fn an_error_event_is_one_even_without_data() {
    let (found, _) =
        parse(&[b"event: error\ndata: {}\n\nevent: message\ndata: a\n\nevent: error\n\nerror: {\"code\":500}\n\n"]);
    let code = b"{\"code\":500}".to_vec();
    assert_eq!(found, [(b"{}".to_vec(), true), (b"a".to_vec(), false), (b"".to_vec(), true), (code, true)]);
}

#[test]
fn an_endless_event_is_refused_before_it_is_kept() {
    let piece = vec![b'x'; 64 << 10];
    let mut events = Events::default();
    let mut pushed = 0;
    let mut push = |bytes: &[u8]| events.push(bytes, |_| Ok::<(), Failure>(()));
    assert_eq!(push(b"data: "), Ok(()));
    while push(&piece).is_ok() {
        pushed += piece.len();
        assert!(pushed <= MAX_EVENT_BYTES, "{pushed} bytes were kept");
    }
    // As many short lines are no better.
    let mut events = Events::default();
    let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
    let kept = (0..1_000).take_while(|_| events.push(&line, |_| Ok::<(), Failure>(())).is_ok()).count();
    assert!(kept * piece.len() <= MAX_EVENT_BYTES, "{kept} lines");
}

/// A stream, and the texts in it.
fn streams() -> impl Strategy<Value = (Vec<u8>, Vec<String>)> {
    let end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let text = "[^\r\n]{0,12}";
    let event = (text, any::<bool>(), any::<bool>());
    (end, prop::collection::vec(event, 0..8)).prop_map(|(end, events)| {
        let mut stream = String::new();
        let mut texts = Vec::new();
        for (text, space, comment) in events {
            if comment {
                stream += &format!(": {text}{end}");
            }
            // One space belongs to the format, so a text that begins with one needs two.
            let space = if space || text.starts_with(' ') { " " } else { "" };
            stream += &format!("data:{space}{text}{end}{end}");
            texts.push(text);
        }
        (stream.into_bytes(), texts)
    })
}

proptest! {
    #[test]
    fn every_split_gives_the_same_events((stream, texts) in streams(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let (found, outcome) = parse(&pieces);
        prop_assert_eq!(outcome, Ok(()));
        let found: Vec<String> = found.into_iter().map(|(data, _)| String::from_utf8(data).expect("whole characters")).collect();
        prop_assert_eq!(found, texts);
    }
}
