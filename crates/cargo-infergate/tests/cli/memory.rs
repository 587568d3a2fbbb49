//! `memory`: leaks are called and located, what only looks like one passes, and a run that was cut short never does.

use infergate_receipts::{MemoryReceipt, read};

use crate::repositories::{WORKER, gate, repository};
use crate::sandbox::{Sandbox, decision, ran, stderr, stdout};
use crate::support;

fn receipt(sandbox: &Sandbox) -> MemoryReceipt {
    read::<MemoryReceipt>(&sandbox.path("memory.json")).expect("a receipt")
}

#[cfg(target_os = "linux")]
#[test]
fn what_no_allocator_counts_is_held_by_the_model_too() {
    let held = |control: &str| {
        let sandbox = Sandbox::new();
        let mut process = sandbox.process(&["memory", "--cases=prefill/p8", "--runs=0", "--out=memory.json"]);
        process.arg("--model").arg(format!("control:{control}"));
        process.arg("--worker").arg(support::example("leaky_engine"));
        process.output().expect("runs");
        receipt(&sandbox).held
    };
    let (steady, copy) = (held("steady"), held("copy"));
    assert!(steady.keys().eq([
        "anonymous_bytes_at_rest",
        "anonymous_bytes_loaded",
        "live_bytes_at_rest",
        "live_bytes_loaded",
        "peak_live_bytes_loading",
        "peak_resident_bytes"
    ]));
    for (name, counter) in steady {
        let more = copy[&name].min.saturating_sub(counter.min);
        let is_counted = name.contains("live");
        assert_eq!(more > 60 << 20, !is_counted, "{name}: {more}");
    }
}

/// The next file would be what counts them.
#[cfg(target_os = "linux")]
#[test]
fn a_leak_that_takes_the_last_file_descriptor_does_not_pass() {
    let sandbox = Sandbox::new();
    let program = support::example("leaky_engine");
    let script = format!("#!/bin/sh\nulimit -n 160 && exec '{}' \"$@\"\n", program.display());
    let mut process = sandbox.process(&["memory", "--cases=prefill/p8", "--model=control:files", "--out=memory.json"]);
    process.arg("--worker").arg(sandbox.program("limited.sh", &script));
    let said = ran(process).code(3);
    assert!(decision(&said).contains("invalid"), "{}", stdout(&said));
    let record = receipt(&sandbox).memory;
    assert!(record.partial && record.runs.open_files.len() > 100, "{record:?}");
    let why = record.invalid.join("; ");
    assert!(why.contains("this is no longer known: ") && why.contains("open files ("), "{why}");
}

/// The worker without dependencies, which does `then` where its memory is asked for.
fn asked_for_its_memory(then: &str) -> String {
    let samples = "} else {\n            let count";
    let memory = format!("}} else if line.contains(\"\\\"op\\\":\\\"memory\\\"\") {{\n            {then}\n        ");
    WORKER.replace(samples, &format!("{memory}{samples}"))
}

/// Its resident set grows by so much with each run.
fn that_grows_by(bytes_per_run: u64) -> String {
    let begin = "for line in io";
    let worker = asked_for_its_memory(&format!(
        r###"rss_bytes += if line.contains("generate") {{ {bytes_per_run} }} else {{ 0 }};
            format!(r##"{{{{"sample":{{{{"rss_bytes":{{rss_bytes}}}}}},"missing":[]}}}}"##)"###
    ));
    worker.replace(begin, &format!("let mut rss_bytes: u64 = 1 << 30;\n    {begin}"))
}

#[test]
fn without_a_bench_target_that_counts_the_gate_follows_the_resident_set_of_the_timed_one() {
    let sandbox = repository();
    for (bytes_per_run, code, said) in [(0, 0, "verdict: pass"), (65_536, 1, "verdict: leak")] {
        sandbox.write("bench.rs", &that_grows_by(bytes_per_run));
        let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p8-o2"]).code(code);
        assert!(decision(&gated).contains(said), "{}", stdout(&gated));
        let note = "no bench target 'memory': allocations are not counted, leaks are looked for in the resident set";
        assert!(stderr(&gated).contains(note), "{}", stderr(&gated));
    }

    // One that nobody named and that does not fit refuses nothing.
    let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p512-o64"]).success();
    assert!(stderr(&gated).contains("no leak is looked for: memory.case"), "{}", stderr(&gated));
}

#[test]
fn a_head_that_dies_where_its_memory_is_asked_for_is_broken_and_its_times_are_shown() {
    let sandbox = repository();
    sandbox.write("bench.rs", &asked_for_its_memory("std::process::exit(9)"));
    let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p8-o2"]).code(3);
    let said = stdout(&gated);
    assert!(decision(&gated).contains("head's memory is not followed: ") && said.contains("prefill/"), "{said}");
}
