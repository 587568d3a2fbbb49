//! Many requests at once: when they start, when the run ends, which of them count, and what each of them did. An engine's
//! scheduler and an HTTP client both take an [`Arrivals`] and a [`Stop`], and both give [`RequestRecord`]s.

mod phases;
mod plan;
mod random;
mod record;
mod schedule;
mod window;

pub use phases::*;
pub use plan::*;
pub use record::*;
pub use schedule::*;
pub use window::*;
