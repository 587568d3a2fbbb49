//! Receipts that nobody meant well: what is in them becomes no script, no link, no mention, no command and no path.

use cargo_infergate::receipt::{
    Evidence, LeakSite, Note, Outcome, OutputComparison, OutputEvidence, Subject, TargetRecord, VerdictRow,
};
use cargo_infergate::report::export::File;
use cargo_infergate::report::inputs::Inputs;
use infergate_core::load::{Failure, FailureClass};
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::report_formats::runs;
use crate::report_formats::support::{file, files, load, memory, paired, two_runs};

const BAD: &str = "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)> | `` ``` **bold** [a](javascript:x) \
                   ![p](http://evil.example/p.png) www.evil.example @octocat #1 org/repo#2 =1+1 \"' %0A::error::x\n::error::y\n\
                   ::add-mask::z\r\n| a | b |\n\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}reversed";

fn hostile(mut inputs: Inputs) -> Inputs {
    if let Some(head) = &mut inputs.head {
        head.engine.model = BAD.into();
        head.engine.name = BAD.into();
        head.machine.class = BAD.into();
        head.machine.cpu_model = BAD.into();
        head.build.rustc = BAD.into();
        head.build.commit = Some("$(rm -rf /)".into());
        head.created = BAD.into();
        head.invalid.push(BAD.into());
    }
    if let Some(paired) = &mut inputs.paired {
        paired.head.engine.model = "../../etc/passwd".into();
        paired.machine.class = BAD.into();
        paired.base.build.commit = Some("--exec=sh; true".into());
        paired.head.build.flags = BAD.into();
    }
    if let Some(memory) = &mut inputs.memory {
        memory.engine.model = BAD.into();
        memory.memory.missing.push(BAD.into());
        memory.memory.sites = vec![LeakSite { bytes_per_run: 1.0, blocks_per_run: 1.0, frames: vec![BAD.into(); 3] }];
    }
    if let Some(run) = &mut inputs.load {
        (run.created, run.tool, run.machine.class) = (BAD.into(), BAD.into(), BAD.into());
        run.machine.cpu_model = BAD.into();
        run.invalid.push(BAD.into());
        run.notes.push(BAD.into());
        // The same name twice is one file's name twice.
        for scenario in &mut run.scenarios {
            scenario.name = BAD.into();
        }
        for target in &mut run.targets {
            let TargetRecord::Endpoint { name, url, api, model, http, extensions, .. } = target else { continue };
            *name = format!("{name}{BAD}");
            (*url, *api, *model, *http) = (BAD.into(), BAD.into(), "../../etc/passwd".into(), BAD.into());
            *extensions = vec![BAD.into(); 3];
        }
        for request in run.levels.iter_mut().flat_map(|level| level.requests.iter_mut().take(3)) {
            request.failure = Some(Failure { class: FailureClass::Timeout, status: None, detail: BAD.into() });
        }
    }
    if let Some(verdict) = &mut inputs.verdict {
        let subject: Subject = "criterion:<script>alert(3)</script>|`@octocat` #3".parse().expect("a name");
        let output = OutputEvidence { position: Some(3), ..OutputEvidence::new(OutputComparison::Changed) };
        verdict.rows.push(VerdictRow::new(subject, Outcome::OutputChanged, Evidence::Output(output)));
        verdict.notes.push(Note::from(BAD.to_owned()));
        verdict.notes.push(Note::Differs {
            what: BAD.into(),
            base: BAD.into(),
            head: BAD.into(),
            sessions: None,
            paired: true,
        });
    }
    inputs
}

/// Those that were judged.
fn judged() -> [Inputs; 3] {
    [hostile(two_runs()), hostile(paired()), hostile(memory())]
}

fn each() -> Vec<Inputs> {
    let loads = [runs::scenarios(), runs::targets()].map(|receipt| hostile(load(receipt)));
    judged().into_iter().chain(loads).collect()
}

#[test]
fn no_file_has_a_name_of_its_own_making() {
    for inputs in each() {
        for file in files(&inputs) {
            let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./_".contains(c);
            assert!(file.name.chars().all(safe), "{}", file.name);
            assert!(!file.name.contains("..") && !file.name.starts_with('/'), "{}", file.name);
        }
    }
}

#[test]
fn no_file_holds_control_characters() {
    for inputs in each() {
        for file in files(&inputs) {
            let text = String::from_utf8(file.bytes).expect("text");
            let bad = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
            assert_eq!(text.chars().find(bad), None, "{}", file.name);
        }
    }
}

#[test]
fn a_page_has_one_script_and_no_handler() {
    for inputs in each() {
        let page = file(&inputs, "report.html");
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("</script").count(), 1);
        for tag in ["<img", "<svg><script", "<iframe", "javascript:x\""] {
            assert!(!page.contains(tag), "{tag}");
        }
    }
}

#[test]
fn markdown_makes_no_link_mention_or_html_of_a_receipt() {
    for inputs in each() {
        let pages = files(&inputs).into_iter().filter(|file| ["comment.md", "report.md"].contains(&&*file.name));
        for File { name, bytes } in pages {
            let text = String::from_utf8(bytes).expect("text");
            for line in text.lines() {
                // An escaped bracket is no link's.
                let bare = without_code(line).replace("\\[", "").replace("\\]", "");
                for bad in [
                    "<script",
                    "<img",
                    "</title",
                    "http://",
                    "](javascript",
                    "](http",
                    "@octocat",
                    "www.evil",
                    "#1",
                    "#2",
                ] {
                    assert!(!bare.contains(bad), "{name}: {bad} in {line}");
                }
            }
            assert!(!text.contains("$(rm"), "{name}: a commit that is none stands nowhere");
            assert!(!text.contains("--exec"), "{name}");
        }
    }
}

