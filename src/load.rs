//! A load on an engine: [`drive`](drive()) puts it on a [`Scheduler`](crate::engine::Scheduler); [`run_level`] does it with
//! prompts of its own and looks whether each user got the output that the prompt gives alone.

mod drive;
mod level;

pub use drive::{Ask, Driven, drive};
pub(crate) use infergate_core::load::*;
pub use level::run_level;
