//! What a person reads, as a whole and to the letter.

use std::path::{Path, PathBuf};

use cargo_infergate::gate::memory::judge;
use cargo_infergate::receipt::{
    CountedCase, Counter, InferenceMemory, LeakSite, LoadMemory, MEMORY_SCHEMA, MemoryReceipt, MemoryRecord,
    MemorySample, MemorySeries, Receipt, Verdict, read,
};
use cargo_infergate::report::words::sparkline;
use cargo_infergate::report::{terminal, units};

const RECEIPT: &str = "
synthetic:tiny (f32) on candle 0.11.1, 2 threads, linux-x86_64-amd-epyc-2

case                time      TTFT       ITL p50     TPOT       decode   throughput      CV   samples   of hardware
prefill/p8       1.23 ms   1.23 ms             —        —            —            —   1.2 %         6         0.4 %
decode/p8         300 µs         —        300 µs        —   3333 tok/s            —   1.0 %         6         5.2 %
generate/p8-o3   1.81 ms   1.21 ms   — (takes 6)   300 µs   3333 tok/s   1657 tok/s   1.4 %         3         2.0 %

cold TTFT at 8 tokens: 9.30 ms = load 8.00 ms + tokenize — + prefill 1.29 ms + first sample 10.0 µs
warm TTFT at 8 tokens: 1.20 ms = tokenize — + prefill 1.19 ms + first sample 10.0 µs
";

const MEMORY: &str = "
synthetic:tiny (f32) on candle 0.11.1, 2 threads, linux-x86_64-amd-epyc-2

Loading the model
what             before    at most      after     growth
resident set   8.00 MiB   40.0 MiB   32.0 MiB   24.0 MiB
live heap      1.00 MiB   27.0 MiB   21.0 MiB   20.0 MiB
mapped files   2.00 MiB          —   5.00 MiB   3.00 MiB
The weights are 16.0 MiB. Of the growth neither heap nor mapped files: 1.00 MiB. The heap holds 1.25 times the weights \
(1.19 times without the 1.00 MiB reserved for a sequence); 6.00 MiB more were needed while loading and given back.

One generation
what                         value
case                         generate/p128-o64
KV cache, expected           191 KiB
reserved for a sequence      1.00 MiB
peak of prefill above rest   512 KiB
growth of the live heap      -2.00 KiB
of it while decoding         0 B

Many runs in one process
what           runs   after the first   after the last    growth   run by run
live heap        40          21.0 MiB         21.8 MiB   780 KiB   ▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▃▃▃▃▃▃▃▄▄▄▄▄▄▄▄▅▅▅▅▅▅▅▆▆▆
resident set     40          33.0 MiB         33.0 MiB       0 B   ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
generate/p128-o64 again and again in one process, after 5 runs to warm up.

- heap: grows by 20.0 KiB a run (1 B in each run would be seen)
- resident: no leak (51.2 KiB in each run would be seen)
- heap: a leak in each k-th run is certain to be seen up to k = 7, one in a random k-th with a chance of 94 % at k = 2, 60 % at k = 4
- resident: noise 0 B (MAD around the line), autocorrelation 0.00

Where it leaks: 20.0 KiB a run in 1 allocation, allocated in

- push at src/cache.rs:12

case          allocations a token   live at the peak
decode/p128            700 to 702           4.00 KiB
prefill/p8                      —              128 B

- shared and anonymous pages are not told apart: there is no /proc/self/smaps_rollup

- generate/p128-o64: the heap grows by 20.0 KiB a run in 1 allocation, or a cache of prompts is not full yet: more --memory-runs tell

verdict: leak (exit 1): the heap grows by 20.0 KiB a run over 40 runs
";

const VERDICT: &str = "
SUBJECT

case                  base      head       change (99.6 % interval)   fails above   of hardware   output                verdict
decode/p8           300 µs    390 µs   +30.0 % (+21.0 % to +39.7 %)       +10.0 %         4.0 %     same              regressed
criterion:fib/20   1.00 µs   1.05 µs      +5.0 % (+1.0 % to +9.0 %)       +10.0 %             —        —   slower, within limit

