//! Many requests at once: when they start, when the run ends, and what each of them did. An engine's scheduler and an HTTP
//! client both take an [`Arrivals`] and a [`Stop`], and both give [`RequestRecord`]s.
//!
//! [`drive`](drive()) puts such a load on a [`Scheduler`](crate::engine::Scheduler); [`run_level`] does it with prompts of its
//! own and looks whether each user got the output that the prompt gives alone.

mod drive;
mod level;
mod phases;
mod plan;
mod random;
mod record;
mod schedule;
mod window;

pub use drive::{Ask, Driven, Load, drive};
pub use level::{LoadLevel, run_level};
pub use phases::{Phases, Window, counted_until_ns, unmark};
pub use plan::{LevelPlan, MOST_ANSWER_BYTES, MOST_SLOTS, RequestShape};
pub use record::{Failure, FailureClass, RequestRecord};
pub use schedule::{Arrivals, Spacing, Starts, Stop};
pub use window::{LoadWindow, MOST_USERS, WindowPlan};
