//! Events that are JSON but for a slip of their server.

use serde_json::Value;

/// An event that can be read, of one that cannot: without halves of characters, and with counts that are numbers.
pub fn mended(json: &[u8]) -> Vec<u8> {
    let text = without_lone_halves(json);
    let Ok(mut event) = serde_json::from_slice(&text) else { return text };
    mend_counts(&mut event);
    event.to_string().into_bytes()
}

/// Some servers write counts of tokens as texts, or with a fraction of zero. A negative one is none.
fn mend_counts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                match number.filter(|_| name.ends_with("_tokens")) {
                    Some(number) if number < 0.0 => *value = Value::Null,
                    Some(number) if number.fract() == 0.0 => *value = (number as u64).into(),
                    _ => mend_counts(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mend_counts),
        _ => {}
    }
}

/// JSON in which escapes of half a character (`\ud83d`) without its other half are escapes of U+FFFD, as a text would show them: a server
/// that counts in UTF-16 can end a piece within a character.
fn without_lone_halves(json: &[u8]) -> Vec<u8> {
    /// The code that an escape of four digits at `at` says.
    fn code(json: &[u8], at: usize) -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
    let mut text = json.to_vec();
    let mut at = 0;
    while at < json.len() {
        at += match code(json, at) {
            Some(0xd800..=0xdbff) if matches!(code(json, at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                text[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            // An escaped backslash begins no escape.
            _ if json[at] == b'\\' => 2,
            _ => 1,
        };
    }
    text
}
