//! The worst file of each format, made and not guessed: every list of a sound file is filled with the smallest entries that the
//! format takes for one, and every list and map inside such an entry again. Whatever the file becomes, what is kept of it is no
//! more than it was charged with.

use std::collections::BTreeSet;

use infergate_core::json::most_bytes;
use infergate_core::receipt::RULES;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::hostile::peak;

/// One more than a power of two: a list that grows by doubling has room for nearly as many again.
const MANY: usize = 257;
/// What stands around the entries.
const AROUND_BYTES: u64 = 4 << 10;

/// Where a value is: the keys and numbers to it.
type Path = Vec<String>;

fn pointer(path: &[String]) -> String {
    path.iter().map(|part| format!("/{part}")).collect()
}

/// Every list and object in `value`, once for each place in the form: entries of a list are alike.
fn containers(value: &Value) -> Vec<Path> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut waiting = vec![(value, Path::new(), String::new())];
    while let Some((value, path, form)) = waiting.pop() {
        let mut go = |inside, key: String, shown: &str| {
            let path: Path = path.iter().cloned().chain([key]).collect();
            waiting.push((inside, path, format!("{form}/{shown}")));
        };
        match value {
            Value::Array(list) => list.iter().enumerate().for_each(|(at, inside)| go(inside, at.to_string(), "*")),
            Value::Object(object) => object.iter().for_each(|(key, inside)| go(inside, key.clone(), key)),
            _ => continue,
        }
        if seen.insert(form) {
            found.push(path);
        }
    }
    found
}

fn parses<T: DeserializeOwned>(value: &Value) -> bool {
    serde_json::from_str::<T>(&value.to_string()).is_ok()
}

/// Takes away of what lies below `place` whatever is not needed; `kept` stays.
fn shrink<T: DeserializeOwned>(document: &mut Value, place: &[String], kept: Option<&str>) {
    let all: Vec<Path> = match document.pointer(&pointer(place)) {
        Some(Value::Array(list)) => (0..list.len()).rev().map(|at| below(place, at.to_string())).collect(),
        Some(Value::Object(object)) => object.keys().map(|key| below(place, key.clone())).collect(),
        _ => return,
    };
    for path in all {
        let before = document.clone();
        remove(document, &path);
        let sound =
            |document: &Value| parses::<T>(document) && kept.is_none_or(|kept| document.pointer(kept).is_some());
        if sound(document) {
            continue;
        }
        *document = before.clone();
        shrink::<T>(document, &path, kept);
        for smaller in [json!(0), json!(""), json!([]), json!({})] {
            let before = document.clone();
            if let Some(value) = document.pointer_mut(&pointer(&path)) {
                *value = smaller;
            }
            if sound(document) {
                break;
            }
            *document = before;
        }
    }
}

fn below(place: &[String], key: String) -> Path {
    place.iter().cloned().chain([key]).collect()
}

fn remove(document: &mut Value, path: &[String]) {
    let Some((last, folder)) = path.split_last() else { return };
    match document.pointer_mut(&pointer(folder)) {
        Some(Value::Array(list)) => drop(last.parse().map(|at: usize| list.remove(at))),
        Some(Value::Object(object)) => drop(object.remove(last)),
        _ => {}
    }
}

/// Puts `count` of its first entry into the list at `place`, or as many short keys into the object.
fn fill(document: &mut Value, place: &str, count: usize) {
    match document.pointer_mut(place) {
        Some(Value::Array(list)) => {
            if let Some(first) = list.first().cloned() {
                *list = vec![first; count];
            }
        }
        Some(Value::Object(object)) => {
            let value = object.values().next().cloned().unwrap_or_else(|| json!(""));
            object.extend((0..count).map(|at| (format!("{at:x}"), value.clone())));
        }
        _ => {}
    }
}

/// The smallest values there are, in a field that no format has: of some objects serde keeps all fields until it knows their form.
const JUNK: [&str; 6] = ["{\"\":0}", "[]", "{}", "0", "\"\"", "[0]"];

/// Fails where junk in an object of `sound` takes more than it is charged with.
fn junk_within_charge<T: DeserializeOwned>(name: &str, sound: &Value) {
    for path in containers(sound) {
        for junk in JUNK {
            let junk: Value = serde_json::from_str(junk).expect("JSON");
            let mut document = sound.clone();
            let Some(Value::Object(object)) = document.pointer_mut(&pointer(&path)) else { break };
            object.insert("~".into(), vec![junk; MANY].into());
            if parses::<T>(&document) {
                assert_charged::<T>(&format!("{name} {} and junk", pointer(&path)), &document.to_string());
            }
        }
    }
}

/// Fails where a file of the form of `sound` takes more than it is charged with. Gives how many files were tried.
pub fn within_charge<T: DeserializeOwned>(name: &str, sound: &Value) -> usize {
    assert!(parses::<T>(sound), "{name}: the sound file is none");
    junk_within_charge::<T>(name, sound);
    let all = containers(sound);
    let mut tried = 0;
    for outer in &all {
        let is_list =
            sound.pointer(&pointer(outer)).is_some_and(|value| value.as_array().is_some_and(|list| !list.is_empty()));
        let entry = is_list.then(|| below(outer, "0".into()));
        let inner: Vec<Option<&Path>> = match &entry {
            Some(entry) => all.iter().filter(|path| path.starts_with(entry)).map(Some).chain([None]).collect(),
            None => vec![None],
        };
        for inner in inner {
            for count in [1, 5, 13] {
                let mut document = sound.clone();
                let kept = inner.map(|inner| pointer(inner));
                if let (Some(entry), Some(list)) = (&entry, document.pointer_mut(&pointer(outer))) {
                    list.as_array_mut().expect("a list").truncate(1);
                    if let Some(kept) = &kept {
                        keep_first(&mut document, kept);
                    }
                    // What is kept is its first entry as it is, and then as small as can be.
                    let first = kept.as_ref().map(|kept| first_of(&document, kept));
                    let needed = first.as_deref().or(kept.as_deref());
                    shrink::<T>(&mut document, entry, needed);
                    if let Some(kept) = &kept {
                        fill(&mut document, kept, count);
                    }
                }
                fill(&mut document, &pointer(outer), MANY);
                if parses::<T>(&document) {
                    assert_charged::<T>(&format!("{name} {} {kept:?} {count}", pointer(outer)), &document.to_string());
                    tried += 1;
                }
                if inner.is_none() {
                    break;
                }
            }
        }
    }
    tried
}

fn keep_first(document: &mut Value, place: &str) {
    if let Some(Value::Array(list)) = document.pointer_mut(place) {
        list.truncate(1);
    }
}

fn first_of(document: &Value, place: &str) -> String {
    match document.pointer(place) {
        Some(Value::Array(list)) if !list.is_empty() => format!("{place}/0"),
        _ => place.to_owned(),
    }
}

fn assert_charged<T: DeserializeOwned>(name: &str, text: &str) {
    let charged = most_bytes(text, RULES).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (parsed, most) = peak(|| serde_json::from_str::<T>(text));
    assert!(parsed.is_ok(), "{name}");
    let long = text.len();
    assert!(most <= charged + AROUND_BYTES, "{name}: {most} bytes were taken and {charged} charged of {long}");
}
