//! Finds the functions whose time changed, by their differences in all blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::image::Change;
use super::names::is_std;
use super::tally::{Name, Pair, Part, Tally, moved_of};
use infergate_core::case::Case;
use infergate_core::stats::holm_adjusted;
use infergate_receipts::{
    CalledFunction, Explained, ExplainedFrame, ExplainedFunction, MOST_CALLED, MOST_FRAMES, MOST_FUNCTIONS, Moved,
};

/// The chance that any function is named wrongly.
const LEVEL: f64 = 0.05;
/// The least share of the time of a function, or of a frame, that is reported.
const LEAST_SHARE: f64 = 0.005;
/// The least part of a function's change for which a function that it calls is named.
const LEAST_OF_CHANGE: f64 = 0.2;
/// If one frame has this part of all time below it, the frames around it are skipped.
const NEARLY_ALL: f64 = 0.999;
/// Threads work side by side where they take more processor time than passes, by this factor.
const SIDE_BY_SIDE: f64 = 1.05;

/// What the blocks show. `knows_changed`: the functions whose machine code changed are known.
pub fn explained(id: Case, blocks: &[Pair], knows_changed: bool) -> Explained {
    let total = moved(blocks, Tally::iteration_ns).map(|(moved, _)| moved);
    let processor = |tally: &Tally| tally.record_ns() * tally.records as f64;
    let waits = |tally: &Tally| (tally.iteration_ns() - processor(tally)).max(0.0);
    let side_by_side = tallies(blocks).any(|tally| processor(tally) > tally.iteration_ns() * SIDE_BY_SIDE);
    let names: BTreeSet<&Name> = samples(blocks).map(|(name, _)| name).collect();
    let all = moved(blocks, processor).map(|(moved, _)| moved);
    let least_ns = all.map_or(0.0, |all| all.base_ns.max(all.head_ns) * LEAST_SHARE);
    let inlined: Vec<&Name> =
        names.iter().copied().filter(|name| knows_changed && is_inlined(name, &names, blocks)).collect();
    let of = |name: &Name| {
        let by = Part::CalledBy(name.clone());
        let in_it = |tally: &Tally| inlined.iter().map(|callee| tally.ns_of(callee, &by)).sum::<f64>();
        moved(blocks, |tally| tally.ns_of(name, &Part::All) + in_it(tally))
    };
    let candidates: Vec<(&Name, Moved, f64)> = names
        .iter()
        .copied()
        .filter(|name| !inlined.contains(name))
        .filter_map(|name| of(name).map(|(moved, p)| (name, moved, p)))
        .filter(|(_, moved, _)| moved.base_ns.max(moved.head_ns) >= least_ns)
        .collect();
    let p_values: Vec<f64> = candidates.iter().map(|(.., p)| *p).collect();
    let adjusted = holm_adjusted(&p_values).unwrap_or_else(|| vec![1.0; p_values.len()]);
    let sure = candidates.into_iter().zip(adjusted).filter(|(_, p)| *p <= LEVEL);
    let mut functions: Vec<ExplainedFunction> =
        sure.map(|((name, time, _), _)| function(name, time, blocks, knows_changed)).collect();
    let slower = total.is_none_or(|total| total.change_ns() >= 0.0);
    let size = |function: &ExplainedFunction| {
        let change_ns = function.time.change_ns();
        if slower { change_ns } else { -change_ns }
    };
    functions.sort_by(|a, b| size(b).total_cmp(&size(a)));
    functions.truncate(MOST_FUNCTIONS);
    let ran_changed = tallies(blocks).any(|tally| !tally.changed.is_empty());
    Explained {
        id,
        why_not: None,
        blocks: blocks.len(),
        base_samples: blocks.iter().map(|(base, _)| base.records).sum(),
        head_samples: blocks.iter().map(|(_, head)| head.records).sum(),
        total,
        processor: all,
        waiting: if side_by_side { None } else { moved(blocks, waits).map(|(moved, _)| moved) },
        functions,
        frames: frames(blocks),
        runs_changed: knows_changed.then_some(ran_changed),
    }
}

/// Moves the functions that the change edits to the front, among those that changed at least half as much as the first: where a function is
/// inlined in part, its caller's time rises with it.
pub fn edited_first(functions: &mut [ExplainedFunction]) {
    let size = |function: &ExplainedFunction| function.time.change_ns().abs();
    let largest_ns = functions.first().map_or(0.0, size);
    functions.sort_by_key(|function| !(function.edited == Some(true) && size(function) >= largest_ns / 2.0));
}

