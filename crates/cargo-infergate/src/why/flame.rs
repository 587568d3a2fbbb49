//! All stacks of a case as one tree, with the time of both sides in each of its frames.

use std::collections::BTreeMap;

use super::moved::{Pair, moved_of};
use super::tally::{Name, Tally};
use infergate_receipts::{ExplainedFrame, MOST_FRAMES};

/// Of all time, what everything below one frame has to have for the frames around it to be left out.
const NEARLY_ALL: f64 = 0.999;
/// A frame with less of all time is too narrow to be seen.
const LEAST_SHARE: f64 = 0.005;

/// Time of a frame in each block.
#[derive(Clone)]
struct Node {
    base_ns: Vec<f64>,
    head_ns: Vec<f64>,
}

impl Node {
    fn sum_ns(&self) -> f64 {
        self.base_ns.iter().chain(&self.head_ns).sum()
    }
}

/// The frames, each before those that it calls; the first is the innermost that has nearly all of the time below it.
pub fn frames(blocks: &[Pair]) -> Vec<ExplainedFrame> {
    let mut nodes: BTreeMap<Vec<Name>, Node> = BTreeMap::new();
    let mut all_ns = 0.0;
    for (at, (base, head)) in blocks.iter().enumerate() {
        for (side, is_head) in [(base, false), (head, true)] {
            let record_ns = Tally::record_ns(side);
            for (stack, count) in &side.stacks {
                let ns = *count as f64 * record_ns;
                all_ns += ns;
                for depth in 1..=stack.len() {
                    let nothing = || Node { base_ns: vec![0.0; blocks.len()], head_ns: vec![0.0; blocks.len()] };
                    let node = nodes.entry(stack[..depth].to_vec()).or_insert_with(nothing);
                    let times_ns = if is_head { &mut node.head_ns } else { &mut node.base_ns };
                    times_ns[at] += ns;
                }
            }
        }
    }
    nodes.retain(|_, node| node.sum_ns() >= all_ns * LEAST_SHARE);
    let root = nodes.iter().filter(|(_, node)| node.sum_ns() >= all_ns * NEARLY_ALL).map(|(path, _)| path);
    let root: Vec<Name> = root.max_by_key(|path| path.len()).cloned().unwrap_or_default();
    nodes.retain(|path, _| path.starts_with(&root));
    let mut sizes: Vec<f64> = nodes.values().map(Node::sum_ns).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least_ns = sizes.get(MOST_FRAMES - 1).copied().unwrap_or(0.0);
    let wide = nodes.into_iter().filter(|(_, node)| node.sum_ns() >= least_ns);
    let frame = |(path, node): (Vec<Name>, Node)| {
        let (time, _) = moved_of(&node.base_ns, &node.head_ns)?;
        let depth = path.len() - root.len().max(1);
        Some(ExplainedFrame { name: path.last()?.to_string(), depth, time })
    };
    wide.filter_map(frame).take(MOST_FRAMES).collect()
}
