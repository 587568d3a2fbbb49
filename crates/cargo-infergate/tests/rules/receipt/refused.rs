//! A broken file is refused in one line that says what, where and how to mend it.

use std::path::Path;

use cargo_infergate::receipt::{Baseline, PairedReceipt, Receipt, output_sha256, read, read_receipt_or_baseline};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::receipt::support::{error_after, error_of, golden, golden_text, golden_value};

const RECEIPT: &str = "receipt-1.json";
const BASELINE: &str = "baseline-1.json";

fn samples(value: &mut Value, case: usize) -> &mut Value {
    &mut value["cases"][case]["processes"][0]["samples_ns"]
}

#[track_caller]
fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
}

#[test]
fn a_newer_schema() {
    for (name, newer) in [(RECEIPT, "infergate.receipt/2"), (BASELINE, "infergate.baseline/9")] {
        let error = error_after(name, |value| value["schema"] = newer.into());
        assert_says(&error, &[newer, "is needed; give another file, update infergate, or measure again"]);
    }
}

#[test]
fn a_file_of_something_else() {
    let expected = "its schema is none and infergate.receipt/1 or infergate.baseline/1 is needed";
    for text in ["{}", "[]", "null", "3", "\"infergate.receipt/1\"", "{\"schema\": 1}"] {
        assert_says(&error_of(text.as_bytes()), &[expected]);
    }
    let verdict = error_of(crate::receipt::support::golden_text("verdict-2.json").as_bytes());
    assert_says(
        &verdict,
        &["its schema is infergate.verdict/2 and infergate.receipt/1 or infergate.baseline/1 is needed"],
    );
    assert_says(&error_of(b"{\"schema\": \"other/1\"}"), &["its schema is other/1 and"]);
}

#[test]
fn not_json() {
    for text in ["", "   ", "schema: infergate.receipt/1", "{\"schema\": \"infergate.receipt/1\",}", "\0\0\0"] {
        assert_says(&error_of(text.as_bytes()), &["not JSON; measure again, or restore the file from version control"]);
    }
}

#[test]
fn cut_off_anywhere() {
    for name in [RECEIPT, BASELINE] {
        let text = golden_text(name);
        let whole = text.trim_end().len();
        for end in (0..whole).step_by(97).chain([whole - 1]) {
            assert_says(&error_of(&text.as_bytes()[..end]), &["not JSON"]);
        }
    }
}

#[test]
fn nested_too_deeply() {
    let text = "[".repeat(100_000);
    assert_says(&error_of(text.as_bytes()), &["not JSON"]);
}

#[test]
fn not_text() {
    assert_says(&error_of(b"GGUF\x03\x00\x00\xff\xfe"), &["cannot be read as text; is this another file?"]);
    let mut text = golden_text(RECEIPT).into_bytes();
    text[100] = 0xff;
    assert_says(&error_of(&text), &["cannot be read as text"]);
}

#[test]
fn too_big() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("model.gguf");
    std::fs::File::create(&path).and_then(|file| file.set_len(300 << 20)).expect("a sparse file");
    let error = read::<Receipt>(&path).expect_err("too big").to_string();
    assert_says(
        &error,
        &["model.gguf", "314572800 bytes are too many, at most 134217728 are read; is this another file?"],
    );
}

#[test]
fn missing_or_a_folder() {
    let folder = tempfile::TempDir::new().expect("a folder");
    for path in [folder.path().join("none.json"), folder.path().to_owned()] {
        let error = format!("{:#}", read::<Receipt>(&path).expect_err("nothing to read"));
        assert_says(&error, &[&path.display().to_string(), "cannot be read"]);
    }
}

#[test]
fn the_other_kind() {
    let error = format!("{:#}", read::<Receipt>(&golden(BASELINE)).expect_err("a baseline"));
    assert_says(&error, &["its schema is infergate.baseline/1 and infergate.receipt/1 is needed; give another file"]);
    let error = format!("{:#}", read::<Baseline>(&golden(RECEIPT)).expect_err("a receipt"));
    assert_says(&error, &["its schema is infergate.receipt/1 and infergate.baseline/1 is needed; give another file"]);
}

