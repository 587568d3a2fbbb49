//! The files of load: the receipt of a run, and the sessions of a baseline.

mod limit;
mod load;
pub mod load_baseline;
mod scenario;

pub use limit::*;
pub use load::*;
pub use load_baseline::*;
pub use scenario::*;
