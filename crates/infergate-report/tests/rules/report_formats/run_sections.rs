//! What the receipt of one suite, or of a memory phase, says in a report, on samples whose figures are known.

use infergate_core::case::Case;
use infergate_core::engine::Device;
use infergate_core::prompt::seeded_ids;
use infergate_receipts::{
    CaseRecord, Evidence, LeakSite, MemoryMeasure, Outcome, ProbePair, Probes, ProcessSamples, Receipt, TtftParts,
    Work, output_sha256,
};
use infergate_report::inputs::Inputs;
use infergate_report::model::{Cell, Report, Table};
use infergate_report::topics::report;

use crate::report_formats::load::{cell, finding, listed, number, table};
use crate::report_formats::support::{memory, run};

const MS: u64 = 1_000_000;

fn receipt() -> Receipt {
    let head = run().head.expect("the golden run");
    Receipt { cases: Vec::new(), cold: Vec::new(), warm: Vec::new(), probes: None, ..head }
}

fn of(receipt: Receipt) -> Report {
    report(&Inputs { head: Some(receipt), ..Inputs::new("cargo infergate") })
}

/// A case with these samples in each of three processes, milliseconds to the last token.
fn case(id: &str, samples_ms: &[u64]) -> CaseRecord {
    let known = run().head.expect("the golden run").cases.remove(0);
    let id: Case = id.parse().expect("a case");
    let tokens = id.times_in_sample() as u64;
    let sample = |ms: &u64| (1..=tokens).map(|token| ms * MS * token / tokens).collect::<Vec<u64>>();
    let process = ProcessSamples { samples_ns: samples_ms.iter().map(sample).collect(), ..ProcessSamples::default() };
    CaseRecord { id, work: None, processes: vec![process; 3], ..known }
}

fn start(prefill_ms: u64) -> TtftParts {
    TtftParts { prompt_tokens: 8, load_ns: None, tokenize_ns: None, prefill_ns: prefill_ms * MS, first_sample_ns: None }
}

/// The value of a line of facts; `None` where there is no such line.
fn fact<'a>(report: &'a Report, id: &str, what: &str) -> Option<&'a Cell> {
    let facts: &Table = table(report, "configuration", id);
    facts.rows.iter().find(|row| row.cells[0].shown() == what).map(|row| &row.cells[1])
}

#[test]
fn the_configuration_says_on_what_and_how_often() {
    let mut receipt = receipt();
    receipt.cases = vec![case("prefill/p8", &[10; 5]), case("decode/p8", &[10; 7])];
    receipt.engine.settings = [("attention".to_owned(), "in blocks".to_owned())].into();
    let said = of(receipt.clone());
    let shown = |report: &Report, id: &str, what: &str| fact(report, id, what).map(Cell::shown);
    assert_eq!(shown(&said, "model", "attention").as_deref(), Some("in blocks"));
    assert_eq!(shown(&said, "model", "keys and values").as_deref(), Some("the engine does not say"));
    assert!(shown(&said, "run", "warm-up of a case").is_some());
    assert_eq!(shown(&said, "run", "took"), None, "nobody looked");

    receipt.wall_ns = Some(180_000 * MS);
    let gpu = Device { kind: "cuda".into(), name: "H100".into(), memory_bytes: None };
    receipt.machine.devices = vec![gpu];
    receipt.cases = vec![case("bench:parse", &[10; 5])];
    let said = of(receipt);
    assert_eq!(shown(&said, "run", "took").as_deref(), Some("180 s"));
    assert_eq!(shown(&said, "machine", "device").as_deref(), Some("H100 (cuda)"));
    assert_eq!(shown(&said, "run", "warm-up of a case"), None, "a bench warms up in its own way");
}

