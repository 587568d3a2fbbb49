//! Many requests at once: when they start, when the run ends, and what each of them did. Values only; an engine's scheduler
//! and an HTTP client both take an [`Arrivals`] and a [`Stop`], and both give [`RequestRecord`]s.

mod record;
mod schedule;

pub use record::{Failure, FailureClass, RequestRecord};
pub use schedule::{Arrivals, Spacing, Stop};
