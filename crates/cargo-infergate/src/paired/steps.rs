//! What is shown of a block while it is measured.

use crate::gate::paired::fewest_to_pass;
use infergate_core::case::Case;
use infergate_core::progress::Progress;

/// Steps of one block on a progress bar.
const STEPS_OF_BLOCK: usize = 1000;

/// `block 3 of 8, 5 cases open: decode/p128`.
pub fn label(done: usize, last: usize, cases: &[Case], what: &str) -> String {
    let open = if cases.len() == 1 { "1 case open".into() } else { format!("{} cases open", cases.len()) };
    let most = if done < fewest_to_pass() { "" } else { "at most " };
    format!("block {} of {most}{last}, {open}: {what}", done + 1)
}

/// Steps are fractions of a block, so that the time left is told by the blocks so far, however many cases they had.
pub fn step(label: &str, (done, last): (usize, usize), at: usize, cases: usize) -> Progress {
    let done_steps = done * STEPS_OF_BLOCK + STEPS_OF_BLOCK * at / cases.max(1);
    Progress { label: label.to_owned(), done_steps, total_steps: last * STEPS_OF_BLOCK }
}
