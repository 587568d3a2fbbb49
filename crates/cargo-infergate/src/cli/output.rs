//! What goes to the terminal: results to stdout, words about them to stderr. Colours only where they are wanted.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use infergate::printable::{printable, printable_report};

use crate::receipt::Outcome;

/// As every text here is written.
const USUAL_NAME: &str = "cargo xtask";

static NAME: OnceLock<&str> = OnceLock::new();

/// A part of a report was not taken by a full disk.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// From now on every text names this program as it was started, `cargo infergate` in other repositories.
pub fn set_program_name(name: &'static str) {
    let _ = NAME.set(name);
}

/// `text` with this program's name as it was started.
pub fn named(text: &str) -> String {
    text.replace(USUAL_NAME, NAME.get().unwrap_or(&USUAL_NAME))
}

/// Prints a report to stdout. A closed pipe is not an error of ours; what a full disk does not take is said, and is no success.
pub fn report(text: &str) {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(named(&printable_report(text)).as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        IS_LOST.store(true, Ordering::Relaxed);
        self::error(
            &anyhow::Error::new(error).context("stdout: cannot be written, and what it should have said is lost"),
        );
    }
}

/// The exit code of a command whose own is `code`. One that fails fails by its own reason.
pub fn code(code: i32) -> i32 {
    let is_lost = IS_LOST.load(Ordering::Relaxed) && code == Outcome::Pass.exit_code();
    if is_lost { Outcome::Failed.exit_code() } else { code }
}

/// Says something about what is going on, to stderr.
pub fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", named(&printable_report(text)));
}

/// An error and its causes on one line.
pub fn error(error: &anyhow::Error) {
    say(&format!("\u{1b}[1;31merror:\u{1b}[0m {}", words(error)));
}

/// As [`say`], of what others have a word in: a path, a value of somebody's settings, a commit. Whatever that is, it stays one line
/// without colours, and no verdict of its own.
pub fn line(text: &str) {
    say(&printable(text));
}

/// An error that ends nothing: `what` comes of it.
pub fn say_why(what: &str, error: &anyhow::Error) {
    line(&format!("{what}: {}", words(error)));
}

fn words(error: &anyhow::Error) -> String {
    printable(&format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