/// What of a line stands outside of code, by the rule of CommonMark: a run of backticks is closed by one of the same length.
pub fn without_code(line: &str) -> String {
    let mut bare = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let escaped = rest[..at].ends_with('\\');
        bare += &rest[..at];
        let length = rest[at..].chars().take_while(|c| *c == '`').count();
        let after = &rest[at + length..];
        let end = if escaped { None } else { closing(after, length) };
        match end {
            Some(end) => rest = &after[end..],
            None => rest = after,
        }
    }
    bare + rest
}

fn closing(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let run = text[at + found..].chars().take_while(|c| *c == '`').count();
        if run == length {
            return Some(at + found + run);
        }
        at += found + run;
    }
    None
}

#[test]
fn tables_keep_their_columns() {
    for inputs in each() {
        let text = file(&inputs, "report.md");
        let mut columns = None;
        for line in text.lines() {
            if !line.starts_with('|') {
                columns = None;
                continue;
            }
            let count = line.replace("\\|", "").matches('|').count();
            assert_eq!(*columns.get_or_insert(count), count, "{line}");
        }
    }
}

/// Two scenarios of one name have pictures of their own.
#[test]
fn no_picture_takes_the_place_of_another() {
    for inputs in each() {
        let report = cargo_infergate::report::topics::report(&inputs);
        let mut names: Vec<&str> = report.charts().map(|chart| chart.id.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}

/// Many levels of many requests make no picture of megabytes either.
#[test]
fn pictures_of_a_long_load_run_stay_small() {
    let mut receipt = runs::scenarios();
    receipt.levels = vec![runs::level(0, 100, 200, |number| runs::Answers::new(100 + number % 7, 10, 4))];
    for file in files(&load(receipt)).iter().filter(|file| file.name.ends_with(".svg")) {
        assert!(file.bytes.len() < 600_000, "{}: {} bytes", file.name, file.bytes.len());
    }
}

/// A request of many tokens and a case of many samples make no picture of megabytes.
#[test]
fn pictures_stay_small() {
    let mut inputs = two_runs();
    let head = inputs.head.as_mut().expect("a run");
    let mut long = head.cases[2].clone();
    long.id = "generate/p8-o50000".parse().expect("a case");
    long.processes[0].samples_ns = vec![(1..=50_000).map(|token| token * 1_000).collect()];
    let mut other = head.cases[0].clone();
    other.id = "prefill/p16".parse().expect("a case");
    other.processes[0].samples_ns = vec![vec![1_000_000]; 50_000];
    head.cases.extend([long, other]);
    for file in files(&inputs).iter().filter(|file| file.name.ends_with(".svg")) {
        assert!(file.bytes.len() < 600_000, "{}: {} bytes", file.name, file.bytes.len());
    }
}

#[test]
fn annotations_are_commands_of_ours_alone() {
    for inputs in judged() {
        for line in file(&inputs, "annotations.txt").lines() {
            let kind = ["::error title=infergate%3A ", "::warning title=infergate%3A ", "::notice title=infergate%3A "];
            assert!(kind.iter().any(|kind| line.starts_with(kind)), "{line}");
        }
    }
}

#[test]
fn xml_is_well_formed() {
    for inputs in each() {
        for file in files(&inputs) {
            if !file.name.ends_with(".svg") && !file.name.ends_with(".xml") {
                continue;
            }
            let text = String::from_utf8(file.bytes).expect("text");
            let mut reader = Reader::from_str(&text);
            loop {
                match reader.read_event() {
                    Ok(Event::Eof) => break,
                    Ok(_) => {}
                    Err(error) => panic!("{}: {error}", file.name),
                }
            }
            assert!(!text.contains("<script"), "{}", file.name);
        }
    }
}

#[test]
fn a_spreadsheet_computes_nothing() {
    for inputs in [hostile(two_runs()), hostile(load(runs::targets()))] {
        let csv = file(&inputs, "report.csv");
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        for record in reader.records() {
            let record = record.expect("a record");
            for text in [&record[3], &record[9]] {
                assert!(!text.starts_with(['=', '+', '-', '@']), "{text}");
            }
        }
    }
}

/// GitHub makes pictures of `:lock:`, links of `GH-1`, and addresses of whatever stands around an @.
#[test]
fn names_and_numbers_of_others_come_alive_in_no_comment() {
    let mut inputs = paired();
    let text =
        "engine::lock::acquire at 08:00:00, GH-1 gh-2 high-3, x@-evil.example x@.evil.example x@_evil.example 1 @ 2";
    inputs.verdict.as_mut().expect("judged").notes.push(Note::from(text.to_owned()));
    for name in ["comment.md", "report.md"] {
        let text = file(&inputs, name);
        let line = text.lines().find(|line| line.contains("acquire")).expect("the note");
        let own = "engine::\u{200b}lock::acquire at 08:00:00, GH-\u{200b}1 gh-\u{200b}2 high-3, x@\u{200b}-evil.example \
                   x@\u{200b}.evil.example x@\u{200b}\\_evil.example 1 @ 2";
        assert!(line.ends_with(own), "{line}");
    }
}
