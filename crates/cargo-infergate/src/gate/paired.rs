//! The paired channel: base and head measured in turn on one machine, block by block, judged at few fixed looks.
//!
//! A block is a fresh process of each side; its one number is d = the median over its pairs of ln(t_head / t_base). Blocks
//! are the sample, since iterations of one process share that process's luck. Everything here is a function of the blocks
//! measured so far: asked again with one block more it decides the same at the looks before.

mod calibration;
mod further;
mod looks;
mod power;
mod verdict;

pub use calibration::{
    FalseAlarms, Found, LiveGates, Noise, Resampled, Share, Summary, block_noise, design_level, false_alarms, summarise,
};
pub use looks::{
    FAIL_LOOKS, Look, MAX_BLOCKS, PASS_BETA, PASS_LOOKS, Series, Standing, fail_look_counts, outcomes, stand,
};
pub use power::{POWER_ASKED, called_share, smallest_slowdown};
pub use verdict::{PairedPolicy, block_difference, judge, series};
