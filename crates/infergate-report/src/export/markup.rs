//! Words as Markdown that GitHub shows as they are. Whatever stands in a receipt may be written by someone who means harm: it
//! becomes no link, no mention, no picture, no HTML and no table of its own.

use infergate_core::printable::{printable, printable_within};

use crate::model::{Cell, MAX_WORD_CHARS, Row, Table};

/// A sentence at the start of a line, where signs and numbers would begin a list or a heading.
pub fn prose(words: &str) -> String {
    let text = inline(words, false);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = &text[digits..];
    if digits > 0 && after.starts_with(['.', ')']) {
        return format!("{}\\{after}", &text[..digits]);
    }
    if text.starts_with(['-', '+', '=']) { format!("\\{text}") } else { text }
}

/// A part of a line. What stands between backticks is code; characters that mean something in Markdown are escaped where they would.
pub fn inline(words: &str, in_table: bool) -> String {
    let part = |(is_code, text)| if is_code { code(text, in_table) } else { escaped(text) };
    spans(&printable(words)).into_iter().map(part).collect()
}

/// The parts of a text, and whether each stands between backticks; one part where these are not in pairs.
pub fn spans(text: &str) -> Vec<(bool, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return vec![(false, text)];
    }
    parts.into_iter().enumerate().map(|(at, part)| (at % 2 == 1, part)).collect()
}

fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    let mut before = None;
    for (at, c) in words.char_indices() {
        let after = words[at + c.len_utf8()..].chars().next();
        match c {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => text.extend(['\\', c]),
            // Inside a word it means nothing, and names of metrics stay readable.
            '_' if is_word(before) && is_word(after) => text.push(c),
            '_' => text.push_str("\\_"),
            // Addresses, which would become links: http://, www.
            ':' if after == Some('/') => text.push_str("\\:"),
            // Where somebody prints the page, the log of a CI obeys a line that begins so.
            ':' if after == Some(':') && text.trim().is_empty() => text.push_str("\\:"),
            '.' if before.is_some_and(|c: char| c.eq_ignore_ascii_case(&'w')) => text.push_str("\\."),
            // Mentions and references notify people; a mark nobody sees keeps them words.
            '@' if !after.is_some_and(char::is_whitespace) => text.push_str("@\u{200b}"),
            '#' => text.push_str("\\#\u{200b}"),
            c => text.push(c),
        }
        before = Some(c);
    }
    text
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

/// A word of someone else's, as code: nothing in it means anything. In a table a bar would end the cell, so it is escaped.
pub fn code(word: &str, in_table: bool) -> String {
    let word = printable_within(word, MAX_WORD_CHARS);
    if word.trim().is_empty() {
        return String::new();
    }
    let longest = word.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let room = if word.starts_with('`') || word.ends_with('`') { " " } else { "" };
    let word = if in_table { word.replace('|', "\\|") } else { word.into_owned() };
    format!("{fence}{room}{word}{room}{fence}")
}

/// The titles of a table's columns, and the line below them.
pub fn heading(table: &Table) -> String {
    let titles: Vec<String> = table.columns.iter().map(|column| inline(&column.title, true)).collect();
    let sides = table.columns.iter().map(|column| if column.numeric { "---:" } else { "---" });
    format!("| {} |\n|{}|\n", titles.join(" | "), sides.collect::<Vec<_>>().join("|"))
}

/// A row of a table.
pub fn line(row: &Row) -> String {
    let cells = row.cells.iter().map(|cell| match cell {
        Cell::Foreign(word) => code(word, true),
        _ => inline(&cell.shown(), true),
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}
