//! What goes to the terminal: results to stdout, words about them to stderr. Colours only where they are wanted.

use std::io::Write;

/// Prints a report to stdout. A closed pipe is not an error of ours.
pub fn report(text: &str) {
    let _ = anstream::stdout().write_all(text.as_bytes());
}

/// Says something about what is going on, to stderr.
pub fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// An error and its causes on one line.
pub fn error(error: &anyhow::Error) {
    let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    say(&format!("\u{1b}[1;31merror:\u{1b}[0m {line}"));
}
