//! Cargo's stderr while it builds: shown as it comes, and kept for the reason of a failed build. Macros and build scripts write to it, too.

use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};

use infergate_core::relay::Relay;

use super::output;

/// As many lines are kept, and the last one.
const MOST_LINES: usize = 10_000;

pub struct CargoStderr {
    relay: Relay,
    lines: Arc<Mutex<Vec<String>>>,
}

impl CargoStderr {
    /// Reads it. If it `is_shown`, in cargo's colours.
    pub fn read(stderr: ChildStderr, is_shown: bool) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = lines.clone();
        let relay = Relay::start(stderr, move |line| {
            if is_shown {
                output::say(line);
            }
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(MOST_LINES);
            kept.push(anstream::adapter::strip_str(line).to_string());
        });
        Self { relay, lines }
    }

    /// All lines, once cargo has ended.
    pub fn lines(self) -> Vec<String> {
        self.relay.finish();
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
