//! Receipts and baselines made by hand, and rows looked up by name.

use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_receipts::{
    Baseline, BlockCase, BlockRecord, Build, CaseRecord, CountedCase, Counter, Evidence, Machine, Output,
    PAIRED_SCHEMA, PairedCase, PairedReceipt, ProbePair, Probes, ProcessSamples, RECEIPT_SCHEMA, Receipt, Side,
    SideRecord, TimeEvidence, Verdict, VerdictRow, output_sha256,
};
use infergate_report::words;

pub fn case(id: &str) -> Case {
    id.parse().expect("a case id")
}

/// A run of `cases`, each with the medians (ns) of its processes.
pub fn run(cases: &[(&str, &[u64])]) -> Receipt {
    Receipt {
        schema: RECEIPT_SCHEMA.into(),
        created: "2026-11-21T07:00:00Z".into(),
        tool: "0.1.0".into(),
        machine: machine("linux-x86_64-amd-2"),
        build: Build {
            commit: Some("abc".into()),
            dirty: Some(false),
            rustc: "rustc 1.95.0".into(),
            flags: "-C target-cpu=x86-64-v3".into(),
            opt_level: "3".into(),
            target: "x86_64-unknown-linux-gnu".into(),
            ..Build::default()
        },
        engine: EngineInfo {
            name: "candle".into(),
            version: "0.11.1".into(),
            model: "synthetic:tiny".into(),
            dtype: "f32".into(),
            weight_bytes: Some(1000),
            context_tokens: 1024,
            vocab_tokens: 100,
            ..EngineInfo::default()
        },
        threads: 2,
        cases: cases.iter().map(|(id, times_ns)| record(id, times_ns)).collect(),
        ..Receipt::default()
    }
}

pub fn machine(class: &str) -> Machine {
    Machine {
        class: class.into(),
        os: "linux".into(),
        arch: "x86_64".into(),
        cpu_model: "AMD EPYC".into(),
        logical_cores: 2,
        memory_bytes: Some(1 << 34),
        libc: Some("glibc 2.36".into()),
        instruction_set: Some("avx512".into()),
        devices: Vec::new(),
    }
}

/// One process per time, one iteration each.
pub fn record(id: &str, times_ns: &[u64]) -> CaseRecord {
    let id = case(id);
    let tokens = if matches!(id, Case::Generate { .. }) { id.output_tokens() as u64 } else { 1 };
    let sample = |ns: u64| (1..=tokens).map(|k| ns * k / tokens).collect::<Vec<u64>>();
    let process = |&ns: &u64| ProcessSamples { samples_ns: vec![sample(ns)], ..ProcessSamples::default() };
    CaseRecord {
        id,
        output: output((0..id.output_tokens() as u32).collect()),
        text: None,
        counters: Default::default(),
        work: None,
        processes: times_ns.iter().map(process).collect(),
    }
}

pub fn output(ids: Vec<u32>) -> Output {
    Output {
        sha256: output_sha256(&ids),
        top2_margins: vec![Some(0.5); ids.len()],
        ids,
        fingerprint: None,
        prompt_sha256: None,
    }
}

/// What a process counted of a case.
pub fn allocations(id: &str, min: u64, max: u64) -> Vec<CountedCase> {
    let counters = [("allocations_per_token".to_owned(), Counter { min, max })].into();
    vec![CountedCase { id: case(id), output_sha256: String::new(), counters, reached_twice: Default::default() }]
}

/// A baseline of one session per receipt, oldest first, a day apart.
pub fn baseline(sessions: &[Receipt]) -> Baseline {
    let mut baseline = Baseline::from_receipt(&sessions[0]);
    sessions[1..].iter().for_each(|session| baseline.add(session, false));
    for (day, session) in baseline.sessions.iter_mut().enumerate() {
        session.created = format!("{}-11-{:02}T07:00:00Z", 2000 + day / 30, day % 30 + 1);
    }
    baseline
}

/// One session of `decode/p128` per time.
pub fn decode_baseline(session_ns: &[u64]) -> Baseline {
    baseline(&session_ns.iter().map(|&ns| run(&[("decode/p128", &[ns, ns, ns])])).collect::<Vec<_>>())
}

pub fn probes(memory: f64, matrix: f64) -> ProbePair {
    let probes = Probes { memory_read_bytes_per_s: memory, fma_flops_per_s: matrix };
    ProbePair { before: probes, after: Some(probes), best: None }
}

/// What a row compares, by the name of its metric, counter or target.
pub fn compares(row: &VerdictRow) -> String {
    match &row.evidence {
        Evidence::Output(_) => "output".into(),
        Evidence::Time(time) => time.metric.key_in("ns"),
        Evidence::Counter(counter) => counter.name.clone(),
        Evidence::Target(target) => target.metric.name(),
        Evidence::Memory(_) => "memory".into(),
    }
}

pub fn row<'a>(verdict: &'a Verdict, subject: &str, what: &str) -> &'a VerdictRow {
    let found = verdict.rows.iter().find(|row| row.subject.to_string() == subject && compares(row) == what);
    found.unwrap_or_else(|| panic!("no row {subject} {what} in {:#?}", verdict.rows))
}

#[track_caller]
pub fn time(row: &VerdictRow) -> &TimeEvidence {
    row.time().expect("a time")
}

/// What the report says of a row in addition to its numbers.
pub fn note(row: &VerdictRow) -> String {
    words::sentence(row).unwrap_or_default()
}

/// What the report says of the whole run.
pub fn notes(verdict: &Verdict) -> Vec<String> {
    verdict.notes.iter().map(words::note).collect()
}

#[track_caller]
pub fn assert_near(got: Option<f64>, expected: f64) {
    let got = got.expect("a number");
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{got} instead of {expected}");
}

/// Blocks in which base takes `base_ns`, and head more by each fraction of `slower` in turn.
pub fn measured(id: &str, base_ns: u64, slower: &[f64]) -> PairedReceipt {
    let receipt = run(&[]);
    let side = SideRecord {
        tool: receipt.tool.clone(),
        build: receipt.build,
        engine: receipt.engine,
        ..SideRecord::default()
    };
    let said = output((0..case(id).output_tokens() as u32).collect());
    let suite = PairedCase {
        id: case(id),
        threshold: 1.02,
        widest: 1.05,
        pairs: 1,
        iterations_per_sample: 1,
        warm_up: false,
        one_core: false,
        turn_tokens: None,
        base_output: said.clone(),
        head_output: said,
        timed: true,
        expected_std: None,
        mean: None,
        throughput: None,
        load: None,
    };
    let block = |slower: &f64| BlockRecord {
        ran_first: Side::Base,
        base_idle: None,
        head_idle: None,
        cases: vec![BlockCase::new(case(id), vec![base_ns], vec![(base_ns as f64 * (1.0 + slower)).round() as u64])],
        windows: Vec::new(),
    };
    PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: receipt.created,
        tool: receipt.tool,
        machine: receipt.machine,
        base: side.clone(),
        head: side,
        threads: 2,
        cases: vec![suite],
        blocks: slower.iter().map(block).collect(),
        ..PairedReceipt::default()
    }
}
