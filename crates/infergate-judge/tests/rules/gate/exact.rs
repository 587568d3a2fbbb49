//! The exact channel: output before time, counters, and where exactness cannot be asked for.

use std::collections::BTreeMap;

use infergate_judge::paired::judge as judge_pair;
use infergate_judge::{Policy, judge};
use infergate_receipts::{Baseline, CountedCase, Counter, Evidence, Note, Outcome, Receipt, Verdict, VerdictRow};
use infergate_report::words::headline::of;

use crate::gate::support::{allocations, compares, decode_baseline, measured, note, output, row, run};

pub fn base() -> Baseline {
    decode_baseline(&[1000; 8])
}

pub fn head() -> Receipt {
    run(&[("decode/p128", &[1000; 3])])
}

pub fn judged(head: &Receipt, base: &Baseline) -> Verdict {
    judge(head, Some(base), &Policy::default()).expect("a verdict")
}

pub fn counted(min: u64, max: u64) -> Receipt {
    let mut head = head();
    head.cases[0].counters.insert("allocations_per_token".into(), Counter { min, max });
    head
}

pub fn counter_verdict(head: &Receipt, base: &Baseline) -> (Outcome, i32) {
    let verdict = judged(head, base);
    (row(&verdict, "decode/p128", "allocations_per_token").outcome, verdict.exit_code)
}

#[test]
fn a_counter_is_compared_with_the_range_seen_before() {
    let mut base = base();
    base.exact[0].counters.insert("allocations_per_token".into(), Counter { min: 5, max: 8 });
    for (min, max, expected) in [
        (5, 8, (Outcome::Pass, 0)),
        (6, 7, (Outcome::Pass, 0)),
        (4, 8, (Outcome::Pass, 0)),
        (5, 9, (Outcome::Pass, 0)),
        (9, 9, (Outcome::CounterRegressed, 1)),
        (2, 4, (Outcome::Improved, 0)),
    ] {
        assert_eq!(counter_verdict(&counted(min, max), &base), expected, "{min} to {max}");
    }
}

#[test]
fn a_shorter_context_and_another_vocabulary_fail() {
    let verdict = |context_tokens, vocab_tokens| {
        let mut head = head();
        (head.engine.context_tokens, head.engine.vocab_tokens) = (context_tokens, vocab_tokens);
        judged(&head, &base())
    };
    for (context, vocab, name, said) in [
        (512, 100, "context_tokens", "context tokens -512 (1024 → 512)"),
        (1024, 99, "vocab_tokens", "vocab tokens -1 (100 → 99)"),
        (1024, 164, "vocab_tokens", "vocab tokens +64 (100 → 164)"),
    ] {
        let verdict = verdict(context, vocab);
        let row = row(&verdict, "model", name);
        assert_eq!((row.outcome, verdict.exit_code, &*note(row)), (Outcome::CounterRegressed, 1, said));
    }
    let longer = verdict(2048, 100);
    assert!(longer.rows.iter().all(|row| !compares(row).ends_with("_tokens")), "{:?}", longer.rows);
}

#[test]
fn a_counter_no_longer_counted_does_not_pass_and_a_new_one_is_shown() {
    let mut base = base();
    assert_eq!(counter_verdict(&counted(5, 5), &base), (Outcome::Advisory, 0));
    base.exact[0].counters.insert("allocations_per_token".into(), Counter { min: 5, max: 5 });
    assert_eq!(counter_verdict(&head(), &base), (Outcome::Inconclusive, 3));
}

#[test]
fn a_counter_of_base_cannot_vanish_in_a_paired_run_either() {
    let judged = |base: Option<u64>, head: Option<u64>| {
        let counted = |count: Option<u64>| count.map_or_else(Vec::new, |n| allocations("decode/p128", n, n));
        let mut pair = measured("decode/p128", 10_000_000, &[0.0; 8]);
        (pair.base.counted, pair.head.counted) = (counted(base), counted(head));
        judge_pair(&pair, &Policy::default())
    };
    assert_eq!(judged(Some(564), Some(564)).exit_code, 0);
    assert_eq!(judged(Some(564), Some(565)).verdict, Outcome::CounterRegressed);
    assert_eq!(judged(Some(564), None).verdict, Outcome::Inconclusive);
    let uncounted = judged(None, Some(564));
    assert!(uncounted.exit_code == 0 && uncounted.notes.contains(&Note::BaseNotCounted), "{:?}", uncounted.notes);
}