#[test]
fn starts_have_a_range_and_a_request_its_limit() {
    let mut receipt = receipt();
    receipt.cases = vec![case("generate/p8-o4", &[40, 80, 120])];
    (receipt.cold, receipt.warm) = ([30, 10, 20].map(start).to_vec(), vec![start(5)]);
    let said = of(receipt);
    let starts = table(&said, "request", "starts");
    let row = |at| ["ttft", "ttft_min", "ttft_max", "starts"].map(|id| number(starts, at, id));
    assert_eq!(row(0), [Some(20e6), Some(10e6), Some(30e6), Some(3.0)]);
    assert_eq!(row(1), [Some(5e6), Some(5e6), Some(5e6), Some(1.0)]);
    let tokens = table(&said, "request", "tokens");
    let of_row =
        |what: &str| tokens.rows.iter().find(|row| row.cells[0].shown() == what).map(|row| row.cells[1].shown());
    assert_eq!(of_row("output tokens requested, at most").as_deref(), Some("4"));
    assert_eq!(of_row("output tokens").as_deref(), Some("4"));
}

#[test]
fn a_case_that_gets_faster_in_its_process_was_not_warm() {
    let advice = |samples_ms: &[u64]| {
        let said = of(Receipt { cases: vec![case("prefill/p8", samples_ms)], ..receipt() });
        listed(&said, "recommendations").join(" ")
    };
    let warming = advice(&[12, 12, 12, 12, 12, 10, 10, 10, 10, 10]);
    assert!(warming.contains("prefill/p8 changes by -16.7 %"), "{warming}");
    assert!(!advice(&[12, 12, 12, 10, 10, 10]).contains("changes by"), "two of three samples may be luck");
    assert!(!advice(&[10, 10, 10, 10, 10, 12, 12, 12, 12, 12]).contains("changes by"), "that is no start");
    assert!(warming.contains("cargo infergate memory"), "what to run next: {warming}");
}

#[test]
fn other_lengths_explain_a_time_that_grows_no_more_than_their_work() {
    let probed = Probes { memory_read_bytes_per_s: 1e9, fma_flops_per_s: 1e9 };
    let run = |id: &str, ms: u64, flops: f64| {
        let case = CaseRecord { work: Some(Work { bytes: 0.0, flops }), ..case(id, &[ms; 3]) };
        let probes = Some(ProbePair { before: probed, after: None, best: None });
        Some(Receipt { cases: vec![case], probes, ..receipt() })
    };
    let told = |phase: &str, (base_ms, base_flops), (ms, flops)| {
        let (base, head) = (run(&format!("{phase}/p8"), base_ms, base_flops), run(&format!("{phase}/p32"), ms, flops));
        listed(&report(&Inputs { base, head, ..Inputs::new("cargo infergate") }), "comparison")
            .pop()
            .expect("a sentence")
    };
    let said = |ms: u64| told("prefill", (10, 2e6), (ms, 8e6));
    let explained =
        "TTFT is 3.00 times as long; its work, which would take 4.00 times as long at the least, explains it";
    assert!(said(30).ends_with(explained), "{}", said(30));
    for other in [said(5), said(50)] {
        assert!(other.ends_with("does not explain it"), "{other}");
    }
    // A step reads hardly more after a longer prompt: within 2 % a time says nothing else.
    for (ms, explains) in [(1010, true), (1040, false), (990, true), (950, false)] {
        let said = told("decode", (1000, 2e9), (ms, 2.01e9));
        assert_eq!(said.ends_with(", explains it"), explains, "{said}");
    }
    // Nothing is concluded from an earlier run whose processes differ too much.
    let (mut base, head) = (run("prefill/p8", 10, 2e6), run("prefill/p32", 40, 8e6));
    let samples_ns = vec![vec![20 * MS]; 3];
    base.as_mut().expect("a run").cases[0].processes[0].samples_ns = samples_ns;
    let unsteady = report(&Inputs { base, head, ..Inputs::new("cargo infergate") });
    assert!(finding(&unsteady, "prefill/p8 of the earlier run varies by 43.3 %").is_some());
    assert!(listed(&unsteady, "comparison").is_empty());
}

