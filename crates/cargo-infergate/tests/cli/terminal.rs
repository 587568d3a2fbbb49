//! What stands on a terminal while a gate measures, seen through a pseudo-terminal.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::openpty;

use crate::paired::fakes;
use crate::sandbox::Sandbox;

/// Runs `process` with a terminal as its stderr; gives its exit code and everything written there.
fn on_a_terminal(mut process: Command) -> (Option<i32>, String) {
    let pty = openpty(None, None).expect("a pseudo-terminal");
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(pty.slave));
    process.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = process.spawn().expect("starts");
    // The last copy of the terminal's other end is the child's: reading ends with it.
    drop(process);
    let mut written = Vec::new();
    let mut terminal = File::from(pty.master);
    let mut buffer = [0; 4096];
    // Linux ends with an error once nobody is at the other end.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        written.extend_from_slice(&buffer[..count]);
    }
    (child.wait().expect("ends").code(), String::from_utf8_lossy(&written).into_owned())
}

#[test]
fn the_progress_line_is_wiped_at_the_end() {
    let (_, seen) = on_a_terminal(fakes(&Sandbox::new(), "fake", "fake", "prefill/p8,decode/p8"));
    let last = seen.trim_end().rsplit('\n').next().unwrap_or_default();
    assert!(last.contains("receipt: "), "{last:?}");
    assert!(last.rsplit("\u{1b}[2K").next().is_some_and(|rest| !rest.contains("block")), "{last:?}");
}
