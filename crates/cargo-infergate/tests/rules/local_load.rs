//! Many requests at once on a local engine: the schedule, the times, the outputs, and what a worker may say of them.

mod drive;
mod engines;
mod level;
mod schedule;
mod steady;
#[cfg(unix)]
mod worker;
