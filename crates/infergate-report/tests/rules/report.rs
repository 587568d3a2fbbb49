//! What a person reads on a terminal.

use infergate_receipts::{Outcome, Receipt, Verdict};
use infergate_report::inputs::Inputs;
use infergate_report::{terminal, units};

use crate::report_formats::support::golden;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_decision_is_the_last_line_and_has_its_colour() {
    let mut verdict: Verdict = golden("verdict-1.json");
    let last = |verdict: &Verdict| terminal::verdict("", verdict, "").lines().last().unwrap_or_default().to_owned();
    assert!(
        last(&verdict).starts_with("verdict: \u{1b}[31m1 of 3 regressed\u{1b}[0m (exit 1): "),
        "{}",
        last(&verdict)
    );
    verdict.rows.truncate(1);
    (verdict.verdict, verdict.exit_code) = (Outcome::Pass, 0);
    assert!(last(&verdict).starts_with("verdict: \u{1b}[32mpass\u{1b}[0m (exit 0): "), "{}", last(&verdict));
}

#[test]
fn a_run_cut_short_or_invalid_says_so() {
    let mut receipt: Receipt = golden("receipt-1.json");
    receipt.partial = true;
    receipt.invalid.push("decode/p8: output token 2 differs".into());
    let text = plain(&terminal::report(&Inputs { head: Some(receipt), ..Inputs::default() }));
    assert!(
        text.contains("\n- invalid: decode/p8: output token 2 differs\n- partial: the run was cut short\n"),
        "{text}"
    );
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
        assert_eq!(units::duration(ns), text);
    }
    assert_eq!(units::duration(-1_480.0), "-1.48 µs");
    assert_eq!(
        [0.0041, 1e-6, 1.3e-7, 0.045, 0.62, 0.0].map(units::percent),
        ["0.41 %", "0.0001 %", "0.000013 %", "4.5 %", "62 %", "0 %"]
    );
    assert_eq!(
        [-0.017, 8.99, 9.0, 998.0, 30_039.98].map(units::change),
        ["-1.7 %", "+899 %", "+900 %", "+99800 %", "+3003998 %"]
    );
    assert_eq!([-0.0002, 0.0, 0.0002].map(units::change), ["0.0 %"; 3], "nothing has no sign");
    assert_eq!(units::tokens_per_s(44.44), "44.4 tok/s");
}
