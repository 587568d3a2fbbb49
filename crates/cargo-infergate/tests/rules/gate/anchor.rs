//! Head against an older revision in the same blocks: many small slowdowns are stopped, and nothing changes against base.

use cargo_infergate::gate::paired::{PairedPolicy, Series, anchor_series, judge, open, outcomes, series};
use cargo_infergate::receipt::{
    Against, AnchorRecord, BlockCase, BlockRecord, Outcome, PAIRED_SCHEMA, PairedCase, PairedReceipt, Side, SideRecord,
    Verdict, VerdictRow,
};

use cargo_infergate::report::inputs::Inputs;
use cargo_infergate::report::words::look::bisect;

use crate::gate::support::{case, run};
use infergate_core::case::Case;

const CASES: [&str; 5] = ["prefill/p128", "prefill/p512", "decode/p128", "decode/p512", "generate/p128-o64"];

/// What a block of the real machine varied by, between decode (.7 %) and a prompt of 128 (1 %; docs/GATE.md).
const BLOCK_STD: f64 = 0.008;

/// A suite without blocks. `anchor`: the limit, and whether the anchor is measured apart from base.
fn suite(anchor: Option<(f64, bool)>) -> PairedReceipt {
    let single = run(&CASES.map(|id| (id, [1_000_000].as_slice())));
    let side = SideRecord {
        tool: single.tool,
        build: single.build,
        engine: single.engine,
        counted: Vec::new(),
        held: std::collections::BTreeMap::new(),
        unmatched: Vec::new(),
    };
    let planned = |record: &cargo_infergate::receipt::CaseRecord| PairedCase {
        id: record.id,
        threshold: 1.02,
        threshold_by_noise: false,
        pairs: 2,
        iterations_per_sample: 1,
        warm_up: false,
        base_output: record.output.clone(),
        head_output: record.output.clone(),
        timed: true,
        expected_std: None,
        mean: None,
        layout_std: None,
        throughput: None,
        load: None,
    };
    PairedReceipt {
        code: None,
        terms: None,
        built_with: cargo_infergate::receipt::BuiltWith::default(),
        notes: Vec::new(),
        share: None,
        resumed: Vec::new(),
        explained: Vec::new(),
        allocated: Vec::new(),
        other_lengths: Vec::new(),
        schema: PAIRED_SCHEMA.into(),
        created: single.created,
        partial: false,
        out_of_time: false,
        invalid: Vec::new(),
        broken: Vec::new(),
        tool: side.tool.clone(),
        machine: single.machine,
        base: side.clone(),
        head: side.clone(),
        threads: 2,
        seed: 1,
        cases: single.cases.iter().map(planned).collect(),
        blocks: Vec::new(),
        memory: None,
        layouts: None,
        anchor: anchor.map(|(limit, apart)| AnchorRecord { limit, side: apart.then_some(side), without: Vec::new() }),
        servers: None,
    }
}

/// One case of it: enough for the numbers of a verdict, which take most of the time.
fn one_case(mut receipt: PairedReceipt) -> PairedReceipt {
    receipt.cases.truncate(1);
    receipt
}

/// A sum of twelve even draws is close to normal.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Measures blocks as a gate does, until no case is open. Times of base and head, where the anchor takes 1 ms.
fn gate(mut receipt: PairedReceipt, base_ms: f64, head_ms: f64, random: &mut fastrand::Rng) -> PairedReceipt {
    let ns = |ms: f64, noise: f64| (ms * 1e9 * noise.exp()) as u64;
    loop {
        let open = open(&receipt);
        if open.is_empty() {
            return receipt;
        }
        let of_case = |id| {
            // Each process is as fast as its own luck has it.
            let mut luck = || BLOCK_STD / 2_f64.sqrt() * normal(random);
            let (base, head, anchor) = (ns(base_ms, luck()), ns(head_ms, luck()), ns(1.0, luck()));
            let measured = receipt.anchor.as_ref().is_some_and(|anchor| anchor.side.is_some());
            let anchor_ns = if measured { vec![anchor; 2] } else { Vec::new() };
            BlockCase { anchor_ns, ..BlockCase::new(id, vec![base; 2], vec![head; 2]) }
        };
        let cases = open.into_iter().map(of_case).collect();
        let (started_first, ran_first) = (Side::Base, Side::Head);
        receipt.blocks.push(BlockRecord {
            started_first,
            ran_first,
            anchor_place: None,
            layouts: None,
            base_idle: None,
            head_idle: None,
            cases,
            windows: Vec::new(),
        });
    }
}

