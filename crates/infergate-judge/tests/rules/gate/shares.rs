//! Shares of what a machine can do, next to those of other machine classes.

use std::path::Path;

use infergate_core::stats::{sample_std, student_t_quantile};
use infergate_judge::{ALPHA, Policy, judge, limit_fraction, shares, summary_ns};
use infergate_receipts::{Baseline, Note, Receipt, Work, read};

use crate::gate::support::{assert_near, baseline, machine, probes, run};

/// A run that reads 20 MB a token, on a machine of `class` that reads this many bytes a second.
fn decoding(class: &str, bytes_per_s: f64, ns: u64) -> Receipt {
    let mut receipt = run(&[("decode/p128", &[ns; 3])]);
    receipt.machine = machine(class);
    receipt.probes = Some(probes(bytes_per_s, 500e9));
    receipt.cases[0].work = Some(Work { bytes: 20e6, ..Work::default() });
    receipt
}

#[test]
fn a_share_that_no_limit_judges_stands_next_to_those_of_other_machine_classes() {
    // At 20 GB/s 20 MB take 1 ms.
    let slow = baseline(&[decoding("slow", 20e9, 1_250_000), decoding("slow", 20e9, 1_600_000)]);
    let fast = baseline(&[decoding("fast", 80e9, 500_000)]);
    let mut threads = decoding("threads", 20e9, 1_000_000);
    threads.threads = 4;
    let head = decoding("other", 40e9, 2_000_000);
    let verdict = judge(&head, Some(&fast), &Policy::default()).expect("a verdict");
    let notes = shares(&verdict, &head, &[slow, fast, baseline(&[threads])]);
    let [Note::Share { share, lowest, highest, sessions: 3, classes: 2, .. }] = notes[..] else { panic!("{notes:?}") };
    assert_near(Some(share), 0.25);
    assert_near(Some(lowest), 0.5);
    assert_near(Some(highest), 0.8);
    let own = [baseline(&[(); 8].map(|()| decoding("other", 40e9, 1_000_000)))];
    let verdict = judge(&head, own.first(), &Policy::default()).expect("a verdict");
    assert!(shares(&verdict, &head, &own).is_empty(), "eight days judge the time");
}

/// How far the shares of unchanged builds lie apart, for docs/evidence/noise.md: run it with `--nocapture`.
#[test]
fn shares_of_the_committed_baselines() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let head: Receipt = read(&top.join("docs/gallery/latency.json")).expect("a receipt");
    let classes = std::fs::read_dir(top.join("baselines")).expect("baselines");
    let files = classes.map(|class| class.expect("a class").path().join("candle-synthetic-gpt2.json"));
    let baselines: Vec<Baseline> =
        files.filter(|file| file.is_file()).map(|file| read(&file).expect("a baseline")).collect();
    let verdict = judge(&head, None, &Policy::default()).expect("a verdict");
    let found = shares(&verdict, &head, &baselines);
    let tests = found.len() as f64;
    for note in &found {
        let Note::Share { subject, lowest, highest, sessions, .. } = note else { panic!("{note:?}") };
        let record = head.cases.iter().find(|record| *subject == record.id.into()).expect("a case");
        // One session of each class, its newest.
        let mut logs = Vec::new();
        for baseline in &baselines {
            let of_class = baseline.sessions.iter().filter_map(|session| {
                let case = session.cases.iter().find(|case| case.id == record.id)?;
                limit_fraction(record.work.as_ref(), session.probes.as_ref(), summary_ns(&case.processes))
            });
            let of_class: Vec<f64> = of_class.collect();
            assert!(of_class.iter().all(|share| (*lowest..=*highest).contains(share)), "{note:?} {of_class:?}");
            println!("{subject} on {}: {of_class:.3?}", baseline.machine.class);
            logs.extend(of_class.last().map(|share| share.ln()));
        }
        let (classes, Some(std)) = (logs.len() as f64, sample_std(&logs)) else { panic!("{subject}: one class") };
        let t = |freedom| student_t_quantile(1.0 - ALPHA / tests, freedom).expect("a quantile");
        let now = (t(classes - 1.0) * std * (1.0 + 1.0 / classes).sqrt()).exp();
        let at_best = (t(1e6) * std).exp();
        println!(
            "{subject}: {sessions} sessions, SD {std:.2}; limit x{now:.0}, with any number of classes x{at_best:.1}"
        );
    }
}
