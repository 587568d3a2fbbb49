//! Prints to the terminal: results to stdout, status lines to stderr, colours only if they are wanted. With `--quiet` only errors and the
//! verdict of a report are printed; with `--json -` stdout has JSON and nothing else.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use infergate_core::printable::{printable, printable_report};

use infergate_receipts::Outcome;

/// The program's name in every text here.
const USUAL_NAME: &str = "cargo xtask";

static NAME: OnceLock<&str> = OnceLock::new();

/// A part of a report, or a file, could not be written.
static WRITE_FAILED: AtomicBool = AtomicBool::new(false);

/// `--quiet`.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// `--json -`.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on `--quiet` holds, if it was given.
pub fn set_quiet(is_quiet: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
}

/// From now on `--json -` holds.
pub fn set_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Whether `path`, of a flag `--json`, stands for stdout.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether only errors and the result are wanted.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// From now on every text names this program as it was started, `cargo infergate` in other repositories.
pub fn set_program_name(name: &'static str) {
    let _ = NAME.set(name);
}

/// `text` with this program's name as it was started.
pub fn named(text: &str) -> String {
    text.replace(USUAL_NAME, NAME.get().unwrap_or(&USUAL_NAME))
}

/// Prints a report: to stdout, to stderr where stdout is for JSON, and nowhere with `--quiet`.
pub fn report(text: &str) {
    if is_quiet() {
        return;
    }
    if IS_JSON.load(Ordering::Relaxed) {
        let _ = anstream::stderr().write_all(shown(text).as_bytes());
    } else {
        document(text);
    }
}

/// As [`report`], for one whose last line is the decision: that line is printed with `--quiet`, too.
pub fn print_verdict(text: &str) {
    if !is_quiet() {
        return report(text);
    }
    let decision = text.lines().next_back().unwrap_or_default();
    if !IS_JSON.load(Ordering::Relaxed) {
        document(&format!("{decision}\n"));
    }
}

/// Prints the command's result to stdout, whatever the flags. A closed pipe is no error; if the disk is full, that is printed and the
/// command fails in the end.
pub fn document(text: &str) {
    print(&mut anstream::stdout(), &shown(text));
}

/// Prints JSON to stdout. Characters that a terminal, or the log of a CI, would obey are escaped; the JSON stays equal.
pub fn json(text: &str) {
    let mut safe = String::with_capacity(text.len());
    for c in text.replace("##", "\\u0023\\u0023").chars() {
        let letter = c.to_string();
        if c == '\n' || printable(&letter) == letter {
            safe.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe += &format!("\\u{unit:04x}"));
        }
    }
    print(&mut std::io::stdout(), &safe);
}

fn shown(text: &str) -> String {
    named(&printable_report(text))
}

fn print(stdout: &mut dyn Write, text: &str) {
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        write_failed(&anyhow::Error::new(error).context("stdout: cannot be written"));
    }
}

/// Prints why a requested file or report cannot be written. The command continues, and fails in the end.
pub fn write_failed(error: &anyhow::Error) {
    WRITE_FAILED.store(true, Ordering::Relaxed);
    self::error(error);
}

/// The exit code of a command whose own is `code`: a pass fails if something could not be written.
pub fn code(code: i32) -> i32 {
    let failed = WRITE_FAILED.load(Ordering::Relaxed) && code == Outcome::Pass.exit_code();
    if failed { Outcome::Failed.exit_code() } else { code }
}

/// Prints a status line to stderr; not with `--quiet`.
pub fn status(text: &str) {
    if !is_quiet() {
        eprint_always(text);
    }
}

/// As [`status`], also with `--quiet`.
pub fn eprint_always(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", shown(text));
}

/// An error and its causes on one line.
pub fn error(error: &anyhow::Error) {
    eprint_always(&format!("\u{1b}[1;31merror:\u{1b}[0m {}", error_line(error)));
}

/// As [`status`], for text from outside, such as a path, a value of settings, a commit: escaped to one line without colours, which cannot
/// look like a verdict.
pub fn status_escaped(text: &str) {
    status(&printable(text));
}

/// Prints an error that does not end the command, and `what` follows from it.
pub fn warn(what: &str, error: &anyhow::Error) {
    status_escaped(&format!("{what}: {}", error_line(error)));
}

/// An error and its causes on one line.
pub fn error_line(error: &anyhow::Error) -> String {
    printable(&format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