#[test]
fn bytes_may_rise_by_the_tolerance_and_allocations_by_nothing() {
    let base = |name: &str, count| {
        let mut base = base();
        base.exact[0].counters.insert(name.into(), Counter { min: count, max: count });
        base
    };
    let head = |name: &str, count| {
        let mut head = head();
        head.cases[0].counters.insert(name.into(), Counter { min: count, max: count });
        head
    };
    for (name, was, is, expected) in [
        ("peak_live_bytes", 899_068, 899_084, Outcome::Pass),
        ("peak_live_bytes", 1000, 1010, Outcome::Pass),
        ("peak_live_bytes", 1000, 1011, Outcome::CounterRegressed),
        ("peak_live_bytes", 0, 1, Outcome::CounterRegressed),
        ("allocated_bytes_per_token", 1000, 1010, Outcome::Pass),
        ("allocations_per_token", 100_000, 100_001, Outcome::CounterRegressed),
        ("peak_live_bytes", 1000, 999, Outcome::Improved),
        ("peak_live_bytes", 999_999_999_999_999, 1_000_000_000_000_000, Outcome::Pass),
    ] {
        let verdict = judged(&head(name, is), &base(name, was));
        assert_eq!(row(&verdict, "decode/p128", name).outcome, expected, "{name} {was} {is}");
    }
    let verdict = judged(&head("peak_live_bytes", 899_084), &base("peak_live_bytes", 899_068));
    assert_eq!(note(row(&verdict, "decode/p128", "peak_live_bytes")), "", "what passes needs no word");
    let none = Policy { counter_tolerance: 0.0, ..Policy::default() };
    let strict = judge(&head("peak_live_bytes", 1001), Some(&base("peak_live_bytes", 1000)), &none);
    assert_eq!(strict.expect("a verdict").verdict, Outcome::CounterRegressed);
}

#[test]
fn more_bytes_of_weights_are_a_regression() {
    let mut head = head();
    head.engine.weight_bytes = Some(1011);
    let verdict = judged(&head, &base());
    assert_eq!(row(&verdict, "model", "weight_bytes").outcome, Outcome::CounterRegressed);
    head.engine.weight_bytes = Some(900);
    assert_eq!(row(&judged(&head, &base()), "model", "weight_bytes").outcome, Outcome::Improved);
}

fn held(loaded: u64, peak: u64, at_rest: u64) -> BTreeMap<String, Counter> {
    let counters = [("live_bytes_loaded", loaded), ("peak_live_bytes_loading", peak), ("live_bytes_at_rest", at_rest)];
    counters.map(|(name, bytes)| (name.to_owned(), Counter { min: bytes, max: bytes })).into()
}

/// A second copy of the weights moves no counter of a case.
#[test]
fn a_model_that_holds_more_is_a_regression_on_both_channels() {
    const MB: u64 = 1_000_000;
    let base = held(500 * MB, 510 * MB, 600 * MB);
    for (head, risen) in [
        (base.clone(), [false; 3]),
        (held(504 * MB, 550 * MB, 605 * MB), [false; 3]),
        (held(1000 * MB, 1010 * MB, 1100 * MB), [true; 3]),
        (held(500 * MB, 900 * MB, 600 * MB), [false, true, false]),
        (held(500 * MB, 510 * MB, 700 * MB), [false, false, true]),
    ] {
        let mut stored = Receipt { held: base.clone(), ..self::head() };
        let baseline = Baseline::from_receipt(&stored);
        stored.held = head.clone();
        let mut pair = measured("decode/p128", 1000, &[0.0; 8]);
        (pair.base.held, pair.head.held) = (base.clone(), head.clone());
        let channels = [judged(&stored, &baseline), judge_pair(&pair, &Policy::default())];
        for verdict in channels {
            let names = ["live_bytes_loaded", "peak_live_bytes_loading", "live_bytes_at_rest"];
            let found = names.map(|name| row(&verdict, "model", name).outcome == Outcome::CounterRegressed);
            assert_eq!(found, risen, "{head:?}");
        }
    }
}

