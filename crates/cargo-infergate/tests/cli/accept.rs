//! `[[accept]]` in infergate.toml: what head declares as intended, from the file to the comment.

use std::fs;

use infergate_receipts::{Outcome, Verdict, read};

use crate::revisions::{commit, repository, run};
use crate::sandbox::{Sandbox, decision, error, stdout};

const SLOWER: &str = "pub const STEP_NS: u64 = 1_050_000;\n";

/// A repository whose working tree is 5 % slower than its last commit.
fn slower() -> Sandbox {
    let sandbox = repository();
    commit(&sandbox, "infergate.toml", "cases = ['decode/p8']\n", "settings");
    sandbox.write("engine.rs", SLOWER);
    sandbox
}

fn gate(sandbox: &Sandbox) -> assert_cmd::assert::Assert {
    run(sandbox, &["gate", "--against", "HEAD", "--json=verdict.json", "--report=report"])
}

fn comment(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path("report/comment.md")).expect("a comment")
}

/// What stands between the lines `[[accept]]` and the next empty line or end of a block.
fn table(text: &str) -> String {
    let begin = text.find("[[accept]]").unwrap_or_else(|| panic!("a table: {text}"));
    text[begin..].lines().take_while(|line| !line.is_empty() && *line != "```").collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_of_a_gate_that_failed_is_copied_given_a_reason_and_lets_it_pass_once() {
    let sandbox = slower();
    let said = gate(&sandbox).code(1);
    let (shown, copied) = (table(&stdout(&said)), table(&comment(&sandbox)));
    assert_eq!(shown, copied, "the same on the terminal and in the comment");
    assert!(copied.starts_with("[[accept]]\ncase = \"decode/p8\"\nmetric = \"itl_ns\"\nup_to = \"5"), "{copied}");
    assert!(stdout(&said).contains("Is it intended? Then add to infergate.toml"), "{}", stdout(&said));
    let told = fs::read_to_string(sandbox.path("verdict.json")).expect("a verdict");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let headline = told["headline"].as_str().expect("a sentence");
    assert_eq!(decision(&said), format!("verdict: regressed (exit 1): {headline}"));
    assert!(told["accept"].as_str().is_some_and(|tables| tables.starts_with(&copied)), "{told}");

    // As it is it declares nothing.
    let settings = |table: &str| format!("cases = ['decode/p8']\n\n{table}\n");
    sandbox.write("infergate.toml", &settings(&copied));
    let line = error(gate(&sandbox));
    assert!(line.contains("infergate.toml:3: accept") && line.contains("say why this is meant"), "{line}");

    let meant = settings(&copied.replace("reason = \"\"", "reason = \"checks each token\""));
    sandbox.write("infergate.toml", &meant);
    let said = gate(&sandbox).success();
    let reason = "head declares this as intended up to 5";
    assert!(stdout(&said).contains(reason) && stdout(&said).contains("checks each token"), "{}", stdout(&said));
    let intended = "verdict: pass (exit 0): head declares as intended: decode 5.0 % slower";
    assert!(decision(&said).starts_with(intended), "{}", decision(&said));
    let page = comment(&sandbox);
    let first: Vec<&str> = page.lines().filter(|line| !line.is_empty()).take(5).collect();
    assert!(first[1].starts_with("### ⚠") && first[1].ends_with("infergate: pass"), "{page}");
    assert_eq!(first[3], "**Intended, as head declares; merging accepts it**");
    assert!(first[4].starts_with("- decode/p8: ITL +5.0 %"), "{page}");
    assert!(first[4].ends_with("checks each token"), "{page}");
    assert!(!page.contains("[[accept]]"), "nothing is left to declare: {page}");
    let verdict: Verdict = read(&sandbox.path("verdict.json")).expect("a verdict");
    assert!(verdict.rows.iter().any(|row| row.outcome == Outcome::Accepted));

    // Merged, it is stale: the next slowdown needs a table of its own.
    commit(&sandbox, "infergate.toml", &meant, "merged");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_102_500;\n");
    let said = gate(&sandbox).code(1);
    let stale = "[[accept]] of decode/p8, itl_ns (checks each token): base has it already, so it has no effect";
    assert!(stdout(&said).contains(stale), "{}", stdout(&said));
}

#[test]
fn a_table_that_is_not_sound_is_refused_with_its_line() {
    let sandbox = repository();
    let whole = "case = 'decode/p8'\nmetric = 'itl_ns'\nup_to = '5%'\nreason = 'meant'\n";
    for (table, said) in [
        (whole.replace("reason", "raeson"), "unknown field `raeson`"),
        (whole.replace("reason = 'meant'\n", ""), "missing field `reason`"),
        (whole.replace("'meant'", "'  '"), "the reason is empty; say why this is meant"),
        (whole.replace("up_to = '5%'\n", ""), "up_to is missing; say how far, for example \"5%\""),
        (whole.replace("'5%'", "5"), "up_to of a time is a percentage"),
        (whole.replace("'5%'", "'-5%'"), "up_to is above 0"),
        (whole.replace("'5%'", "'nan%'"), "up_to is above 0"),
        (whole.replace("'5%'", "'much'"), "up_to takes a percentage"),
        (whole.replace("'itl_ns'", "'output'"), "it has no up_to"),
        (whole.replace("itl_ns", "itl_ms"), "decode/p8, itl_ms: a time ends in _ns here, for example itl_ns"),
        (whole.replace("'decode/p8'", "'decode/p0'"), "case 'decode/p0'"),
        (format!("{whole}[[accept]]\n{whole}"), "decode/p8, itl_ns: is there twice; leave one"),
        (whole.replace("meant", &"x".repeat(500)), "the reason has 500 bytes, at most 400 are read"),
    ] {
        sandbox.write("infergate.toml", &format!("\n[[accept]]\n{table}"));
        let line = error(gate(&sandbox));
        assert!(line.contains(said) && line.contains("infergate.toml:"), "{said}: {line}");
    }
    let tables: String =
        (0..51).map(|n| format!("[[accept]]\n{}", whole.replace("itl_ns", &format!("c{n}")))).collect();
    sandbox.write("infergate.toml", &tables);
    assert!(error(gate(&sandbox)).contains("51 are too many, at most 50 are read"));
}
