//! A progress line with the time so far and the time left, on stderr, drawn between timed regions only; one line per stage if stderr is not
//! a terminal.

use std::cell::{Cell, RefCell};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use infergate_core::printable::printable;
use infergate_core::process::Group;
use infergate_core::progress::Progress;
use infergate_core::worker::WorkerError;

/// The longest pause between two checks whether a build has ended or is to stop. The first pause is a millisecond, each further one twice
/// as long.
const POLL: Duration = Duration::from_millis(20);
/// How long a process may take to end after SIGTERM: its watcher gives the processes that it ends five seconds.
const END: Duration = Duration::from_secs(8);

/// Set by Ctrl-C.
static CANCELLED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

pub struct Line {
    bar: ProgressBar,
    /// The stage that was printed last, if stderr is not a terminal.
    printed: RefCell<String>,
    /// When the count of the time left began, at which step, and the step that was shown last.
    counted: Cell<Option<(Instant, usize, usize)>>,
}

impl Default for Line {
    fn default() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {msg}") {
            bar.set_style(style);
        }
        if crate::output::is_quiet() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { bar, printed: RefCell::default(), counted: Cell::default() }
    }
}

impl Line {
    /// Shows a step. It is drawn at every step, though the bar would skip some: steps are minutes apart, or follow at once.
    pub fn show(&self, progress: &Progress) {
        if self.bar.is_hidden() {
            let stage = progress.label.split(':').next().unwrap_or_default();
            if self.printed.replace(stage.to_owned()) != stage {
                crate::output::status_escaped(stage);
            }
            return;
        }
        self.bar.set_length(progress.total_steps as u64);
        self.bar.set_position(progress.done_steps as u64);
        self.bar.set_message(format!("{}, {}", printable(&progress.label), self.time(progress)));
        self.bar.force_draw();
    }

    /// The time of the line. If steps begin again, the time left does, too.
    fn time(&self, progress: &Progress) -> String {
        let done = progress.done_steps;
        let (began, first, _) =
            self.counted.get().filter(|(_, _, last)| *last <= done).unwrap_or((Instant::now(), done, done));
        self.counted.set(Some((began, first, done)));
        time(began.elapsed(), done - first, progress.total_steps.saturating_sub(done))
    }

    /// Clears the line, runs `print`, and continues below its output, with a new estimate of the time left.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
        self.counted.set(None);
    }

    /// Clears the line for good: nothing is drawn any more.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// `1m 20s so far, up to 5m left`: as if steps to come took as long as those that are done.
fn time(so_far: Duration, done: usize, left: usize) -> String {
    let shown = |seconds| humantime::format_duration(Duration::from_secs(seconds));
    let passed = format!("{} so far", shown(so_far.as_secs()));
    if done == 0 || left == 0 {
        return passed;
    }
    let ahead = (so_far.as_secs_f64() * left as f64 / done as f64) as u64;
    // An estimate of minutes is not good to seconds.
    let ahead = if ahead < 120 { ahead } else { ahead.next_multiple_of(60) };
    format!("{passed}, up to {} left", shown(ahead))
}

/// From now on Ctrl-C ends the run, and what was measured is kept. A second Ctrl-C ends the process at once.
pub fn handle_ctrl_c() -> Result<()> {
    // A program that `nohup` started continues when the terminal is closed.
    // SAFETY: it sets how one signal is taken.
    let hangups = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    ctrlc::set_handler(move || {
        if is_cancelled() {
            std::process::exit(130);
        }
        // Printed first: once the flag is set the run may end before the line is out.
        crate::output::status("interrupted: keeping what was measured (again: stop at once)");
        CANCELLED.store(true, Ordering::Relaxed);
    })
    .context("Ctrl-C cannot be handled here")?;
    if hangups == libc::SIG_IGN {
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(())
}

/// The flag that Ctrl-C sets.
pub fn cancelled() -> &'static Arc<AtomicBool> {
    &CANCELLED
}

/// Whether Ctrl-C was pressed, or another signal asked this process to end.
pub fn is_cancelled() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}

/// # Errors
/// Once the user wants the run to end.
pub fn ensure_not_cancelled() -> Result<(), WorkerError> {
    if is_cancelled() { Err(WorkerError::by_user()) } else { Ok(()) }
}

/// Waits for a process that builds or runs something before a measurement. Ends it, with all that it started, once the run `is_cancelled`.
pub fn until_ended(process: &mut Group, is_cancelled: impl Fn() -> bool) -> io::Result<ExitStatus> {
    let mut pause = Duration::from_millis(1);
    while !process.has_ended() {
        if is_cancelled() {
            process.ask_to_end(END);
            break;
        }
        thread::sleep(pause);
        pause = POLL.min(pause * 2);
    }
    process.end()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::time;

    #[test]
    fn the_time_left_is_that_of_the_steps_so_far() {
        let shown = |so_far, done, left| time(Duration::from_secs(so_far), done, left);
        assert_eq!(shown(0, 0, 6), "0s so far");
        assert_eq!(shown(80, 2, 2), "1m 20s so far, up to 1m 20s left");
        assert_eq!(shown(80, 1, 39), "1m 20s so far, up to 52m left");
        assert_eq!(shown(80, 40, 0), "1m 20s so far");
    }
}
