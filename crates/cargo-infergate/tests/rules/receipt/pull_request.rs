//! The door for what a pull request's job uploads.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use cargo_infergate::paired::run_seed;
use infergate_core::config::SEEDS;
use infergate_core::receipt::limits::MAX_MEMORY_RUNS;
use infergate_core::stats::normal;
use infergate_judge::paired::{Policy, fit_to_upload, judge_without_power, mean_test};
use infergate_receipts::{BlockCase, MOST_UPLOADED_BYTES, MemorySeries, PairedReceipt, parse_uploaded, to_json};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::gate::support::measured;
use crate::receipt::support::golden_text;

const MOST_KIB: u64 = 256 << 10;

/// `golden` with `fields` in front of its own, and as many `entries` as a file has room for at `{}`.
fn swollen(fields: &str, entry: &str) -> String {
    let golden = golden_text("paired-1.json");
    let room = MOST_UPLOADED_BYTES - golden.len() - fields.len() - entry.len();
    let entries = vec![entry; room / (entry.len() + 1)].join(",");
    golden.replacen('{', &format!("{{{},", fields.replace("{}", &entries)), 1)
}

/// `golden` with the longest memory phase that there can be, which rises all along.
fn followed_longest(mut golden: PairedReceipt) -> String {
    let memory = golden.memory.as_mut().expect("a memory phase");
    memory.asked_runs = MAX_MEMORY_RUNS;
    let rss_bytes = (0..2 * MAX_MEMORY_RUNS as u64).map(|run| (1 << 30) + (run << 12)).collect();
    memory.runs = MemorySeries { rss_bytes, ..MemorySeries::default() };
    to_json(&golden).expect("JSON")
}

#[test]
fn whatever_it_holds_the_command_stays_small() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("the search for infergate.toml ends here");
    let place = folder.path().join("paired.json");
    let golden = parse_uploaded(golden_text("paired-1.json").as_bytes()).expect("a sound receipt");
    let [base, head] = [&golden.base, &golden.head].map(|side| side.build.commit.clone().expect("a commit"));
    let texts = [
        swollen("\"x\":[{}]", "0"),
        "[".repeat(MOST_UPLOADED_BYTES),
        format!("{{\"schema\":\"{}\"}}", "x".repeat(MOST_UPLOADED_BYTES - 20)),
        swollen("\"notes\":[{}]", "\"\""),
        swollen("\"notes\":[{\"x\":[{}],\"kind\":\"broken\"}]", "0"),
        swollen("\"notes\":[{\"x\":[{}],\"kind\":\"broken\"}]", "{}"),
        swollen("\"blocks\":[{}]", "{\"ran_first\":\"base\",\"cases\":[]}"),
        swollen("\"other_lengths\":[{}]", "[]"),
        swollen("\"resumed\":[{}]", "0"),
        swollen("\"explained\":[{}]", "{\"id\":\"decode/p8\"}"),
        followed_longest(golden),
    ];
    for text in texts {
        assert!(text.len() <= MOST_UPLOADED_BYTES + 4, "{}", text.len());
        fs::write(&place, &text).expect("a file");
        // The limit counts all memory that the process may write to, resident or not.
        let script = format!(
            "ulimit -d {MOST_KIB} && exec \"$0\" infergate report paired.json --pull-request \
             --base {base} --head {head} --out out"
        );
        let output = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_cargo-infergate")])
            .current_dir(folder.path())
            .output()
            .expect("starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{:.80}: {:?} {stderr}", text, output.status);
    }
}

#[test]
fn numbers_and_texts_that_no_run_gives_are_refused() {
    let golden = golden_text("paired-1.json");
    parse_uploaded(golden.as_bytes()).expect("a sound receipt");
    for field in ["\"x\": 1e300", "\"x\": 18446744073709551615", &format!("\"x\": \"{}\"", "x".repeat(70_000))] {
        let text = golden.replacen('{', &format!("{{{field},"), 1);
        assert!(parse_uploaded(text.as_bytes()).is_err(), "{field:.30}");
    }
}

#[test]
fn every_seed_of_a_run_is_read() {
    let golden = parse_uploaded(golden_text("paired-1.json").as_bytes()).expect("a sound receipt");
    let most = *SEEDS.end();
    for seed in [most, run_seed(0), run_seed(most)] {
        let text = to_json(&PairedReceipt { seed, ..golden.clone() }).expect("JSON");
        assert_eq!(parse_uploaded(text.as_bytes()).expect("its seed is one of a run").seed, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_receipt_of_medians_is_judged_as_the_whole(
        seed in any::<u64>(),
        slower in prop::collection::vec(-0.05_f64..0.08, 1..=4),
        noise in 0.001_f64..0.05,
        pairs in 1..9_usize,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut whole = measured("decode/p8", 10_000_000, &[0.0; 24]);
        whole.cases[0].mean = Some(mean_test(None, 1.02, None));
        for (at, case) in whole.blocks.iter_mut().flat_map(|block| &mut block.cases).enumerate() {
            case.placements = (0..slower.len()).map(|placement| (placement + at) % slower.len()).collect();
            case.base_ns = vec![10_000_000; slower.len() * pairs];
            let of_pair = |placement: &usize| (1e7 * (slower[*placement] + noise * normal(&mut random)).exp()) as u64;
            let each = case.placements.iter().flat_map(|placement| std::iter::repeat_n(placement, pairs));
            case.head_ns = each.map(of_pair).collect();
        }
        let reduced = fit_to_upload(whole.clone(), 1).expect("JSON");
        let of_pairs = |case: &BlockCase| (case.base_ns.len(), case.means.len()) == (slower.len(), slower.len());
        prop_assert!(reduced.blocks.iter().flat_map(|block| &block.cases).all(of_pairs));
        let outcomes = |receipt| {
            let verdict = judge_without_power(receipt, &Policy::default());
            verdict.rows.iter().map(|row| (row.subject.clone(), row.outcome)).collect::<Vec<_>>()
        };
        prop_assert_eq!(outcomes(&reduced), outcomes(&whole));
        prop_assert_eq!(fit_to_upload(whole.clone(), MOST_UPLOADED_BYTES).expect("JSON"), whole);
    }
}