#[test]
fn samples_that_are_no_times() {
    let wrong = "a field is missing or not of its type; samples are non-negative integers";
    for bad in [json!(-1), json!(1.5), json!("NaN"), json!(null), json!("1200000"), json!(1e30), json!([1])] {
        let error = error_after(RECEIPT, |value| samples(value, 0)[0][0] = bad.clone());
        assert_says(&error, &[wrong]);
        let error = error_after(BASELINE, |value| {
            value["sessions"][0]["cases"][0]["processes"][0]["samples_ns"][0][0] = bad.clone();
        });
        assert_says(&error, &[wrong]);
    }
    for literal in ["NaN", "Infinity", "1e999"] {
        let text = golden_text(RECEIPT).replacen("1200000", literal, 1);
        assert_says(&error_of(text.as_bytes()), &["not JSON"]);
    }
    let text = golden_text(RECEIPT).replacen("1200000", "18446744073709551616", 1);
    assert_says(&error_of(text.as_bytes()), &[wrong]);
}

#[test]
fn samples_that_are_missing() {
    let remove =
        |key: &'static str| move |value: &mut Value| drop(value["cases"][0].as_object_mut().map(|c| c.remove(key)));
    assert_says(&error_after(RECEIPT, remove("processes")), &["a field is missing", "missing field `processes`"]);
    assert_says(&error_after(RECEIPT, remove("output")), &["missing field `output`"]);
    let error = error_after(RECEIPT, |value| value["cases"][0]["processes"] = json!([]));
    assert_says(&error, &["prefill/p8: there are no samples; measure again"]);
    let error = error_after(RECEIPT, |value| *samples(value, 1) = json!([]));
    assert_says(&error, &["decode/p8: a process has no samples; measure again"]);
    let error = error_after(RECEIPT, |value| value["cases"] = json!([]));
    assert_says(&error, &["there are no cases in it; measure again"]);
    let error = error_after(BASELINE, |value| value["sessions"] = json!([]));
    assert_says(&error, &["there are no sessions in it; bless one with the command `bless`"]);
}

#[test]
fn samples_of_the_wrong_count_or_order() {
    let error = error_after(RECEIPT, |value| samples(value, 2)[0] = json!([1, 2]));
    assert_says(&error, &["generate/p8-o3: a sample has 2 token times instead of 3"]);
    let error = error_after(RECEIPT, |value| samples(value, 0)[0] = json!([]));
    assert_says(&error, &["prefill/p8: a sample has 0 token times instead of 1"]);
    let error = error_after(RECEIPT, |value| samples(value, 2)[0] = json!([5, 4, 6]));
    assert_says(&error, &["generate/p8-o3: token times decrease within a sample"]);
    let error = error_after(RECEIPT, |value| samples(value, 1)[0] = json!([0]));
    assert_says(&error, &["decode/p8: a sample took no time"]);
}

#[test]
fn a_session_is_named_by_its_place() {
    let error = error_after(BASELINE, |value| {
        value["sessions"][1]["cases"][0]["processes"][0]["samples_ns"] = json!([[0]]);
    });
    assert_says(&error, &["session 2 of 2026-11-21T08:00:00Z", "prefill/p8: a sample took no time"]);
}

#[test]
fn edited_outputs() {
    let edited = "decode/p8: output ids do not have the SHA-256 beside them; the file was edited";
    let error = error_after(RECEIPT, |value| value["cases"][1]["output"]["ids"][0] = json!(999));
    assert_says(&error, &[edited]);
    let error = error_after(BASELINE, |value| value["exact"][1]["output"]["sha256"] = "00".into());
    assert_says(&error, &[edited]);
    let error = error_after(RECEIPT, |value| {
        value["cases"][1]["output"] = json!({ "ids": [1], "sha256": output_sha256(&[1]) });
    });
    assert_says(&error, &["decode/p8: output has 1 tokens instead of 2"]);
    let error = error_after(RECEIPT, |value| value["cases"][1]["output"]["top2_margins"] = json!([0.5]));
    assert_says(&error, &["decode/p8: 1 logit margins for 2 output tokens"]);
    let error = error_after(RECEIPT, |value| value["cases"][1]["output"]["ids"][0] = json!(-4));
    assert_says(&error, &["not of its type"]);
}

