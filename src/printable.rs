//! Text from elsewhere, made fit for a terminal: one line, and nothing that moves the cursor, colours, or turns the reading
//! direction. A model's name in somebody's receipt could otherwise write a verdict of its own on the screen.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters of one text that are shown; a terminal is no place for more.
const MAX_CHARS: usize = 2_000;

/// `text` on one line: white space of any kind becomes a space, any other control character shows as `\u{1b}`, and what
/// is too long is cut with an ellipsis.
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_within(text, MAX_CHARS)
}

/// As [`printable`], with at most `max_chars` characters of `text`.
pub fn printable_within(text: &str, max_chars: usize) -> Cow<'_, str> {
    let clean = |c: char| !is_control(c);
    // Bytes bound characters, and counting the characters of a long text takes longer.
    if text.len() <= max_chars && text.chars().all(clean) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len().min(4 * max_chars));
    let mut characters = text.chars();
    for c in characters.by_ref().take(max_chars) {
        push(&mut shown, c);
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// A text of this program's own making, with line ends and colours: those stay, and everything else that [`printable`]
/// replaces is replaced. The last wall before a terminal.
pub fn printable_report(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || !is_control(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = if c == '\n' { 1 } else { colour_code(rest) };
        match kept {
            0 => {
                push(&mut shown, c);
                rest = &rest[c.len_utf8()..];
            }
            kept => {
                shown.push_str(&rest[..kept]);
                rest = &rest[kept..];
            }
        }
    }
    Cow::Owned(shown)
}

/// Bytes of the colour code (`ESC [ digits and semicolons m`) that `text` begins with; 0 where it begins otherwise.
fn colour_code(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let parameters = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if parameters <= 32 && rest.as_bytes().get(parameters) == Some(&b'm') { 2 + parameters + 1 } else { 0 }
}

fn push(shown: &mut String, c: char) {
    match c {
        '\t' | '\n' | '\r' => shown.push(' '),
        c if is_control(c) => {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
        c => shown.push(c),
    }
}

/// C0 and C1 controls, and the characters that are not seen: direction marks, joiners, line and paragraph separators,
/// interlinear annotation and tags.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
