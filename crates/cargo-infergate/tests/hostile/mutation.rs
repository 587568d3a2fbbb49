//! Changes of a sound file that a person or a program might make, and worse ones.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Number, Value, json};

/// What a terminal would obey, if it got there. No line of a report may begin with it.
pub const INJECTED: &str = "INJECTED";

/// A text that would write lines of its own, and more.
pub fn injection() -> String {
    format!("x\n{INJECTED}\r{INJECTED}\u{1b}[2J\u{9b}1A\u{202e}\u{2028}{INJECTED}")
}

/// One change, of the node at some place.
#[derive(Debug, Clone)]
pub enum Change {
    Set(Value),
    Drop,
    Repeat(usize),
    Swap,
    Text(Index, u8),
    TwiceTheKey,
}

/// One to three changes, each at some place.
pub fn changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    prop::collection::vec((any::<Index>(), change()), 1..4)
}

fn change() -> impl Strategy<Value = Change> {
    let values = vec![
        json!(0),
        json!(1),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1_000_000_000_000_000_u64),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(0.1),
        json!(null),
        json!(true),
        json!([]),
        json!({}),
        json!(""),
        json!(injection()),
        json!("x".repeat(5_000)),
        json!("generate/p8-o18446744073709551615"),
        json!("prefill/p18446744073709551615"),
        json!(["decode/p8", 1, null]),
        json!([[[[[[[[1]]]]]]]]),
    ];
    prop_oneof![
        8 => prop::sample::select(values).prop_map(Change::Set),
        2 => Just(Change::Drop),
        2 => (2usize..60).prop_map(Change::Repeat),
        1 => Just(Change::Swap),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Text(at, byte)),
        1 => Just(Change::TwiceTheKey),
    ]
}

/// `value` after `changes`, as the bytes of a file.
pub fn changed(mut value: Value, changes: &[(Index, Change)]) -> Vec<u8> {
    for (at, change) in changes {
        let nodes = count(&value);
        edit(&mut value, &mut at.index(nodes), change);
    }
    let mut bytes = value.to_string().into_bytes();
    for (at, change) in changes {
        match change {
            Change::Text(place, byte) => {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            Change::TwiceTheKey => {
                let objects: Vec<usize> = (0..bytes.len()).filter(|&place| bytes[place] == b'{').collect();
                if let Some(&place) = objects.get(at.index(objects.len().max(1))) {
                    bytes.splice(
                        place + 1..place + 1,
                        br#""schema":"infergate.receipt/1","id":"decode/p8","#.iter().copied(),
                    );
                }
            }
            _ => {}
        }
    }
    bytes
}

/// `value` once for each of its nodes, with an injection in its place.
pub fn injected_everywhere(value: &Value) -> impl Iterator<Item = Vec<u8>> {
    (0..count(value)).map(|node| {
        let mut value = value.clone();
        edit(&mut value, &mut node.clone(), &Change::Set(json!(injection())));
        value.to_string().into_bytes()
    })
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}

/// Applies `change` to the `left`-th node, in the order of the text; gives whether the node itself is to go.
fn edit(value: &mut Value, left: &mut usize, change: &Change) -> bool {
    if *left == 0 {
        *left = usize::MAX;
        return apply(value, change);
    }
    *left -= 1;
    match value {
        Value::Array(list) => {
            for at in 0..list.len() {
                if edit(&mut list[at], left, change) {
                    list.remove(at);
                }
                if *left == usize::MAX {
                    return false;
                }
            }
        }
        Value::Object(object) => {
            let keys: Vec<String> = object.keys().cloned().collect();
            for key in keys {
                if object.get_mut(&key).is_some_and(|field| edit(field, left, change)) {
                    object.remove(&key);
                }
                if *left == usize::MAX {
                    return false;
                }
            }
        }
        _ => {}
    }
    false
}

fn apply(value: &mut Value, change: &Change) -> bool {
    match change {
        Change::Set(new) => *value = new.clone(),
        Change::Drop => return true,
        Change::Repeat(times) => match value {
            Value::Array(list) => {
                let whole = list.clone();
                (1..*times).for_each(|_| list.extend(whole.iter().cloned()));
            }
            Value::Number(number) => *value = Value::Number(times_more(number, *times)),
            Value::String(text) => *text = text.repeat(*times),
            _ => {}
        },
        Change::Swap => match value {
            Value::Array(list) => list.reverse(),
            Value::Bool(on) => *on = !*on,
            _ => {}
        },
        Change::Text(..) | Change::TwiceTheKey => {}
    }
    false
}

fn times_more(number: &Number, times: usize) -> Number {
    let whole = number.as_u64().map(|whole| Number::from(whole.saturating_mul(times as u64)));
    whole.or_else(|| Number::from_f64(number.as_f64()? * times as f64)).unwrap_or_else(|| number.clone())
}
