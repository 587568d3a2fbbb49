//! What a person reads, as a whole and to the letter.

use std::path::{Path, PathBuf};

use infergate::receipt::{Outcome, Receipt, Verdict, read_receipt};
use infergate::report::{terminal, units};

const RECEIPT: &str = "
synthetic:tiny (f32) on candle 0.11.1, 2 threads, linux-x86_64-amd-epyc-2

case                time      TTFT       ITL p50     TPOT       decode   throughput      CV   samples   of hardware
prefill/p8       1.23 ms   1.23 ms             —        —            —            —   1.2 %         6         0.4 %
decode/p8         300 µs         —        300 µs        —   3333 tok/s            —   1.0 %         6         5.2 %
generate/p8-o3   1.81 ms   1.21 ms   — (takes 6)   300 µs   3333 tok/s   1657 tok/s   1.4 %         3         2.0 %

cold TTFT at 8 tokens: 9.30 ms = load 8.00 ms + tokenize — + prefill 1.29 ms + first sample 10.0 µs
warm TTFT at 8 tokens: 1.20 ms = tokenize — + prefill 1.19 ms + first sample 10.0 µs
";

const VERDICT: &str = "
SUBJECT

case          base     head                         change   fails above   of hardware   output     verdict
decode/p8   300 µs   390 µs   +30.0 % (+21.0 % to +39.7 %)       +10.0 %         4.0 %     same   regressed

- prefill/p8: target prefill/* ttft_ms < 1 is missed with 1.2
- rustc differs: 'rustc 1.95.0' here, 'rustc 1.94.0' in 1 of 2 sessions

verdict: regressed (exit 1), decode/p8: itl_ns +30.0 %, and it fails above +10.0 %
";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn receipt() -> Receipt {
    read_receipt(&golden("receipt-1.json")).expect("golden")
}

fn verdict() -> Verdict {
    let text = std::fs::read_to_string(golden("verdict-1.json")).expect("golden");
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
fn the_decision_is_the_last_line_and_has_its_colour() {
    let mut verdict = verdict();
    let last = |verdict: &Verdict| terminal::verdict(verdict, "").lines().last().unwrap_or_default().to_owned();
    assert!(last(&verdict).starts_with("verdict: \u{1b}[31mregressed\u{1b}[0m (exit 1), "), "{}", last(&verdict));
    verdict.cases.truncate(1);
    (verdict.verdict, verdict.exit_code) = (Outcome::Pass, 0);
    assert_eq!(last(&verdict), "verdict: \u{1b}[32mpass\u{1b}[0m (exit 0), time is shown and not judged");
}

#[test]
fn a_run_cut_short_or_invalid_says_so() {
    let mut receipt = receipt();
    receipt.partial = true;
    receipt.invalid.push("decode/p8: output token 2 differs".into());
    let text = plain(&terminal::receipt(&receipt));
    assert!(text.contains("\ninvalid: decode/p8: output token 2 differs\npartial: the run was cut short\n"), "{text}");
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
    assert_eq!(units::signed_percent(-0.017), "-1.7 %");
    assert_eq!(units::tokens_per_s(Some(44.44)), "44.4 tok/s");
}