- model: 16 B more of weights, within tolerance
- decode/p8: CV 25 % is above the limit of 20 %
- criterion:fib/20: slower (p = 0.0005), by less than the limit
- criterion:fib/20: 103 % of the speed the probes saw, so no share of the hardware is shown: the probes ran in a slower moment
- prefill/p8: target prefill/* ttft_ms < 1 is missed with 1.21 ms
- prefill/p8: the baseline has no output of this case: nothing to compare; bless a session
- rustc differs: 'rustc 1.95.0' here, 'rustc 1.94.0' in 1 of 2 sessions

verdict: regressed (exit 1): decode 30 % slower (300 to 390 µs; 99.6 %: +21 to +40 %); prefill misses its target \
(prefill/* ttft_ms < 1) with 1.21 ms. 1 other case passes
";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn receipt() -> Receipt {
    read::<Receipt>(&golden("receipt-1.json")).expect("golden")
}

fn verdict() -> Verdict {
    let text = std::fs::read_to_string(golden("verdict-2.json")).expect("golden");
    serde_json::from_str(&text).expect("a verdict")
}

/// Without colour codes, as in a pipe.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest)).collect::<String>()
}

#[test]
fn a_receipt_shows_every_metric_and_the_parts_of_the_first_token() {
    let text = plain(&terminal::receipt(&receipt()));
    assert_eq!(text, RECEIPT, "{text}");
}

#[test]
fn a_verdict_shows_each_case_then_remarks_then_the_decision() {
    let text = plain(&terminal::verdict(&verdict(), "SUBJECT"));
    assert_eq!(text, VERDICT, "{text}");
}

#[test]
fn missing_is_a_dash_and_a_percentile_of_too_few_says_what_it_takes() {
    let mut receipt = receipt();
    receipt.probes = None;
    for case in &mut receipt.cases {
        case.processes.truncate(1);
        case.processes[0].samples_ns.truncate(1);
    }
    let text = plain(&terminal::receipt(&receipt));
    let decode = text.lines().find(|line| line.starts_with("decode/")).expect("a row");
    assert!(decode.contains("— (takes 6)"), "{decode}");
    assert!(!decode.contains(" 0 ") && !decode.contains("NaN"), "{decode}");
}

#[test]
fn units_leave_three_digits() {
    for (ns, text) in [
        (0.5, "0.50 ns"),
        (999.0, "999 ns"),
        (1_480.0, "1.48 µs"),
        (22_500_000.0, "22.5 ms"),
        (121_400_000.0, "121 ms"),
        (1_477_000_000.0, "1.48 s"),
    ] {
        assert_eq!(units::duration(Some(ns)), text);
    }
    assert_eq!(units::duration(None), "—");
    assert_eq!(units::percent(Some(0.042)), "4.2 %");
    assert_eq!(units::percent(Some(0.62)), "62 %");
    assert_eq!(
        [0.0041, 1e-6, 1.3e-7, 0.045, 0.0].map(units::tiny),
        ["0.41 %", "0.0001 %", "0.000013 %", "4.5 %", "0 %"]
    );
    assert_eq!(units::signed_percent(-0.017), "-1.7 %");
    assert_eq!([-0.05, 0.5, 30_039.98].map(units::size_of_change), ["5.0 %", "50 %", "30,000 times"]);
    assert_eq!(
        [8.99, 9.0, 998.0, 30_039.98, 1e20].map(units::signed_percent),
        ["+899.0 %", "10.0 times", "999 times", "30,000 times", "1.0e20 times"]
    );
    assert_eq!([-0.0002, 0.0, 0.0002].map(units::signed_percent), ["0.0 %"; 3], "nothing has no sign");
    assert_eq!(units::tokens_per_s(Some(44.44)), "44.4 tok/s");
    assert_eq!(units::durations(15.5e6, 16.2e6), "15.5 to 16.2 ms");
    assert_eq!(units::durations(980e3, 1.02e6), "980 µs to 1.02 ms");
    assert_eq!(units::signed_range(0.048, 0.065), "+4.8 to +6.5 %");
    assert_eq!(units::signed_range(-0.02, 0.397), "-2 to +40 %");
    assert_eq!(units::signed_range(-0.001, 0.397), "0 to +40 %");
}

/// A phase of 20 runs, and 20 that confirm, whose heap takes 20 KiB more each time.
fn memory_receipt() -> MemoryReceipt {
    const MIB: u64 = 1 << 20;
    let sample = |live_bytes, rss_bytes, mapped_bytes| MemorySample {
        live_bytes: Some(live_bytes),
        live_blocks: Some(100),
        rss_bytes: Some(rss_bytes),
        mapped_bytes: Some(mapped_bytes),
        ..MemorySample::default()
    };
    let mut runs = MemorySeries::default();
    for run in 0..40 {
        let leaked = MemorySample { live_blocks: Some(100 + run), ..sample(21 * MIB + run * 20480, 33 * MIB, 0) };
        runs.push(&leaked);
    }
    let golden = receipt();
    let counted = |id: &str, counters: &[(&str, u64, u64)]| CountedCase {
        id: id.parse().expect("a case"),
        output_sha256: String::new(),
        counters: counters.iter().map(|(name, min, max)| ((*name).into(), Counter { min: *min, max: *max })).collect(),
        reached_twice: Default::default(),
    };
    MemoryReceipt {
        schema: MEMORY_SCHEMA.into(),
        created: golden.created,
        tool: golden.tool,
        machine: golden.machine,
        build: golden.build,
        engine: infergate::engine::EngineInfo { weight_bytes: Some(16 * MIB), ..golden.engine },
        threads: 2,
        seed: 1,
        held: std::collections::BTreeMap::new(),
        counted: vec![
            counted("decode/p128", &[("allocations_per_token", 700, 702), ("peak_live_bytes", 4096, 4096)]),
            counted("prefill/p8", &[("peak_live_bytes", 128, 128)]),
        ],
        memory: MemoryRecord {
            partial: false,
            invalid: Vec::new(),
            missing: vec!["shared and anonymous pages are not told apart: there is no /proc/self/smaps_rollup".into()],
            load: LoadMemory {
                before: sample(MIB, 8 * MIB, 2 * MIB),
                after: sample(21 * MIB, 32 * MIB, 5 * MIB),
                peak_rss_bytes: Some(40 * MIB),
                peak_live_bytes: Some(27 * MIB),
            },
            inference: Some(InferenceMemory {
                cache_expected_bytes: Some(191 << 10),
                sequence_bytes: Some(MIB),
                prefill_peak_bytes: Some(512 << 10),
                growth_bytes: Some(-2048),
                decode_growth_bytes: Some(0),
            }),
            case: "generate/p128-o64".parse().expect("a case"),
            warm_up_runs: 5,
            asked_runs: 20,
            runs,
            sites: vec![LeakSite {
                bytes_per_run: 20480.0,
                blocks_per_run: 1.0,
                frames: vec!["push at src/cache.rs:12".into()],
            }],
        },
    }
}

#[test]
fn a_memory_phase_shows_loading_one_run_all_runs_and_where_it_leaks() {
    let receipt = memory_receipt();
    let verdict = Verdict::of(judge(&receipt.memory), Vec::new());
    assert_eq!(plain(&terminal::memory(&receipt, &verdict)), MEMORY);
}

#[test]
fn a_sparkline_has_the_height_of_its_range_and_never_less_than_asked_for() {
    assert_eq!(sparkline(&[], 10, 0), "");
    assert_eq!(sparkline(&[5, 5, 5], 10, 0), "▁▁▁");
    assert_eq!(sparkline(&[0, 7, 14], 10, 0), "▁▄█");
    assert_eq!(sparkline(&[0, 1, 2], 10, 1 << 20), "▁▁▁", "noise is no mountain");
    assert_eq!(sparkline(&[1, 9, 2, 3], 2, 0), "█▂", "the largest of its share");
    assert_eq!(sparkline(&[0, u64::MAX], 10, 0), "▁█");
}
