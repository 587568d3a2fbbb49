//! Many requests at once: when they start, when the run ends, which of them count, and what each of them did. An engine's
//! scheduler and an HTTP client both take an [`Arrivals`] and a [`Stop`], and both give [`RequestRecord`]s.

mod level;
mod phases;
mod plan;
mod random;
mod record;
mod schedule;
mod window;

pub use level::LoadLevel;
pub use phases::{Phases, Window, counted_until_ns, unmark};
pub use plan::{LevelPlan, MOST_ANSWER_BYTES, MOST_SLOTS, RequestShape};
pub use record::{Failure, FailureClass, RequestRecord};
pub use schedule::{Arrivals, Spacing, Starts, Stop};
pub use window::{LoadWindow, MOST_USERS, PLACES, REPEATED_PROMPTS, WindowPlan};