/// One that can run some of the benches is one, and one that can run none is not.
#[test]
fn an_anchor_that_can_run_nothing_passes_nothing() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut receipt = gate(suite(Some((1.05, true))), 1.0, 1.0, &mut random);
    let all: Vec<Case> = receipt.cases.iter().map(|case| case.id).collect();
    let mut with = |without: &[Case]| {
        receipt.anchor.as_mut().expect("an anchor").without = without.to_vec();
        for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases) {
            if without.contains(&block.id) {
                block.anchor_ns.clear();
            }
        }
        judged(&receipt)
    };
    assert_eq!(with(&all[1..]).verdict, Outcome::Pass);
    let verdict = with(&all);
    assert_eq!(verdict.verdict, Outcome::NotComparable);
    let said: Vec<String> = verdict.notes.iter().map(|note| format!("{note:?}")).collect();
    assert!(said.iter().any(|note| note.contains("the anchor can run none of these benches")), "{said:?}");
}

fn judged(receipt: &PairedReceipt) -> Verdict {
    receipt.validate().expect("a sound receipt");
    judge(receipt, &PairedPolicy::default())
}

fn rows(verdict: &Verdict, against: Against) -> Vec<&VerdictRow> {
    verdict.rows.iter().filter(|row| row.time().is_some_and(|time| time.against == against)).collect()
}

/// Whether every case is within its limit against base and against the anchor, by the looks alone: the numbers beside a
/// verdict take most of its time.
fn passes(receipt: &PairedReceipt) -> bool {
    let passed = |suite: Vec<(Case, Series)>| {
        let series: Vec<Series> = suite.into_iter().map(|(_, series)| series).collect();
        outcomes(&series, 0).iter().all(|outcome| outcome.is_some_and(|outcome| outcome.exit_code() == 0))
    };
    passed(series(&receipt.cases, &receipt.blocks)) && passed(anchor_series(receipt))
}

/// The first of ten merges of 1 % each whose gate does not pass, and that gate; `None` where all pass.
fn stopped_at(anchor: Option<(f64, bool)>, seed: u64) -> Option<(i32, PairedReceipt)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let slower = |merges: i32| 1.01_f64.powi(merges);
    let mut gates = (1..=10).map(|merge| (merge, gate(suite(anchor), slower(merge - 1), slower(merge), &mut random)));
    gates.find(|(_, receipt)| !passes(receipt))
}

#[test]
fn ten_commits_of_one_percent_are_stopped_at_the_sixth_or_earlier() {
    for seed in 0..8 {
        let (merge, receipt) = stopped_at(Some((1.05, true)), seed).expect("stopped");
        assert!(merge <= 6, "seed {seed}: {merge}");
        receipt.validate().expect("a sound receipt");
    }
}

#[test]
fn an_unchanged_program_passes_against_both() {
    for seed in 0..8 {
        assert!(passes(&gate(suite(Some((1.05, true))), 1.0, 1.0, &mut fastrand::Rng::with_seed(seed))), "seed {seed}");
    }
}

/// The same blocks, with the anchor's times and without: every row against base is the same, and the receipt without them is
/// judged with m = 5 as ever.
#[test]
fn an_anchor_changes_nothing_against_base() {
    for (seed, head_ms) in [(1, 1.0), (2, 1.03)] {
        let with = gate(one_case(suite(Some((1.05, true)))), 1.0, head_ms, &mut fastrand::Rng::with_seed(seed));
        let mut without = with.clone();
        without.anchor = None;
        for block in without.blocks.iter_mut().flat_map(|block| &mut block.cases) {
            block.anchor_ns.clear();
        }
        let (with, without) = (judged(&with), judged(&without));
        assert_eq!(rows(&with, Against::Base), rows(&without, Against::Base), "head takes {head_ms}");
    }
}

