//! Text of others on a terminal: one line, and nothing that a terminal obeys.

use infergate_core::printable::{printable, printable_line, printable_report, printable_within};

#[test]
fn what_a_terminal_obeys_is_shown_instead() {
    for (text, shown) in [
        ("SmolLM2-135M (模型) ±µ é", "SmolLM2-135M (模型) ±µ é"),
        ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ("a\nverdict: pass\r\tb", "a verdict: pass  b"),
        ("a\u{9b}31mb\u{7f}\0", "a\\u{9b}31mb\\u{7f}\\u{0}"),
        ("evil\u{202e}ssap", "evil\\u{202e}ssap"),
        ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ("\u{2028}line", "\\u{2028}line"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
        ("none\u{ffff}\u{fffe}\u{1ffff}\u{fdd0}", "none\\u{ffff}\\u{fffe}\\u{1ffff}\\u{fdd0}"),
        ("filler\u{3164}\u{ffa0}", "filler\\u{3164}\\u{ffa0}"),
    ] {
        assert_eq!(printable(text), shown);
    }
}

#[test]
fn what_is_too_long_is_cut() {
    assert_eq!(printable_within("模型模型", 3), "模型模…");
    assert_eq!(printable_within("模型模", 3), "模型模");
    assert_eq!(printable(&"x".repeat(1_000_000)).chars().count(), 2_001);
}

#[test]
fn a_report_keeps_its_lines_and_colours_and_nothing_else() {
    let own = "\u{1b}[1;31merror:\u{1b}[0m words\n";
    assert_eq!(printable_report(own), own);
    let cursor = "\u{1b}[2A\u{1b}]0;title\u{7}\u{1b}[38;5;1m\u{1b}[;m\u{1b}[1\u{1b}";
    assert_eq!(printable_report(cursor), "\\u{1b}[2A\\u{1b}]0;title\\u{7}\u{1b}[38;5;1m\u{1b}[;m\\u{1b}[1\\u{1b}");
    let long = format!("\u{1b}[{}m", "1;".repeat(100_000));
    assert!(printable_report(&long).starts_with("\\u{1b}[1;"));
}

/// GitHub's runner looks for `::` behind white space, and for `##[` anywhere.
#[test]
fn no_line_is_a_command_of_a_ci() {
    for (text, shown) in [
        ("::error::x", ":\\u{3a}error::x"),
        (" \u{2003}::add-mask::x", " \u{2003}:\\u{3a}add-mask::x"),
        ("words ::error::x\n::error::y", "words ::error::x\n:\\u{3a}error::y"),
        ("a ##[error]x", "a ##\\u{5b}error]x"),
        ("a ###[error]x", "a ###\\u{5b}error]x"),
        ("##vso[task.complete]", "##vso\\u{5b}task.complete]"),
        ("##teamcity[x", "##teamcity\\u{5b}x"),
        ("std::fs is #[cfg(test)] ## [x]: a::b", "std::fs is #[cfg(test)] ## [x]: a::b"),
    ] {
        assert_eq!(printable_report(text), shown);
    }
}

#[test]
fn a_line_of_another_process_is_one_line() {
    assert_eq!(printable_line("a\u{1b}[31mb\r::error::x"), "a\\u{1b}[31mb ::error::x");
    assert_eq!(printable_line("\r::error::x\n::error::y"), " :\\u{3a}error::x ::error::y");
    assert_eq!(printable_line(&"x".repeat(100_000)).len(), 100_000);
}
