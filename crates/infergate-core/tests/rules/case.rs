//! Case ids: what they mean, how cases are chosen, what is refused.

use infergate_core::case::{Case, choose, full_grid, gate_suite, select};

fn error_of(id: &str) -> String {
    id.parse::<Case>().expect_err(id).to_string()
}

fn ids(cases: &[Case]) -> Vec<String> {
    cases.iter().map(Case::to_string).collect()
}

fn chosen(patterns: &[&str]) -> anyhow::Result<Vec<String>> {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    Ok(ids(&select(&patterns, &gate_suite())?))
}

#[test]
fn an_unknown_case_is_refused_with_an_example() {
    let bad = [
        "",
        "prefill/",
        "prefill/128",
        "prefill/p12x",
        "prefill/p+1",
        "warm/p128",
        "generate/p128o64",
        "decode/p128-o64",
        "prefill/p99999999999999999999",
        "PREFILL/p128",
    ];
    for id in bad {
        let error = error_of(id);
        assert!(error.contains("is not a case id; write prefill/p128"), "{id}: {error}");
    }
}

#[test]
fn zero_tokens_are_refused() {
    for id in ["prefill/p0", "decode/p0", "generate/p0-o64", "generate/p128-o0"] {
        assert!(error_of(id).contains("zero tokens, which cannot be measured"), "{id}");
    }
}

#[test]
fn globs_choose_in_suite_order_and_once() {
    assert_eq!(chosen(&["decode/*"]).expect("two"), ["decode/p128", "decode/p512"]);
    assert_eq!(chosen(&["*p512", "decode/p512"]).expect("two"), ["prefill/p512", "decode/p512"]);
    assert_eq!(chosen(&["*"]).expect("all").len(), gate_suite().len());
    assert!(chosen(&[]).expect("none").is_empty());
}

#[test]
fn a_case_outside_the_suite_can_be_named_in_full() {
    assert_eq!(chosen(&["prefill/p77"]).expect("one"), ["prefill/p77"]);
    assert!(chosen(&["prefill/p0"]).expect_err("zero").to_string().contains("zero tokens"));
}

#[test]
fn the_grid_takes_the_longest_generation_the_context_allows() {
    let longest = |context| ids(&full_grid(context)).pop().expect("a case");
    assert_eq!(longest(1024), "generate/p768-o256");
    assert_eq!(longest(1279), "generate/p768-o256");
    assert_eq!(longest(1280), "generate/p1024-o256");
    assert_eq!(full_grid(1024).len(), 9);
    assert!(full_grid(1024).iter().all(|case| case.ensure_fits(1024).is_ok()));
}

#[test]
fn defaults_and_globs_keep_what_the_context_holds() {
    let chosen = |patterns: &[&str], context| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        choose(&patterns, context).map(|cases| ids(&cases))
    };
    assert_eq!(chosen(&[], 256).expect("some fit"), ["prefill/p128", "decode/p128", "generate/p128-o64"]);
    assert_eq!(chosen(&["decode/*", "prefill/p2"], 256).expect("they fit"), ["decode/p128", "prefill/p2"]);
    let wrong: [(&[&str], _); 3] = [(&["decode/*", "prefill/p512"], 256), (&["*p512"], 256), (&[], 100)];
    for (patterns, context) in wrong {
        let error = format!("{:#}", chosen(patterns, context).expect_err("does not fit"));
        assert!(error.starts_with("--cases: ") && error.contains("the model's context has"), "{error}");
    }
}

#[test]
fn a_case_is_its_id_in_json() {
    let case: Case = serde_json::from_str("\"decode/p128\"").expect("an id");
    assert_eq!(case, Case::Decode { prompt_tokens: 128 });
    assert_eq!(serde_json::to_string(&case).expect("JSON"), "\"decode/p128\"");
    let error = serde_json::from_str::<Case>("\"decode/p0\"").expect_err("zero").to_string();
    assert!(error.contains("zero tokens"), "{error}");
}
