//! A YAML file as a value of JSON, in which every scalar is its text.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The whole of a file, which has one document, no key twice and no aliases.
pub fn parse(name: &str, text: &str) -> Value {
    let events = Parser::new_from_str(text).map(|event| event.unwrap_or_else(|error| panic!("{name}: {error}")).0);
    let mut events = events.filter(|event| !matches!(event, Event::StreamStart | Event::DocumentStart(_)));
    let first = events.next().expect("a document");
    let document = value(first, &mut events);
    assert!(events.all(|event| matches!(event, Event::DocumentEnd | Event::StreamEnd)), "{name}: has two documents");
    document
}

fn value<'t>(first: Event<'t>, events: &mut dyn Iterator<Item = Event<'t>>) -> Value {
    match first {
        Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty() || text == "~" => Value::Null,
        Event::Scalar(text, ..) => Value::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut list = Vec::new();
            loop {
                match events.next().expect("the end of a list") {
                    Event::SequenceEnd => return Value::Array(list),
                    first => list.push(value(first, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                let key = match events.next().expect("the end of a mapping") {
                    Event::MappingEnd => return Value::Object(map),
                    Event::Scalar(key, ..) => key.into_owned(),
                    other => panic!("no key: {other:?}"),
                };
                let first = events.next().expect("a value");
                let before = map.insert(key.clone(), value(first, events));
                assert!(before.is_none(), "{key}: stands there twice");
            }
        }
        other => panic!("not known here: {other:?}"),
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The keys of a mapping and the texts that they have.
pub fn texts(mapping: &Value) -> BTreeMap<String, String> {
    mapping.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}
