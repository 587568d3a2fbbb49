//! What goes wrong with a worker, told apart by what the caller does about it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::case::Case;
use crate::outcome::InvariantBroken;

/// The error of everything that asks a worker. Each text is one line.
#[derive(Debug)]
pub enum WorkerError {
    /// The worker's own answer that it cannot, in its words.
    Refused(String),
    /// The run breaks an invariant: no verdict can rest on it (exit 3).
    Invalid(String),
    /// The two cannot be compared: a verdict of its own (exit 4), not a failed run.
    NotComparable(String),
    /// The user ended the run, or Ctrl-C ended the worker: a terminal sends it to every process of the command.
    Interrupted(String),
    /// The worker is of no use any more: it could not be started, ended early, gave no answer in time, or one that is not in the protocol.
    Unusable(String),
    /// Something else than the worker failed.
    Failed(anyhow::Error),
}

impl WorkerError {
    /// What a run ends with that its user cancelled between two requests.
    pub fn by_user() -> Self {
        Self::Interrupted("the run: interrupted".into())
    }

    /// The same error with `who` in front: `head: ...`.
    #[must_use]
    pub fn of(mut self, who: &str) -> Self {
        if let Self::Failed(error) = self {
            return Self::Failed(error.context(who.to_owned()));
        }
        match &mut self {
            Self::Refused(text)
            | Self::Invalid(text)
            | Self::NotComparable(text)
            | Self::Interrupted(text)
            | Self::Unusable(text) => text.insert_str(0, &format!("{who}: ")),
            Self::Failed(_) => {}
        }
        self
    }

    /// The same error with the case in front, unless it names it already.
    #[must_use]
    pub fn about(self, case: Case) -> Self {
        let case = case.to_string();
        if self.to_string().contains(&case) { self } else { self.of(&case) }
    }

    /// The worker error inside `error`, where a command asks what became of its run.
    pub fn find(error: &anyhow::Error) -> Option<&Self> {
        error.downcast_ref()
    }
}

/// Ends what is under way when the user wants it.
///
/// # Errors
/// [`WorkerError::Interrupted`] once `cancelled` is set.
pub fn ensure_not(cancelled: &AtomicBool) -> Result<(), WorkerError> {
    if cancelled.load(Ordering::Relaxed) { Err(WorkerError::by_user()) } else { Ok(()) }
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text)
            | Self::Invalid(text)
            | Self::NotComparable(text)
            | Self::Interrupted(text)
            | Self::Unusable(text) => f.write_str(text),
            Self::Failed(error) => write!(f, "{error:#}"),
        }
    }
}

impl std::error::Error for WorkerError {}

impl From<anyhow::Error> for WorkerError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => match error.downcast::<InvariantBroken>() {
                Ok(broken) => Self::Invalid(broken.0),
                Err(error) => Self::Failed(error),
            },
        }
    }
}