fn function(name: &Name, time: Moved, blocks: &[Pair], knows_changed: bool) -> ExplainedFunction {
    let changes = tallies(blocks).filter_map(|tally| tally.changed.get(name));
    // `None` for what only refers to something else, as far as is known.
    let is_changed = match changes.max() {
        None => Some(false),
        Some(Change::Refers) => None,
        Some(Change::Instructions | Change::Edited) => Some(true),
    };
    let parts: BTreeSet<&Part> = samples(blocks).filter(|(of, _)| of == name).map(|(_, part)| part).collect();
    let called = parts.iter().filter_map(|part| match part {
        Part::Ran(ran) if ran != name => {
            let (time, _) = moved(blocks, |tally| tally.ns_of(name, part))?;
            Some(CalledFunction { name: ran.to_string(), time })
        }
        _ => None,
    });
    let share = |called: &CalledFunction| called.time.change_ns() / time.change_ns();
    let mut called: Vec<CalledFunction> =
        called.filter(|called| called.time.is_sure() && share(called) >= LEAST_OF_CHANGE).collect();
    called.sort_by(|a, b| share(b).total_cmp(&share(a)));
    called.truncate(MOST_CALLED);
    // The part of a function's samples, of one kind, whose time moved most in the function's direction.
    let most_moved = |text: fn(&Part) -> Option<&Name>| {
        let change_ns = |part: &Part| {
            let ns = |tally: &Tally| tally.ns_of(name, part);
            let sum: f64 = blocks.iter().map(|(base, head)| ns(head) - ns(base)).sum();
            sum * time.change_ns().signum()
        };
        let all = parts.iter().filter_map(|part| Some((change_ns(part), text(part)?)));
        all.max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(change_ns, _)| *change_ns > 0.0)
            .map(|(_, text)| text.to_string())
    };
    let place = most_moved(|part| if let Part::At(place) = part { Some(place) } else { None });
    let caller = most_moved(|part| if let Part::CalledBy(caller) = part { Some(caller) } else { None });
    ExplainedFunction {
        name: name.to_string(),
        place,
        changed: is_changed.filter(|_| knows_changed),
        edited: None,
        caller: caller.filter(|_| is_changed != Some(true) || is_std(name)),
        time,
        called,
    }
}

/// Whether one side never runs a function that is the same in both: it is inlined there, so its time counts to its caller on both sides.
fn is_inlined(name: &Name, names: &BTreeSet<&Name>, blocks: &[Pair]) -> bool {
    let is_in = |tally: &Tally| tally.ns_of(name, &Part::All) > 0.0;
    let is_on_one_side = blocks.iter().any(|(base, _)| is_in(base)) != blocks.iter().any(|(_, head)| is_in(head));
    let is_changed = tallies(blocks).any(|tally| tally.changed.get(name) >= Some(&Change::Instructions));
    let mut parts = samples(blocks).filter(|(of, _)| of == name);
    is_on_one_side
        && !is_changed
        && parts.any(|(_, part)| matches!(part, Part::CalledBy(caller) if names.contains(caller)))
}

fn tallies(blocks: &[Pair]) -> impl Iterator<Item = &Tally> {
    blocks.iter().flat_map(|(base, head)| [base, head])
}

fn samples(blocks: &[Pair]) -> impl Iterator<Item = &(Name, Part)> {
    tallies(blocks).flat_map(|tally| tally.samples.keys())
}

fn moved(blocks: &[Pair], of: impl Fn(&Tally) -> f64) -> Option<(Moved, f64)> {
    let base: Vec<f64> = blocks.iter().map(|(base, _)| of(base)).collect();
    let head: Vec<f64> = blocks.iter().map(|(_, head)| of(head)).collect();
    moved_of(&base, &head)
}

/// All stacks of a case as one tree, with the time of both sides: its frames, each before those that it calls; the first is the innermost
/// that has nearly all of the time below it.
fn frames(blocks: &[Pair]) -> Vec<ExplainedFrame> {
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
    let root: Vec<Name> = nodes
        .iter()
        .filter(|(_, node)| sum_ns(node) >= all_ns * NEARLY_ALL)
        .map(|(path, _)| path)
        .max_by_key(|path| path.len())
        .cloned()
        .unwrap_or_default();
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
