//! What pages and comments have, whatever they are made of.

use cargo_infergate::receipt::{Against, Evidence, Interval, Note, OutputComparison, OutputEvidence, Subject};
use cargo_infergate::receipt::{Metric, Outcome, ProbePair, Probes, TimeEvidence, Verdict, VerdictRow, Work};
use cargo_infergate::report::export::{EXPORTERS, chosen};
use cargo_infergate::report::inputs::Inputs;
use infergate_core::case::Case;

use crate::report_formats::support::{file, files, memory, paired, run, two_runs};

#[test]
fn a_comment_begins_with_its_marker_and_the_verdict() {
    let comment = file(&memory(), "comment.md");
    assert!(comment.starts_with("<!-- infergate comment -->\n### ❌ infergate: leak\n\n"), "{comment}");
    assert!(comment.contains("src/engine.rs"), "where to look: {comment}");
}

#[test]
fn formats_that_need_a_verdict_say_so() {
    let error =
        |name: &str| chosen(&[name.to_owned()], &run()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error("junit").contains("--format junit: it needs a verdict"), "{}", error("junit"));
    assert!(error("pdf").contains("'pdf' is no format; there are comment, md, html"), "{}", error("pdf"));
    let usual = chosen(&[], &run()).expect("the usual ones");
    assert!(usual.iter().all(|exporter| exporter.name != "comment"));
    assert_eq!(EXPORTERS.iter().filter(|exporter| exporter.is_usual).count(), 8);
}

/// A verdict on `count` cases, every second one slower.
fn many(count: usize) -> Verdict {
    let row = |n: usize| {
        let case: Case = format!("decode/p{}", n + 1).parse().expect("a case");
        let mut time = TimeEvidence::new(Metric::Itl, Against::Base);
        (time.base_ns, time.head_ns, time.ratio) = (Some(1e6), Some(1.05e6), Some(1.05));
        time.interval = Some(Interval { low: 1.04, high: 1.06, level: 0.95 });
        time.threshold = Some(1.02);
        let outcome = if n.is_multiple_of(2) { Outcome::Regressed } else { Outcome::WithinLimit };
        VerdictRow::new(case, outcome, Evidence::Time(time))
    };
    let notes = (0..900).map(|n| Note::from(format!("note {n} {}", "x".repeat(1_900)))).collect();
    Verdict::of((0..count).map(row).collect(), notes)
}

#[test]
fn five_hundred_cases_fit_into_a_comment() {
    let mut inputs = paired();
    inputs.verdict = Some(many(500));
    let comment = file(&inputs, "comment.md");
    assert!(comment.len() < 65_536, "{} bytes", comment.len());
    assert!(comment.contains("and 210 more, in the report"), "what is left out is counted");
    assert_eq!(comment.matches("<details>").count(), comment.matches("</details>").count());
    let page = file(&inputs, "report.html");
    assert_eq!(page.matches("p500</td>").count(), 1);
    assert_eq!(file(&inputs, "annotations.txt").lines().count(), 10, "GitHub shows ten");
}

/// Names as long as a name may be, of characters that take more room when they are escaped.
#[test]
fn long_names_do_not_burst_a_comment() {
    let mut inputs = memory();
    let name = |n: usize| format!("criterion:{n}{}", "`|<&*".repeat(39));
    let output = OutputEvidence { position: Some(1), ..OutputEvidence::new(OutputComparison::Changed) };
    let row = |n: usize| {
        let subject: Subject = name(n).parse().expect("a name");
        VerdictRow::new(subject, Outcome::OutputChanged, Evidence::Output(output.clone()))
    };
    inputs.verdict = Some(Verdict::of((0..500).map(row).collect(), Vec::new()));
    let comment = file(&inputs, "comment.md");
    assert!(comment.len() < 65_536, "{} bytes", comment.len());
    assert!(comment.contains("more, in the report"), "what is left out is counted");
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    let page = file(&two_runs(), "report.html");
    assert!(page.contains("default-src 'none'"));
    for address in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn of_what_passes_there_is_a_sentence_and_no_picture() {
    let mut inputs = paired();
    let pictures = |inputs: &Inputs| {
        let names = files(inputs).into_iter().map(|file| file.name);
        names.filter(|name| name.ends_with(".svg")).collect::<Vec<_>>()
    };
    assert!(pictures(&inputs).contains(&"pictures/memory.svg".to_owned()));
    for row in &mut inputs.verdict.as_mut().expect("a verdict").rows {
        row.outcome = if matches!(row.evidence, Evidence::Memory(_)) { Outcome::Pass } else { Outcome::WithinLimit };
    }
    assert_eq!(pictures(&inputs), ["pictures/changes.svg"]);
    let flat = "Neither grows by what counts.";
    assert!(file(&inputs, "report.md").contains(flat));
    let mut rows = inputs.verdict.iter_mut().flat_map(|verdict| &mut verdict.rows);
    let memory = rows.find(|row| matches!(row.evidence, Evidence::Memory(_))).expect("it was followed");
    memory.outcome = Outcome::Plateau;
    assert!(!file(&inputs, "report.md").contains(flat), "it grew, and then no more");
}

#[test]
fn a_roofline_has_the_cases_below_the_roof() {
    let mut inputs = run();
    assert!(files(&inputs).iter().all(|file| file.name != "pictures/roofline.svg"), "not without the work");
    let receipt = inputs.head.as_mut().expect("a run");
    let rates = Probes { memory_read_bytes_per_s: 1e10, matrix_flops_per_s: 1e11, scalar_ops_per_s: 1e9 };
    receipt.probes = Some(ProbePair { before: rates, after: None, best: None });
    let known = |bytes: f64| Work { bytes, flops: 0.0, all_bytes: Some(bytes), all_flops: Some(bytes / 2.0) };
    let (last, others) = receipt.cases.split_last_mut().expect("cases");
    others.iter_mut().for_each(|case| case.work = Some(known(1e3)));
    // More than the probes saw.
    last.work = Some(known(1e12));
    let (beyond, below): (String, Vec<String>) =
        (last.id.to_string(), others.iter().map(|c| c.id.to_string()).collect());
    let svg = file(&inputs, "pictures/roofline.svg");
    assert!(svg.contains("hardware limit") && !svg.contains(&beyond), "{svg}");
    for id in below {
        assert!(svg.contains(&format!("{id}: ")) && svg.contains("at 0.5 operations a byte"), "{svg}");
    }
}
