//! Results inside a document.

use cargo_infergate::report::sections::report;
use cargo_infergate::report::splice::splice;

use crate::support::run;

fn spliced(document: &str) -> Result<String, String> {
    let inputs = run();
    splice(document, &inputs, &report(&inputs), "cargo infergate report receipt.json")
        .map_err(|error| format!("{error:#}"))
}

#[test]
fn what_stands_between_the_markers_is_replaced_and_nothing_else() {
    let document = "# Title\n\n<!-- infergate:scaling -->\nold\n<!-- /infergate -->\n\nEnd.\n";
    let error = spliced(document).expect_err("one prompt length does not scale");
    assert!(error.contains("the report has no section 'scaling'; it has findings, configuration, request"), "{error}");
    let document = "# Title\n\n<!-- infergate:latency.figures -->\nold\n<!-- /infergate -->\n\nEnd.\n";
    let text = spliced(document).expect("spliced");
    assert!(text.starts_with("# Title\n\n<!-- infergate:latency.figures -->\n\n| case | figure |"), "{text}");
    let end = "Made by `cargo infergate report receipt.json`, from a run of `synthetic:tiny` on `linux-x86_64-amd-epyc-2`, \
               `2026-11-21T08:00:00Z`.\n<!-- /infergate -->\n\nEnd.\n";
    assert!(text.ends_with(end), "{text}");
    assert!(!text.contains("old"));
    assert_eq!(spliced(&text).expect("again"), text, "the second time changes nothing");
}

#[test]
fn a_document_without_markers_says_what_to_put_where() {
    let error = spliced("# Title\n").expect_err("no marker");
    assert!(error.contains("put <!-- infergate:latency --> and <!-- /infergate --> on lines of their own"), "{error}");
    let error = spliced("<!-- infergate:latency -->\n").expect_err("no end");
    assert!(error.contains("is not followed by <!-- /infergate -->"), "{error}");
    let error = spliced("<!-- infergate:latency.none -->\n<!-- /infergate -->").expect_err("no table");
    assert!(error.contains("section 'latency' has no table 'none'; it has figures"), "{error}");
}
