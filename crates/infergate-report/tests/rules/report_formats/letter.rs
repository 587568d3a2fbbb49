//! Each format to the letter, once.

use infergate_receipts::Outcome;
use infergate_report::export::{EXPORTERS, chosen};
use infergate_report::inputs::Inputs;
use infergate_report::model::{
    Axis, Block, Cell, Chart, Finding, Layer, Look, Marks, Missing, Place, Quantity, Report, Rows, Section, Stretch,
    Table, Tone, Unit,
};
use infergate_report::topics::report;

use crate::report_formats::runs;
use crate::report_formats::support::{load, paired, two_runs};

#[track_caller]
fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Each kind of cell, in columns with and without numbers, one of them empty; a row that is folded.
fn cells() -> Table {
    let change = Quantity::new(0.021, Unit::Change).map(|change| Quantity { interval: Some((0.011, 0.031)), ..change });
    let change = Cell::Number(change.expect("a number"), Tone::Bad);
    let time = Cell::number(Some(1_234_567.0), Unit::Ns, Missing::NotMeasured).toned(Tone::Bad);
    let slower = Cell::text("slower").toned(Tone::Bad);
    let none = Cell::Missing(Missing::NoBase);
    let rows = [
        (Cell::foreign("`a|b` <i>"), time, change, slower),
        (Cell::text("=decode"), Cell::count(3), none, Cell::text("")),
    ];
    Rows::of("cases", "Cases", rows)
        .words("case", |(case, ..)| case.clone())
        .numbers("time", |(_, time, ..)| time.clone())
        .about("The median.")
        .numbers("change", |(_, _, change, _)| change.clone())
        .titled_numbers("p99", "P99", |_| Cell::Missing(Missing::TooFew { what: "samples", needed: 368 }))
        .words("verdict", |(.., verdict)| verdict.clone())
        .notable(|(.., verdict)| verdict.tone() == Tone::Bad)
        .table()
        .noted("Words | that <mark> up.")
        .folding()
}

/// A line, a line with marks and an area over numbers.
fn curves() -> Chart {
    let places = || vec![Place::new(1.0, 10e6, "1 user: 10.0 ms"), Place::new(4.0, 40e6, "4 users: 40.0 ms")];
    let stretch = |x, low, high| Stretch { x, low, high };
    let stretches = vec![stretch(1.0, 5e6, 15e6), stretch(4.0, 30e6, 50e6)];
    Chart {
        id: "curves".into(),
        title: "Time <by> users".into(),
        caption: "It rises.".into(),
        x: Axis { marks: vec![1.0, 2.0, 4.0], ..Axis::new("users", Unit::Count).logarithmic() },
        y: Axis::new("time", Unit::Ns).zero(),
        layers: vec![
            Layer::new("P25 to P75", Look::head(), Marks::Area(stretches)),
            Layer::new("head", Look::head(), Marks::MarkedLine(places())),
            Layer::new("base", Look::nth(1), Marks::Line(places())),
        ],
    }
}

/// Lanes with names.
fn lanes() -> Chart {
    let place = |x| Place::new(x, 1.0, "pointed at");
    Chart {
        id: "lanes".into(),
        title: "Changes".into(),
        caption: "One is slower.".into(),
        x: Axis::new("change", Unit::Change),
        y: Axis::named("case", vec!["prefill".into(), "decode".into()]),
        layers: vec![
            Layer::new("interval", Look::of(Tone::Bad), Marks::Line(vec![place(-0.01), place(0.03)])),
            Layer::new("good", Look::of(Tone::Good), Marks::Points(vec![place(0.02)])),
            Layer::new("plain", Look::nth(3), Marks::Points(vec![place(0.01)])),
        ],
    }
}

/// Spans with and without room for their labels.
fn spans() -> Chart {
    let span = |label: &str, from, to, look| {
        let (label, hover) = (label.to_owned(), format!("{label} takes long"));
        Layer::new("", look, Marks::Span { from, to, y: 0.0, label, hover })
    };
    Chart {
        id: "spans".into(),
        title: "Spans".into(),
        caption: "Two frames.".into(),
        x: Axis::new("time", Unit::Ns).zero(),
        y: Axis::named("calls", vec!["main".into()]),
        layers: vec![span("main", 0.0, 20.0, Look::head()), span("a long label", 20.0, 22.0, Look::nth(1))],
    }
}

/// One of each thing that a report can have.
fn small() -> Report {
    let finding = |tone, said: &str| Finding { tone, said: said.into() };
    let findings = vec![finding(Tone::Good, "It takes 1.23 ms"), finding(Tone::Warn, "It is *slow*")];
    let facts = vec![("model", Cell::foreign("a <b> & c")), ("tokens", Cell::Missing(Missing::Undefined))];
    let facts = Table::facts("facts", "", facts);
    Report {
        title: "One case is slower".into(),
        subject: "an engine on a machine".into(),
        headline: Some(infergate_report::model::Headline {
            outcome: Outcome::Regressed,
            exit_code: 1,
            ended: "1 of 2 regressed".into(),
            said: "decode 2.1 % slower".into(),
        }),
        sections: vec![
            Section::new("findings", "Findings").with([Block::Findings(findings)]),
            Section::new("cases", "Cases")
                .with([Block::Said("A paragraph with `code` & <tags>.".into())])
                .with([cells()])
                .with([Block::Chart(curves())])
                .with([lanes(), spans()]),
            Section::new("configuration", "Configuration")
                .with([Block::List(vec!["one sentence".into(), "another | one".into()])])
                .with([facts])
                .folded(),
        ],
    }
}

/// Without style, which is a file of its own.
fn without_assets(page: &str) -> String {
    let (before, after) = page.split_once("<style>\n").expect("the style");
    let (_, after) = after.split_once("</style>").expect("its end");
    format!("{before}<style>\n</style>{after}")
}

/// What reads the model alone gets the small report, every other exporter an input of which no transcript shows its file.
#[test]
fn every_format_to_the_letter() {
    let real = |inputs: Inputs| (report(&inputs), inputs);
    let nothing = || (small(), Inputs::new("cargo infergate"));
    let formats = [
        ("md", "small", nothing()),
        ("html", "small", nothing()),
        ("json", "small", nothing()),
        ("csv", "small", nothing()),
        ("svg", "small", nothing()),
        ("comment", "paired", real(paired())),
        ("junit", "two-runs", real(two_runs())),
        ("annotations", "two-runs", real(two_runs())),
        ("bencher", "load", real(load(runs::targets()))),
        ("github-benchmark", "load", real(load(runs::targets()))),
    ];
    for exporter in EXPORTERS {
        assert!(formats.iter().any(|(format, ..)| *format == exporter.name), "{} is not looked at", exporter.name);
    }
    for (format, name, (report, inputs)) in formats {
        let exporters = chosen(&[format.to_owned()], &inputs).expect("it has what it needs");
        for file in exporters[0].files(&inputs, &report).expect("files") {
            let text = if file.name.ends_with(".html") { without_assets(&file.text) } else { file.text };
            assert_snapshot(&format!("{name}-{}", file.name.replace('/', "-")), &text);
        }
    }
}
