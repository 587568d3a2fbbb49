//! What pages and comments have, whatever they are made of.

use infergate_receipts::{Against, Evidence, Metric, Note, Outcome, Subject, TimeEvidence, Verdict, VerdictRow};
use infergate_report::inputs::{Inputs, Links};

use crate::report_formats::support::{file, files, paired, two_runs};

/// Many cases with names as long as a name may be, of characters that take more room when they are escaped, and many notes.
#[test]
fn five_hundred_cases_fit_into_a_comment() {
    let row = |n: usize| {
        let subject: Subject = format!("load:{n}{}", "`|<&*".repeat(39)).parse().expect("a name");
        let mut time = TimeEvidence::new(Metric::Itl, Against::Base);
        (time.base_ns, time.head_ns, time.ratio) = (Some(1e6), Some(1.05e6), Some(1.05));
        let outcome = if n.is_multiple_of(2) { Outcome::Regressed } else { Outcome::WithinLimit };
        VerdictRow::new(subject, outcome, Evidence::Time(time))
    };
    let notes = (0..900).map(|n| Note::from(format!("note {n} {}", "x".repeat(1_900)))).collect();
    let mut inputs = paired();
    inputs.verdict = Some(Verdict::of((0..500).map(row).collect(), notes));
    let comment = file(&inputs, "comment.md");
    assert!(comment.len() < 65_536, "{} bytes", comment.len());
    assert!(comment.contains("more, in the report"), "what is left out is counted");
    assert_eq!(comment.matches("<details>").count(), comment.matches("</details>").count());
    assert_eq!(file(&inputs, "annotations.txt").lines().count(), 10, "GitHub shows ten");
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    let page = file(&two_runs(), "report.html");
    assert!(page.contains("default-src 'none'"));
    for address in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn a_page_links_both_commits_at_its_top() {
    let links = Links { repository: "https://github.com/o/r".into(), run: String::new(), files: String::new() };
    let page = file(&Inputs { links: Some(links), ..paired() }, "report.html").replace("&#x2f;", "/");
    let (top, _) = page.split_once("<main>").expect("the top");
    for (name, id) in
        [("base", "fedcba9876543210fedcba9876543210fedcba98"), ("head", "0123456789abcdef0123456789abcdef01234567")]
    {
        assert!(top.contains(&format!("<a href=\"https://github.com/o/r/commit/{id}\">{name}</a>")), "{top}");
    }
}

#[test]
fn of_what_passes_there_is_no_picture() {
    let mut inputs = paired();
    let pictures = |inputs: &Inputs| {
        let names = files(inputs).into_iter().map(|file| file.name);
        names.filter(|name| name.ends_with(".svg")).collect::<Vec<_>>()
    };
    assert!(pictures(&inputs).contains(&"pictures/memory.svg".to_owned()));
    for row in &mut inputs.verdict.as_mut().expect("a verdict").rows {
        row.outcome = if matches!(row.evidence, Evidence::Memory(_)) { Outcome::Pass } else { Outcome::WithinLimit };
    }
    assert_eq!(pictures(&inputs), ["pictures/changes.svg"]);
}
