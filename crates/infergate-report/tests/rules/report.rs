//! What a person reads on a terminal.

use std::path::Path;

use infergate_receipts::{Format, Outcome, Receipt, Verdict, read};
use infergate_report::words::sparkline;
use infergate_report::{terminal, units};

fn golden<T: Format>(name: &str) -> T {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)).expect("golden")
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_decision_is_the_last_line_and_has_its_colour() {
    let mut verdict: Verdict = golden("verdict-1.json");
    let last = |verdict: &Verdict| terminal::verdict(verdict, "").lines().last().unwrap_or_default().to_owned();
    assert!(last(&verdict).starts_with("verdict: \u{1b}[31mregressed\u{1b}[0m (exit 1): "), "{}", last(&verdict));
    verdict.rows.truncate(1);
    (verdict.verdict, verdict.exit_code) = (Outcome::Pass, 0);
    assert!(last(&verdict).starts_with("verdict: \u{1b}[32mpass\u{1b}[0m (exit 0): "), "{}", last(&verdict));
}

#[test]
fn a_run_cut_short_or_invalid_says_so() {
    let mut receipt: Receipt = golden("receipt-1.json");
    receipt.partial = true;
    receipt.invalid.push("decode/p8: output token 2 differs".into());
    let text = plain(&terminal::receipt(&receipt));
    assert!(text.contains("\ninvalid: decode/p8: output token 2 differs\npartial: the run was cut short\n"), "{text}");
}

#[test]
fn missing_is_a_dash_and_a_percentile_of_too_few_says_what_it_takes() {
    let mut receipt: Receipt = golden("receipt-1.json");
    receipt.probes = None;
    for case in &mut receipt.cases {
        case.processes.truncate(1);
        case.processes[0].samples_ns.truncate(1);
    }
    let text = plain(&terminal::receipt(&receipt));
    let decode = text.lines().find(|line| line.starts_with("decode/")).expect("a row");
    assert!(decode.contains("—"), "{decode}");
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
        [0.0041, 1e-6, 1.3e-7, 0.045, 0.0].map(units::precise),
        ["0.41 %", "0.0001 %", "0.000013 %", "4.5 %", "0 %"]
    );
    assert_eq!(units::signed_percent(-0.017), "-1.7 %");
    assert_eq!([-0.05, 0.5, 30_039.98].map(units::size_of_change), ["5.0 %", "50 %", "30041 times"]);
    assert_eq!(
        [8.99, 9.0, 998.0, 30_039.98, 1e20].map(units::signed_percent),
        ["+899.0 %", "10.0 times", "999 times", "30041 times", "1.0e20 times"]
    );
    assert_eq!([-0.0002, 0.0, 0.0002].map(units::signed_percent), ["0.0 %"; 3], "nothing has no sign");
    assert_eq!(units::tokens_per_s(Some(44.44)), "44.4 tok/s");
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
