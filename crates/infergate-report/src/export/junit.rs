//! JUnit XML, which every CI shows: one test a subject of the verdict. What was not shown to pass is no passed test.

use anyhow::Result;
use infergate_core::printable::printable;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::File;
use crate::inputs::Inputs;
use crate::model::Report;
use crate::words;
use infergate_receipts::{Outcome, Subject, Verdict, VerdictRow};

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let Some(verdict) = &inputs.verdict else { return Ok(Vec::new()) };
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    suite(&mut writer, verdict)?;
    Ok(vec![File::new("junit.xml", String::from_utf8(writer.into_inner())? + "\n")])
}

/// The rows of each subject, in the order of the verdict.
fn by_subject(verdict: &Verdict) -> Vec<(&Subject, Vec<&VerdictRow>)> {
    let mut order: Vec<(&Subject, Vec<&VerdictRow>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for row in &verdict.rows {
        let at = *known.entry(&row.subject).or_insert_with(|| {
            order.push((&row.subject, Vec::new()));
            order.len() - 1
        });
        if let Some((_, rows)) = order.get_mut(at) {
            rows.push(row);
        }
    }
    order
}

fn worst<'a>(rows: &[&'a VerdictRow]) -> Option<&'a VerdictRow> {
    // The first of the worst, as in the table.
    rows.iter().copied().rev().max_by_key(|row| row.outcome.severity())
}

fn suite(writer: &mut Writer<Vec<u8>>, verdict: &Verdict) -> Result<()> {
    let tests = by_subject(verdict);
    let mut codes: Vec<i32> = tests.iter().filter_map(|(_, rows)| worst(rows)).map(|row| code(verdict, row)).collect();
    // What keeps the whole run from a verdict stands in no row: a file whose tests all pass must not hide it.
    let whole = (verdict.exit_code != 0 && codes.iter().all(|code| *code == 0)).then_some(verdict.exit_code);
    codes.extend(whole);
    let failures = codes.iter().filter(|code| **code == 1).count();
    let errors = codes.iter().filter(|code| ![0, 1].contains(*code)).count();
    let counts = [codes.len(), failures, errors].map(|count| count.to_string());
    let said = printable(&words::headline::of(verdict)).into_owned();
    let attributes = [("name", "infergate"), ("tests", &counts[0]), ("failures", &counts[1]), ("errors", &counts[2])];
    writer.create_element("testsuite").with_attributes(attributes).write_inner_content(|writer| {
        for (subject, rows) in &tests {
            test(writer, verdict, subject, rows)?;
        }
        if let Some(code) = whole {
            let attributes = [("classname", "infergate"), ("name", "the whole run")];
            writer
                .create_element("testcase")
                .with_attributes(attributes)
                .write_inner_content(|writer| failed(writer, (code, verdict.verdict), std::slice::from_ref(&said)))?;
        }
        writer.create_element("system-out").write_text_content(BytesText::new(&said))?;
        Ok(())
    })?;
    Ok(())
}

/// The exit code that a row stands for: none where the key `undecided` lets it pass.
fn code(verdict: &Verdict, row: &VerdictRow) -> i32 {
    if verdict.exit_code == 0 { 0 } else { row.outcome.exit_code() }
}

fn test(
    writer: &mut Writer<Vec<u8>>,
    verdict: &Verdict,
    subject: &Subject,
    rows: &[&VerdictRow],
) -> std::io::Result<()> {
    let name = printable(&subject.to_string()).into_owned();
    // Head's time of the metric that is judged, in seconds, as the format wants it.
    let head_ns = rows.iter().filter_map(|row| row.time()).find(|time| time.counted).and_then(|time| time.head_ns);
    let seconds = head_ns.map(|ns| format!("{:.9}", ns / 1e9));
    let mut attributes = vec![("classname", "infergate"), ("name", name.as_str())];
    attributes.extend(seconds.as_deref().map(|seconds| ("time", seconds)));
    let element = writer.create_element("testcase").with_attributes(attributes);
    let Some(row) = worst(rows).filter(|row| code(verdict, row) != 0) else {
        element.write_empty()?;
        return Ok(());
    };
    let said: Vec<String> = rows
        .iter()
        .filter(|row| row.outcome.exit_code() != 0)
        .map(|row| printable(&words::decided(row)).into_owned())
        .collect();
    element.write_inner_content(|writer| failed(writer, (row.outcome.exit_code(), row.outcome), &said))?;
    Ok(())
}

/// Why a test did not pass: the first as its message, all of them as its text.
fn failed(writer: &mut Writer<Vec<u8>>, (code, outcome): (i32, Outcome), said: &[String]) -> std::io::Result<()> {
    let kind = if code == 1 { "failure" } else { "error" };
    writer
        .create_element(kind)
        .with_attributes([("message", said.first().map_or("", String::as_str)), ("type", outcome.words())])
        .write_text_content(BytesText::new(&said.join("\n")))?;
    Ok(())
}
