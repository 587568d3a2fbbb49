//! An engine as a measured process: it answers the line protocol that [`infergate_core::worker`] describes.

mod serve;

pub(crate) use infergate_core::worker::*;
pub use serve::{serve, serve_here};
