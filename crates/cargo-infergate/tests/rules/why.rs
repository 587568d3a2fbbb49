//! Which functions are named, on made-up samples.

use std::rc::Rc;

use cargo_infergate::why::{Change, Frame, Tally, edited_first, explained};
use infergate_core::case::{BenchName, Case};
use infergate_report::words::explained::lines;

/// An iteration of base, nanoseconds of processor time, and samples of a side in a block.
const ITERATION_NS: f64 = 1e6;
const SAMPLES: u64 = 800;

fn case() -> Case {
    Case::Bench(BenchName::of("parse"))
}

fn frame(name: &str, changed: bool) -> Frame {
    Frame { name: Rc::from(name), change: changed.then_some(Change::Instructions), place: None }
}

/// A side of a block whose iterations take `ns` by the clock and `processor_ns` of work: `draw` gives the stack of each sample.
fn side(ns: f64, processor_ns: f64, mut draw: impl FnMut() -> Vec<Frame>) -> Tally {
    let mut tally = Tally { timed: SAMPLES, iterations: 100, ..Tally::default() };
    tally.processor_ns = (processor_ns * 100.0) as u64;
    tally.clock_ns = (ns * 100.0) as u64;
    (0..SAMPLES).for_each(|_| tally.stack(&draw()));
    tally
}

/// One of these functions, by its nanoseconds.
fn drawn(random: &mut fastrand::Rng, functions: &[(&str, f64)]) -> String {
    let all: f64 = functions.iter().map(|(_, ns)| ns).sum();
    let mut left = random.f64() * all;
    for (name, ns) in functions {
        left -= ns;
        if left < 0.0 {
            return (*name).to_owned();
        }
    }
    functions[functions.len() - 1].0.to_owned()
}

/// Eight blocks in which head's `parse` takes longer by a part of the whole.
fn blocks(random: &mut fastrand::Rng, slower: f64) -> Vec<(Tally, Tally)> {
    let functions =
        [("parse", 0.5), ("hash", 0.3), ("copy", 0.15), ("free", 0.05)].map(|(name, part)| (name, part * ITERATION_NS));
    let block = |_| {
        // The machine's own swings, which both sides see.
        let swing = 1.0 + 0.02 * random.f64();
        let mut of = |more: f64| {
            let mut functions = functions;
            functions[0].1 += more * ITERATION_NS;
            let ns = swing * functions.iter().map(|(_, ns)| ns).sum::<f64>() * (1.0 + 0.002 * random.f64());
            side(ns, ns, || vec![frame(&drawn(random, &functions), false), frame("main", false)])
        };
        (of(0.0), of(slower))
    };
    (0..8).map(block).collect()
}

#[test]
fn a_slower_function_is_named_first_with_what_it_takes() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut first, mut held) = (0, 0);
    for _ in 0..100 {
        let found = explained(case(), &blocks(&mut random, 0.06), true);
        if let Some(named) = found.functions.first().filter(|named| named.name == "parse") {
            first += 1;
            held += usize::from((named.time.low_ns..=named.time.high_ns).contains(&(0.06 * ITERATION_NS)));
            assert_eq!((named.changed, named.caller.as_deref()), (Some(false), Some("main")));
        }
        assert!(found.total.is_some_and(|total| total.is_sure()));
    }
    assert!(first >= 97, "first in {first} of 100");
    assert!(held >= first - 12, "its interval held the truth in {held} of {first}");
}

#[test]
fn what_a_changed_function_calls_counts_to_it() {
    let side = |copies: u64| {
        let mut at = 0;
        side(ITERATION_NS + copies as f64 * 1e3, ITERATION_NS + copies as f64 * 1e3, move || {
            at += 1;
            let ran = if at % 800 < 200 + copies { "memcpy" } else { "parse" };
            vec![frame(ran, ran == "parse"), frame("parse", true), frame("main", false)]
        })
    };
    let blocks: Vec<(Tally, Tally)> = (0..8).map(|block| (side(block % 2), side(100 + block % 2))).collect();
    let found = explained(case(), &blocks, true);
    let named = &found.functions[0];
    assert_eq!((named.name.as_str(), named.changed, &named.caller), ("parse", Some(true), &None));
    assert_eq!(named.called.iter().map(|called| called.name.as_str()).collect::<Vec<_>>(), ["memcpy"]);
    assert_eq!(found.runs_changed, Some(true));
    assert_eq!(found.functions.len(), 1, "{:?}", found.functions);
}