/// A C library's second cache, or mapped weights that are copied, move nothing that the allocator counts.
#[test]
fn a_process_that_takes_more_pages_is_a_regression_from_a_tenth_and_16_mib_on() {
    const MIB: u64 = 1 << 20;
    for name in ["anonymous_bytes_loaded", "anonymous_bytes_at_rest", "peak_resident_bytes"] {
        for (base, head, outcome) in [
            (500, 1000, Outcome::CounterRegressed),
            (500, 551, Outcome::CounterRegressed),
            (500, 549, Outcome::Pass),
            (500, 460, Outcome::Pass),
            (20, 35, Outcome::Pass),
            (20, 37, Outcome::CounterRegressed),
        ] {
            let mut pair = measured("decode/p128", 1000, &[0.0; 8]);
            for (side, mib) in [(&mut pair.base, base), (&mut pair.head, head)] {
                side.held.insert(name.into(), Counter { min: mib * MIB, max: mib * MIB });
            }
            let verdict = judge_pair(&pair, &Policy::default());
            let row = row(&verdict, "model", name);
            assert_eq!(row.outcome, outcome, "{name}: {base} to {head} MiB");
            assert_eq!(note(row).is_empty(), outcome == Outcome::Pass, "some pages more or less are not worth a line");
        }
    }
}

/// By one run in three: the best of eight says nothing of it.
#[test]
fn a_counter_that_two_runs_of_each_process_raise_is_a_regression() {
    const MIB: u64 = 1 << 20;
    let judged = |base: [u64; 8], head: [u64; 8]| {
        let counted = |repeats: [u64; 8]| {
            let values = [("peak_live_bytes".to_owned(), repeats.map(|mib| mib * MIB).to_vec())].into();
            vec![CountedCase::of_repeats("decode/p128".parse().expect("a case"), String::new(), values)]
        };
        let mut pair = measured("decode/p128", 1000, &[0.0; 8]);
        (pair.base.counted, pair.head.counted) = (counted(base), counted(head));
        judge_pair(&pair, &Policy::default())
    };
    let (low, once, twice) = ([40; 8], [40, 40, 300, 40, 40, 40, 40, 40], [40, 40, 300, 40, 40, 296, 40, 40]);
    let outcome = |base, head| row(&judged(base, head), "decode/p128", "peak_live_bytes").outcome;
    assert_eq!(outcome(low, low), Outcome::Pass);
    assert_eq!(outcome(low, once), Outcome::Pass);
    assert_eq!(outcome(once, twice), Outcome::Pass, "base reached it, too");
    assert_eq!(outcome(low, twice), Outcome::CounterRegressed);
    let verdict = judged(low, twice);
    assert!(of(&verdict).contains("peak live bytes +256 MiB in some runs ("), "{}", of(&verdict));
}

/// Of a few hundred bytes a longer path is a large part, and it is nothing.
#[test]
fn what_a_small_model_holds_may_differ_by_a_path() {
    let mut head = Receipt { held: held(304, 3123, 1000), ..head() };
    let base = Baseline::from_receipt(&head);
    head.held = held(344, 3200, 900);
    let verdict = judged(&head, &base);
    assert!(verdict.rows.iter().all(|row| row.subject.to_string() != "model" || row.outcome == Outcome::Pass));
    for (bytes, outcome) in [(65_536, Outcome::Pass), (65_537, Outcome::CounterRegressed)] {
        let mut pair = measured("decode/p128", 1000, &[0.0; 8]);
        (pair.base.held, pair.head.held) = (held(0, 0, 0), held(bytes, 0, 0));
        let verdict = judge_pair(&pair, &Policy::default());
        assert_eq!(row(&verdict, "model", "live_bytes_loaded").outcome, outcome, "{bytes} where base holds nothing");
    }
}

