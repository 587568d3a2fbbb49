//! Events that are JSON but for a slip of their server.

/// JSON in which escapes of half a character (`\ud83d`) without its other half are escapes of U+FFFD, as a text would show them: a server
/// that counts in UTF-16 can end a piece within a character.
pub fn mended(json: &[u8]) -> Vec<u8> {
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
