//! Results inside a document.

use cargo_infergate::report::splice::splice;
use cargo_infergate::report::topics::report;

use crate::report_formats::support::run;

fn spliced(document: &str) -> Result<String, String> {
    let inputs = run();
    splice(document, &inputs, &report(&inputs), "cargo infergate report receipt.json")
        .map_err(|error| format!("{error:#}"))
}

#[test]
fn what_stands_between_the_markers_is_replaced_and_nothing_else() {
    let document = "# Title\n\n<!-- infergate:scaling -->\nold\n<!-- /infergate -->\n\nEnd.\n";
    let error = spliced(document).expect_err("one prompt length does not scale");
    assert!(error.contains("the report has no section 'scaling'; it has findings, recommendations"), "{error}");
    let document = "# Title\n\n<!-- infergate:latency.figures -->\nold\n<!-- /infergate -->\n\nEnd.\n";
    let text = spliced(document).expect("spliced");
    assert!(text.starts_with("# Title\n\n<!-- infergate:latency.figures -->\n\n| case | figure |"), "{text}");
    let end = "Made by `cargo infergate report receipt.json`, from a run of `synthetic:tiny` on `linux-x86_64-amd-epyc-2`, \
               `2026-11-21T08:00:00Z`.\n<!-- /infergate -->\n\nEnd.\n";
    assert!(text.ends_with(end), "{text}");
    assert!(!text.contains("old"));
    assert_eq!(spliced(&text).expect("again"), text, "the second time changes nothing");
}

/// A name that ends the part, or begins another, and goes on in Markdown.
#[test]
fn a_marker_inside_a_name_is_text() {
    for name in [
        "<!-- /infergate --> [link](http://evil.example) ![p](http://evil.example/p.png)",
        "a\n<!-- /infergate -->\n# live",
        "<!-- infergate:latency -->",
        "``<!-- /infergate -->``",
    ] {
        let mut inputs = run();
        let head = inputs.head.as_mut().expect("a run");
        (head.engine.model, head.machine.class, head.created) = (name.into(), name.into(), name.into());
        for section in ["configuration", "latency"] {
            let document = format!("<!-- infergate:{section} -->\r\n<!-- /infergate -->\r\nEnd.\n");
            let splice = |document: &str| splice(document, &inputs, &report(&inputs), name).expect("spliced");
            let text = splice(&document);
            assert_eq!(splice(&text), text, "the second time changes nothing");
            assert!(
                text.starts_with(&document[..document.len() / 2]) && text.ends_with("<!-- /infergate -->\r\nEnd.\n")
            );
            assert_eq!(text.matches("<!--").count(), 2, "{text}");
        }
    }
}

#[test]
fn a_marker_is_a_line_of_its_own() {
    let document = "See `<!-- infergate:latency -->` here.\n<!-- infergate:latency -->\n- <!-- /infergate -->\n<!-- /infergate -->";
    let text = spliced(document).expect("spliced");
    assert!(text.starts_with("See `<!-- infergate:latency -->` here.\n<!-- infergate:latency -->\n"), "{text}");
    assert!(text.ends_with("\n<!-- /infergate -->") && !text.contains("- <!-- /infergate"), "{text}");
    let error = spliced("<!-- infergate:latency --> words\n<!-- /infergate -->").expect_err("words behind it");
    assert!(error.contains("put it on a line of its own"), "{error}");
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
