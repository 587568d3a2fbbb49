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

/// Prints an error and its causes, on one line of stderr.
pub fn print_error(error: &anyhow::Error) {
    eprintln!("error: {}", printable(&format!("{error:#}")));
}

/// The first `most` of `all`, and how many more there are: `a, b and 3 more`, or `a; b; and 3 more`.
pub fn first_of<T: AsRef<str>>(all: &[T], most: usize, separator: &str) -> String {
    let first: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    let more = all.len() - first.len();
    let rest = if more > 0 { format!("{}and {more} more", separator.trim_start_matches(',')) } else { String::new() };
    first.join(separator) + &rest
}

/// A text of this program's own making, with line ends and colours: those stay, and everything else that [`printable`]
/// replaces is replaced. The last wall before a terminal, and before the log of a CI, which obeys lines that begin with `::` and
/// words like `##[error]`: there one character is shown by its number.
pub fn printable_report(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        push_without_commands(&mut shown, &without_controls(line));
    }
    shown
}

/// `line` with its end and its colours, and no other control character.
fn without_controls(mut line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    while let Some(c) = line.chars().next() {
        let colour = colour_code(line);
        let (kept, rest) = line.split_at(colour.max(c.len_utf8()));
        if colour > 0 || c == '\n' {
            clean.push_str(kept)
        } else {
            push(&mut clean, c)
        }
        line = rest;
    }
    clean
}

/// Appends `line`, in which no CI finds a command: GitHub's `::error::` at its beginning or `##[error]` anywhere, Azure's `##vso[`,
/// TeamCity's `##teamcity[`.
fn push_without_commands(shown: &mut String, line: &str) {
    for (at, c) in line.char_indices() {
        let is_bracket = || c == '[' && line[..at].trim_end_matches(|c: char| c.is_ascii_alphabetic()).ends_with("##");
        if (c == ':' && line[..at].trim_start() == ":") || is_bracket() {
            push_number(shown, c);
        } else {
            shown.push(c);
        }
    }
}

/// `text` of another process on lines of its own: as [`printable_report`], without its line ends and colours.
pub fn printable_line(text: &str) -> String {
    // Characters are never more than bytes.
    printable_report(&printable_within(text, text.len()))
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
        c if is_control(c) => push_number(shown, c),
        c => shown.push(c),
    }
}

fn push_number(shown: &mut String, c: char) {
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
}

/// C0 and C1 controls, the characters that are not seen (direction marks, joiners, fillers, line and paragraph separators,
/// interlinear annotation, tags), and those that are none: XML takes no U+FFFE and U+FFFF, and no page should.
fn is_control(c: char) -> bool {
    c.is_control()
        || u32::from(c) & 0xfffe == 0xfffe
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