/// Which threads of a pool keep a buffer varies from process to process, and its size from machine to machine.
#[test]
fn what_threads_keep_is_no_regression_of_a_session_and_on_another_machine_nothing_but_weights_is() {
    const MIB: u64 = 1 << 20;
    let mut head = Receipt { held: held(40 * MIB, 45 * MIB, 42 * MIB), ..head() };
    let base = Baseline::from_receipt(&head);
    for (at_rest, outcome) in [(46 * MIB, Outcome::Pass), (47 * MIB, Outcome::CounterRegressed)] {
        head.held = held(40 * MIB, 45 * MIB, at_rest);
        assert_eq!(row(&judged(&head, &base), "model", "live_bytes_at_rest").outcome, outcome);
    }
    head.machine.class = "linux-x86_64-intel-2".into();
    head.held = held(80 * MIB, 90 * MIB, 90 * MIB);
    let verdict = judged(&head, &base);
    assert_eq!(row(&verdict, "model", "live_bytes_loaded").outcome, Outcome::CounterRegressed);
    for name in ["peak_live_bytes_loading", "live_bytes_at_rest"] {
        let row = row(&verdict, "model", name);
        assert_eq!(row.outcome, Outcome::Advisory);
        assert!(note(row).contains("other machine class"), "{row:?}");
    }
}

#[test]
fn what_other_cases_leave_at_rest_is_not_compared() {
    let mut head = Receipt { held: held(500 << 20, 510 << 20, 900 << 20), ..head() };
    let base = Baseline::from_receipt(&Receipt { held: held(500 << 20, 510 << 20, 600 << 20), ..head.clone() });
    head.cases.extend(run(&[("prefill/p512", &[1000; 3])]).cases);
    let names: Vec<String> = judged(&head, &base).rows.iter().filter_map(counter_name).collect();
    assert!(names.contains(&"live_bytes_loaded".into()) && !names.contains(&"live_bytes_at_rest".into()), "{names:?}");
}

fn counter_name(row: &VerdictRow) -> Option<String> {
    if let Evidence::Counter(counter) = &row.evidence { Some(counter.name.clone()) } else { None }
}

/// As earlier versions wrote them.
#[test]
fn a_base_that_does_not_say_what_it_holds_is_not_compared() {
    let head = Receipt { held: held(500 << 20, 510 << 20, 600 << 20), ..head() };
    let verdict = judged(&head, &base());
    assert_eq!(row(&verdict, "model", "live_bytes_loaded").outcome, Outcome::Advisory);
    let mut pair = measured("decode/p128", 1000, &[0.0; 8]);
    pair.head.held = head.held.clone();
    pair.base.held = [("live_bytes_loaded".to_owned(), head.held["live_bytes_loaded"])].into();
    (pair.base.engine.weight_bytes, pair.head.engine.weight_bytes) = (None, Some(1000));
    let verdict = judge_pair(&pair, &Policy::default());
    let names: Vec<String> = verdict.rows.iter().filter_map(counter_name).collect();
    assert_eq!(names, ["live_bytes_loaded"]);
    (pair.base.held, pair.head.held) = (head.held, BTreeMap::new());
    let verdict = judge_pair(&pair, &Policy::default());
    assert_eq!(row(&verdict, "model", "live_bytes_at_rest").outcome, Outcome::Inconclusive);
}

#[test]
fn another_prompt_is_named_as_the_cause_of_another_output() {
    let (mut base, mut head) = (base(), head());
    head.cases[0].output = output(vec![0, 42]);
    head.cases[0].output.prompt_sha256 = Some("b".into());
    assert_eq!(judged(&head, &base).verdict, Outcome::OutputChanged, "an older baseline knows no prompt");
    base.exact[0].output.prompt_sha256 = Some("a".into());
    let verdict = judged(&head, &base);
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::NotComparable, 4));
    assert!(note(row(&verdict, "decode/p128", "output")).contains("had different prompts"), "{verdict:?}");
    base.exact[0].output.prompt_sha256 = Some("b".into());
    assert_eq!(judged(&head, &base).verdict, Outcome::OutputChanged);
}
