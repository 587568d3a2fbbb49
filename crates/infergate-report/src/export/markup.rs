//! Words as Markdown that GitHub shows as they are. Whatever stands in a receipt may be written by someone who means harm: it
//! becomes no link, no mention, no picture, no HTML and no table of its own.

use infergate_core::printable::{printable, printable_within};

use crate::model::{Cell, MAX_WORD_CHARS, Row, Table};

/// A sentence at the start of a line, where signs and numbers would begin a list or a heading.
pub fn prose(words: &str) -> String {
    let text = inline(words);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = &text[digits..];
    if digits > 0 && after.starts_with(['.', ')']) {
        return format!("{}\\{after}", &text[..digits]);
    }
    if text.starts_with(['-', '+', '=']) { format!("\\{text}") } else { text }
}

/// A part of a line. Characters that mean something in Markdown are escaped where they would.
pub fn inline(words: &str) -> String {
    let words = printable(words);
    let mut text = String::with_capacity(words.len());
    let mut before = None;
    for (at, c) in words.char_indices() {
        let rest = &words[at + c.len_utf8()..];
        let after = rest.chars().next();
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
            // Mentions and references notify people, and addresses of mail and names of pictures come alive; a mark nobody sees keeps
            // them words.
            '@' if !after.is_some_and(char::is_whitespace) => text.push_str("@\u{200b}"),
            '#' => text.push_str("\\#\u{200b}"),
            ':' if is_emoji(rest) => text.push_str(":\u{200b}"),
            c => text.push(c),
        }
        before = Some(c);
    }
    text
}

/// Whether what stands behind a colon makes `:name:` of it. `08:00:00` is a time.
fn is_emoji(rest: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+_-".contains(c);
    let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
    let is_number = name.len() <= 2 && name.bytes().all(|digit| digit.is_ascii_digit());
    rest[name.len()..].starts_with(':') && !is_number
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
    let titles: Vec<String> = table.columns.iter().map(|column| inline(&column.title)).collect();
    let sides = table.columns.iter().map(|column| if column.numeric { "---:" } else { "---" });
    format!("| {} |\n|{}|\n", titles.join(" | "), sides.collect::<Vec<_>>().join("|"))
}

/// A row of a table.
pub fn line(row: &Row) -> String {
    let cells = row.cells.iter().map(|cell| match cell {
        Cell::Foreign(word) => code(word, true),
        _ => inline(&cell.shown()),
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}
