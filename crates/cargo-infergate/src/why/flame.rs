//! All stacks of a case as one tree, with the time of both sides in each of its frames.

use std::collections::BTreeMap;

use super::tally::{Name, Pair, moved_of};
use infergate_receipts::{ExplainedFrame, MOST_FRAMES};

/// Of all time, what everything below one frame has to have for the frames around it to be left out.
const NEARLY_ALL: f64 = 0.999;
/// A frame with less of all time is too narrow to be seen.
const LEAST_SHARE: f64 = 0.005;

/// The frames, each before those that it calls; the first is the innermost that has nearly all of the time below it.
pub fn frames(blocks: &[Pair]) -> Vec<ExplainedFrame> {
    // The time of each frame, base's and head's, in each block.
    let mut nodes: BTreeMap<Vec<Name>, [Vec<f64>; 2]> = BTreeMap::new();
    let mut all_ns = 0.0;
    for (at, (base, head)) in blocks.iter().enumerate() {
        for (side, tally) in [base, head].into_iter().enumerate() {
            for (stack, count) in &tally.stacks {
                let ns = *count as f64 * tally.record_ns();
                all_ns += ns;
                for depth in 1..=stack.len() {
                    let nothing = || [vec![0.0; blocks.len()], vec![0.0; blocks.len()]];
                    nodes.entry(stack[..depth].to_vec()).or_insert_with(nothing)[side][at] += ns;
                }
            }
        }
    }
    let sum_ns = |node: &[Vec<f64>; 2]| node.iter().flatten().sum::<f64>();
    nodes.retain(|_, node| sum_ns(node) >= all_ns * LEAST_SHARE);
    let root = nodes.iter().filter(|(_, node)| sum_ns(node) >= all_ns * NEARLY_ALL).map(|(path, _)| path);
    let root: Vec<Name> = root.max_by_key(|path| path.len()).cloned().unwrap_or_default();
    nodes.retain(|path, _| path.starts_with(&root));
    let mut sizes: Vec<f64> = nodes.values().map(sum_ns).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least_ns = sizes.get(MOST_FRAMES - 1).copied().unwrap_or(0.0);
    let frame = |(path, [base_ns, head_ns]): (&Vec<Name>, &[Vec<f64>; 2])| {
        let (time, _) = moved_of(base_ns, head_ns)?;
        Some(ExplainedFrame { name: path.last()?.to_string(), depth: path.len() - root.len().max(1), time })
    };
    nodes.iter().filter(|(_, node)| sum_ns(node) >= least_ns).filter_map(frame).take(MOST_FRAMES).collect()
}