#[test]
fn a_function_that_one_side_inlines_counts_to_its_caller() {
    let side = |parses: u64, runs_hash: bool| {
        let mut at = 0;
        side(ITERATION_NS + parses as f64 * 1e3, ITERATION_NS + parses as f64 * 1e3, move || {
            at += 1;
            let parse = [frame("parse", false), frame("main", false)];
            let hash = (runs_hash && at % 2 == 0).then(|| frame("hash", false));
            hash.into_iter().chain(parse).collect()
        })
    };
    let blocks: Vec<(Tally, Tally)> = (0..8).map(|block| (side(block, false), side(100 + block, true))).collect();
    let [parse] = &explained(case(), &blocks, true).functions[..] else { panic!("one function") };
    assert_eq!(parse.name, "parse");
    assert!((parse.time.change_ns() - 1e5).abs() < 1e3, "{parse:?}");
}

#[test]
fn time_in_which_nothing_runs_is_told_apart() {
    let side = |sleeps_ns: f64| side(ITERATION_NS + sleeps_ns, ITERATION_NS, || vec![frame("parse", false)]);
    let blocks: Vec<(Tally, Tally)> =
        (0..8).map(|block| (side(f64::from(block)), side(2e5 + f64::from(block)))).collect();
    let found = explained(case(), &blocks, false);
    let waiting = found.waiting.expect("one thread");
    assert!(waiting.is_sure() && (waiting.change_ns() - 2e5).abs() < 1e3, "{waiting:?}");
    assert!(found.functions.is_empty() && found.runs_changed.is_none(), "{:?}", found.functions);
    // Two threads at once: waiting cannot be told.
    let both = |ns: f64| {
        let mut tally = side(0.0);
        tally.processor_ns *= 2;
        tally.clock_ns += ns as u64;
        tally
    };
    let blocks: Vec<(Tally, Tally)> = (0..8).map(|block| (both(f64::from(block)), both(f64::from(block)))).collect();
    assert!(explained(case(), &blocks, false).waiting.is_none());
}

/// What the compiler made otherwise of a function that nobody edited, because its caller was, is no reason.
#[test]
fn an_edited_function_comes_before_one_that_only_the_compiler_changed() {
    let stack = |ran: &str, edited: Change| {
        let frame = |name: &str, change| Frame { name: Rc::from(name), change, place: None };
        vec![frame(ran, Some(Change::Instructions)), frame("parse", Some(edited)), frame("main", None)]
    };
    let side = |hashes: u64, edited: Change| {
        let mut at = 0;
        side(ITERATION_NS + hashes as f64 * 1e3, ITERATION_NS + hashes as f64 * 1e3, move || {
            at += 1;
            stack(if at % 800 < 200 + hashes { "hash" } else { "parse" }, edited)
        })
    };
    for (edited, name) in [(Change::Edited, "parse"), (Change::Refers, "hash")] {
        let blocks: Vec<(Tally, Tally)> =
            (0..8).map(|block| (side(block % 2, edited), side(100 + block % 2, edited))).collect();
        let found = explained(case(), &blocks, true);
        assert_eq!(found.functions[0].name, name, "{:?}", found.functions);
    }
}

/// Samples see what is timed alone: what loads may have changed.
#[test]
fn it_is_said_that_no_function_that_changed_was_sampled() {
    let found = explained(case(), &blocks(&mut fastrand::Rng::with_seed(1), 0.06), true);
    assert_eq!(found.runs_changed, Some(false));
    let said = lines(&found).join("\n");
    assert!(said.starts_with("no function that changed was sampled") && said.contains(" in `parse`, "), "{said}");
    assert!(said.contains(" % of the slowdown ("), "{said}");
}

/// A part of an edited function can be inlined into a caller that nobody edited: both rise.
#[test]
fn of_functions_that_rise_alike_the_edited_one_is_named_first() {
    let found = explained(case(), &blocks(&mut fastrand::Rng::with_seed(1), 0.06), true);
    let of = |name: &str, change_ns: f64, edited: bool| {
        let mut function = found.functions[0].clone();
        (function.name, function.edited) = (name.to_owned(), Some(edited));
        function.time.head_ns = function.time.base_ns + change_ns;
        function
    };
    let ordered = |mut functions: Vec<_>| {
        edited_first(&mut functions);
        functions.into_iter().map(|function| function.name).collect::<Vec<_>>()
    };
    let alike = vec![of("caller", 850.0, false), of("other", 700.0, false), of("format", 650.0, true)];
    assert_eq!(ordered(alike), ["format", "caller", "other"]);
    let a_little = vec![of("caller", 850.0, false), of("format", 100.0, true)];
    assert_eq!(ordered(a_little), ["caller", "format"]);
    assert!(ordered(Vec::new()).is_empty());
}