#[test]
fn cases_that_are_not_cases_or_are_there_twice() {
    let error = error_after(RECEIPT, |value| value["cases"][0]["id"] = "warm/p8".into());
    assert_says(&error, &["'warm/p8' is not a case id"]);
    let error = error_after(RECEIPT, |value| value["cases"][0]["id"] = "prefill/p0".into());
    assert_says(&error, &["case 'prefill/p0' has zero tokens"]);
    let error = error_after(RECEIPT, |value| {
        let again = value["cases"][0].clone();
        value["cases"].as_array_mut().expect("cases").push(again);
    });
    assert_says(&error, &["prefill/p8: is there twice; the file was edited"]);
}

#[test]
fn probes_and_counters_that_cannot_be() {
    for bad in [json!(0.0), json!(-1.0)] {
        let error = error_after(RECEIPT, |value| value["probes"]["before"]["matrix_flops_per_s"] = bad.clone());
        assert_says(&error, &["a probe is not a positive number; measure again"]);
        let error = error_after(BASELINE, |value| value["sessions"][0]["probes"]["after"]["scalar_ops_per_s"] = bad);
        assert_says(&error, &["a probe is not a positive number"]);
    }
    let error = error_after(RECEIPT, |value| value["probes"]["before"]["matrix_flops_per_s"] = Value::Null);
    assert_says(&error, &["not of its type"]);
    let error = error_after(RECEIPT, |value| {
        value["cases"][1]["counters"]["allocations_per_token"] = json!({ "min": 9, "max": 8 });
    });
    assert_says(&error, &["decode/p8: counter allocations_per_token has its smallest value above its largest"]);
}

#[test]
fn an_engine_without_a_name() {
    let error = error_after(RECEIPT, |value| value["engine"]["model"] = "".into());
    assert_says(&error, &["engine or model has no name"]);
}

#[test]
fn a_run_cut_short_is_read_with_what_it_has() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("partial.json");
    let mut value = crate::receipt::support::golden_value(RECEIPT);
    value["partial"] = true.into();
    value["cases"][1]["processes"] = json!([]);
    value["probes"]["after"] = Value::Null;
    std::fs::write(&path, value.to_string()).expect("a file");
    assert!(read::<Receipt>(&path).expect("what was measured is kept").partial);
    // What it did measure must still be sound.
    value["cases"][2]["processes"][0]["samples_ns"][0] = json!([1]);
    assert_says(&error_of(value.to_string().as_bytes()), &["generate/p8-o3: a sample has 1 token times instead of 3"]);
}

#[test]
fn a_run_that_broke_an_invariant_in_every_case_is_read() {
    let mut value = crate::receipt::support::golden_value(RECEIPT);
    value["invalid"] = json!(["prefill/p8: output token 1 is not the same in two processes"]);
    value["cases"] = json!([]);
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("invalid.json");
    std::fs::write(&path, value.to_string()).expect("a file");
    assert_eq!(read::<Receipt>(&path).expect("a receipt").invalid.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_damaged_byte_brings_it_down(at in any::<prop::sample::Index>(), byte in any::<u8>(), which in 0usize..2) {
        let mut text = golden_text([RECEIPT, BASELINE][which]).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("damaged.json");
        std::fs::write(&path, &text).unwrap();
        if let Err(error) = read_receipt_or_baseline(Path::new(&path)) {
            let said = format!("{error:#}");
            prop_assert!(said.contains("damaged.json"));
        }
    }
}

#[test]
fn what_no_profiler_sees() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("paired.json");
    let waiting = json!({"base_ns": -1.0, "head_ns": 0.0, "low_ns": 0.0, "high_ns": 0.0});
    for (field, wrong) in [("base_samples", json!(u64::MAX)), ("waiting", waiting)] {
        let mut value = golden_value("paired-1.json");
        value["explained"] = json!([{"id": "decode/p8", field: wrong}]);
        std::fs::write(&path, value.to_string()).expect("a file");
        let error = format!("{:#}", read::<PairedReceipt>(&path).expect_err("it is refused"));
        assert_says(&error, &["decode/p8: ", field.trim_start_matches("base_")]);
    }
}
