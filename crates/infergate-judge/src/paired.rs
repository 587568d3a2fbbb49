//! The paired channel: base and head measured in turn on one machine, block by block, judged after every block.
//!
//! A block starts fresh processes of both sides, once for each placement. Its number d is the mean over these process pairs of the
//! median of ln(t_head / t_base). Blocks are the sample: two processes of one program differ in speed, and all iterations of a
//! process share its difference. Everything here is a function of the blocks measured so far. More blocks never change a decision
//! of an earlier look.

mod accept;
mod calibration;
mod coverage;
mod evidence;
mod idle_cpu;
mod limits;
mod load_counts;
mod mean;
mod merge;
mod outputs;
mod power;
mod quick_estimate;
mod secondary_metrics;
mod sequential;
mod sequential_test;
mod series;
mod times;
mod verdict;

pub use crate::Policy;
pub use calibration::{block_noise, false_failure_rate, of_another_setup, smallest_detectable, summarise};
pub(crate) use evidence::interval;
pub use evidence::{Bet, PASS_LEVEL, SUITE_LEVEL, adjusted_evidence, fewest_blocks};
pub use idle_cpu::{computes_between, head_computes_between};
pub use limits::{Limits, THRESHOLD, fit_to_upload, missing_cases};
pub use mean::{block_mean_difference, mean_test};
pub use merge::{join, merge};
pub use power::{smallest_slowdown, smallest_slowdown_of};
pub use quick_estimate::{QUICK_BLOCKS, QuickEstimate, quick_estimates};
pub use sequential::{case_states, fewest_to_fail, fewest_to_pass, outcomes, regresses_among, settled};
pub use series::{CaseState, MAX_BLOCKS, Series, block_difference, series};
pub use verdict::{judge, judge_without_power, not_compared, open_cases, unsettled};