#[test]
fn a_prompt_is_drawn_again_where_it_is_asked_for() {
    let mut receipt = receipt();
    receipt.cases = vec![case("generate/p8-o4", &[40; 3])];
    let shown = |receipt: &Receipt, text: Option<&str>| {
        let prompt_text = text.map(str::to_owned);
        let report = report(&Inputs { head: Some(receipt.clone()), prompt_text, ..Inputs::new("cargo infergate") });
        let tokens = table(&report, "request", "tokens");
        tokens.rows.iter().find(|row| row.cells[0].shown() == "prompt").map(|row| row.cells[1].shown())
    };
    let text = Some("An increasing sequence: one,");
    receipt.cold = vec![TtftParts { tokenize_ns: Some(1), ..start(10) }];
    assert_eq!(shown(&receipt, None), None, "off by default");
    let prompt = Some("the first 8 tokens of: An increasing sequence: one,");
    assert_eq!(shown(&receipt, text).as_deref(), prompt);
    receipt.cold.clear();
    assert_ne!(shown(&receipt, text).as_deref(), prompt, "nothing says that the run had a text");
    let ids = seeded_ids(8, receipt.seed, receipt.engine.vocab_tokens);
    receipt.cases[0].output.prompt_sha256 = Some(output_sha256(&ids));
    let shown = shown(&receipt, text).expect("ids");
    assert!(ids.iter().all(|id| shown.split(' ').any(|word| word == id.to_string())), "{shown}");
}

#[test]
fn a_leak_has_the_places_that_explain_its_growth() {
    let mut inputs = memory();
    let rows = &mut inputs.verdict.as_mut().expect("a verdict").rows;
    let is_heap =
        |evidence: &Evidence| matches!(evidence, Evidence::Memory(memory) if memory.measure == MemoryMeasure::Heap);
    let heap = rows.iter_mut().find(|row| is_heap(&row.evidence)).expect("the heap's row");
    heap.outcome = Outcome::Leak;
    if let Evidence::Memory(memory) = &mut heap.evidence {
        memory.slope_bytes = Some(100.0);
    }
    let site =
        |bytes_per_run: f64, frame: &str| LeakSite { bytes_per_run, blocks_per_run: 1.0, frames: vec![frame.into()] };
    let sites = vec![site(70.0, "first"), site(20.0, "second"), site(10.0, "third")];
    inputs.memory.as_mut().expect("a phase").memory.sites = sites;
    let shown = listed(&report(&inputs), "memory");
    assert!(["first", "second"].iter().all(|frame| shown.iter().any(|line| line == frame)), "{shown:?}");
    assert!(!shown.iter().any(|line| line == "third"), "90 of 100 bytes are explained: {shown:?}");
}

/// Each figure grows with the prompt of the phase that tells it best, beside the length of the answer.
#[test]
fn e2e_scales_with_the_prompt() {
    let mut receipt = receipt();
    receipt.cases = vec![
        case("generate/p1024-o256", &[4000; 3]),
        case("generate/p128-o64", &[1000; 3]),
        case("generate/p512-o128", &[2000; 3]),
    ];
    let rows = |report: &Report, figure: &str| -> Vec<[Option<f64>; 5]> {
        let scaling = table(report, "scaling", "scaling");
        let its = (0..scaling.rows.len()).filter(|at| cell(scaling, *at, "figure").shown() == figure);
        let ids = ["prompt_tokens", "output_tokens", "median", "input", "growth"];
        its.map(|at| ids.map(|id| number(scaling, at, id))).collect()
    };
    let row = |prompt: f64, output: f64, ms: f64, input: f64, growth: f64| {
        [Some(prompt), Some(output), Some(ms * 1e6), Some(input), Some(growth)]
    };
    let expected =
        [row(128.0, 64.0, 1000.0, 1.0, 1.0), row(512.0, 128.0, 2000.0, 4.0, 2.0), row(1024.0, 256.0, 4000.0, 8.0, 4.0)];
    let report = of(receipt.clone());
    assert_eq!(rows(&report, "E2E"), expected);
    assert_eq!(rows(&report, "TTFT").len(), 3);
    assert_eq!(listed(&report, "scaling").len(), 2, "a sentence a figure beside the finding");

    // Prefills say TTFT without the answer behind it.
    receipt.cases.extend([case("prefill/p128", &[20; 3]), case("prefill/p512", &[60; 3])]);
    let both = of(receipt);
    assert_eq!([rows(&both, "TTFT").len(), rows(&both, "tokens/s").len(), rows(&both, "E2E").len()], [2, 3, 3]);
}