#[test]
fn a_slowdown_against_the_anchor_alone_fails_and_names_it() {
    let mut random = fastrand::Rng::with_seed(7);
    // Base is as slow already: nothing to say against it.
    let verdict = judged(&gate(one_case(suite(Some((1.05, true)))), 1.08, 1.08, &mut random));
    assert_eq!(verdict.verdict, Outcome::Regressed);
    assert!(rows(&verdict, Against::Base).iter().all(|row| row.outcome == Outcome::WithinLimit));
    let of_anchor = rows(&verdict, Against::Anchor);
    assert!(of_anchor.iter().all(|row| row.outcome == Outcome::Regressed), "{of_anchor:?}");
    let limits = of_anchor.iter().filter_map(|row| row.time().and_then(|time| time.threshold));
    assert!(limits.clone().count() == 1 && limits.clone().all(|limit| (limit - 1.05).abs() < 1e-9));
    assert!(passes(&gate(suite(Some((1.20, true))), 1.08, 1.08, &mut random)), "a wider limit");
}

#[test]
fn what_is_slower_than_the_anchor_alone_is_looked_for_since_the_anchor() {
    let mut receipt = gate(one_case(suite(Some((1.05, true)))), 1.08, 1.08, &mut fastrand::Rng::with_seed(7));
    let commit = |digit: &str| Some(digit.repeat(40));
    receipt.base.build.commit = commit("b");
    receipt.head.build.commit = commit("c");
    receipt.anchor.as_mut().and_then(|anchor| anchor.side.as_mut()).expect("a side").build.commit = commit("a");
    let verdict = Some(judged(&receipt));
    let inputs = Inputs { paired: Some(receipt), verdict, ..Inputs::new("cargo infergate") };
    let command = bisect(&inputs).expect("a command");
    let range = format!("--good {} --bad {} ", "a".repeat(40), "c".repeat(40));
    assert!(command.contains(&range), "{command}");
}

#[test]
fn a_bench_that_the_anchor_lacks_is_compared_with_base_alone() {
    let mut receipt = gate(suite(Some((1.05, true))), 1.0, 1.0, &mut fastrand::Rng::with_seed(3));
    let new = case(CASES[1]);
    receipt.anchor.as_mut().expect("an anchor").without = vec![new];
    for block in receipt.blocks.iter_mut().flat_map(|block| &mut block.cases).filter(|block| block.id == new) {
        block.anchor_ns.clear();
    }
    let verdict = judged(&receipt);
    let of = |against| rows(&verdict, against).iter().filter_map(|row| row.subject.case()).collect::<Vec<_>>();
    assert_eq!(of(Against::Base), CASES.map(case));
    assert_eq!(of(Against::Anchor), [CASES[0], CASES[2], CASES[3], CASES[4]].map(case));
    assert!(open(&receipt).is_empty());
}

#[test]
fn an_anchor_that_is_base_itself_is_judged_by_bases_times() {
    let mut random = fastrand::Rng::with_seed(9);
    let receipt = gate(suite(Some((1.05, false))), 1.0, 1.08, &mut random);
    let by = |suite: Vec<(Case, Series)>| suite.into_iter().map(|(_, series)| series.differences).collect::<Vec<_>>();
    assert_eq!(by(anchor_series(&receipt)), by(series(&receipt.cases, &receipt.blocks)));
    assert!(!passes(&receipt));
}

#[test]
fn a_receipt_whose_anchor_was_edited_is_refused() {
    let good = gate(suite(Some((1.05, true))), 1.0, 1.0, &mut fastrand::Rng::with_seed(1));
    let id = case(CASES[0]);
    let edited = |edit: &dyn Fn(&mut PairedReceipt)| {
        let mut receipt = good.clone();
        edit(&mut receipt);
        receipt.validate().expect_err("edited").to_string()
    };
    let block = |receipt: &mut PairedReceipt, times: Vec<u64>| {
        let cases = &mut receipt.blocks[0].cases;
        cases.iter_mut().find(|case| case.id == id).expect("measured").anchor_ns = times;
    };
    for times in [vec![], vec![1_000_000], vec![0, 1_000_000]] {
        let why = edited(&|receipt| block(receipt, times.clone()));
        assert!(why.contains("anchor: "), "{why}");
    }
    for limit in [1.0, f64::NAN, 1e9] {
        let why = edited(&|receipt| receipt.anchor.as_mut().expect("one").limit = limit);
        assert!(why.contains("anchor: its limit is"), "{why}");
    }
}
