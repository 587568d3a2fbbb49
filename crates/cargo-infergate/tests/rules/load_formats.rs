//! Load receipts as other programs' files, and vLLM's files beside a load run.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Two users of two targets, A and B; one request of B failed.
fn golden() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/load-1.json");
    serde_json::from_str(&fs::read_to_string(path).expect("a golden file")).expect("JSON")
}

/// A level of `users` users who send 20 requests each: 100 ms to the first token, three more 20 ms apart.
fn receipt(users: u64) -> Value {
    let mut receipt = golden();
    let ms = 1_000_000;
    let request = |number: u64| {
        let start_ns = number / users * 160 * ms;
        let chunk_ns: Vec<u64> = [100, 120, 140, 160].iter().map(|after| start_ns + after * ms).collect();
        json!({
            "request": number, "user": number % users, "scenario": 0, "scheduled_ns": start_ns, "sent_ns": start_ns,
            "chunk_ns": chunk_ns, "ended_ns": start_ns + 160 * ms, "input_tokens": 9, "output_tokens": 4,
        })
    };
    let requests: Vec<Value> = (0..20 * users).map(request).collect();
    let level = &mut receipt["levels"][0];
    level["arrivals"] = json!({ "kind": "closed", "users": users });
    level["began_ns"] = json!(0);
    level["wall_ns"] = json!(20 * 160 * ms);
    level["issued"] = json!(requests.len());
    level["requests"] = json!(requests);
    let target = receipt["targets"][0].clone();
    receipt["targets"] = json!([target]);
    let level = receipt["levels"][0].clone();
    receipt["levels"] = json!([level]);
    receipt["invalid"] = json!([]);
    receipt
}

struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &Value)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        for (name, value) in files {
            fs::write(folder.path().join(name), value.to_string()).expect("a file");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).expect(name)).expect("JSON")
    }

    fn report(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cargo-infergate"));
        process.current_dir(self.0.path()).args(["infergate", "report"]).args(arguments);
        let output = process.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn vllm_has_its_fields_in_its_units_and_null_where_nothing_is_known() {
    let folder = Folder::new(&[("load.json", &receipt(2))]);
    let (code, said) = folder.report(&["load.json", "--out=r", "--format=vllm"]);
    assert_eq!(code, Some(0), "{said}");
    let file = folder.json("r/vllm.json");
    // Of 20 rounds of 160 ms the first is warm-up.
    near(&file["duration"], 19.0 * 0.16);
    for (field, expected) in [
        ("num_prompts", json!(38)),
        ("completed", json!(38)),
        ("failed", json!(0)),
        ("max_concurrency", json!(2)),
        ("request_rate", json!("inf")),
        ("total_input_tokens", json!(38 * 9)),
        ("total_output_tokens", json!(38 * 4)),
        ("p99_ttft_ms", Value::Null),
        ("p99_itl_ms", Value::Null),
    ] {
        assert_eq!(file[field], expected, "{field}");
    }
    for (field, expected) in [
        ("median_ttft_ms", 100.0),
        ("mean_ttft_ms", 100.0),
        ("median_itl_ms", 20.0),
        ("median_tpot_ms", 20.0),
        ("median_e2el_ms", 160.0),
        ("output_throughput", 50.0),
        ("request_throughput", 12.5),
    ] {
        near(&file[field], expected);
    }
    assert_eq!(file["std_ttft_ms"], json!(0.0));
    for list in ["input_lens", "output_lens", "ttfts", "itls", "errors", "latencies", "start_times"] {
        assert_eq!(file[list].as_array().map(Vec::len), Some(38), "{list}");
    }
    near(&file["ttfts"][3], 0.1);
    near(&file["itls"][3][2], 0.02);
    assert!(file.get("generated_texts").is_none(), "answers are in no file");
}

#[test]
fn aiperf_calls_the_mean_gap_of_a_request_inter_token_latency_and_each_gap_inter_chunk_latency() {
    let mut stalled = receipt(2);
    for record in stalled["levels"][0]["requests"].as_array_mut().expect("a list") {
        let last = record["chunk_ns"][3].as_u64().expect("a time") + 30_000_000;
        record["chunk_ns"][3] = json!(last);
        record["ended_ns"] = json!(last);
        record["input_tokens"] = Value::Null;
    }
    let folder = Folder::new(&[("load.json", &stalled)]);
    let (code, said) = folder.report(&["load.json", "--out=r", "--format=aiperf"]);
    assert_eq!(code, Some(0), "{said}");
    let file = folder.json("r/aiperf.json");
    near(&file["inter_token_latency"]["p50"], 30.0);
    near(&file["inter_chunk_latency"]["max"], 50.0);
    near(&file["inter_chunk_latency"]["p50"], 20.0);
    near(&file["request_latency"]["avg"], 190.0);
    near(&file["time_to_first_token"]["avg"], 100.0);
    near(&file["output_token_throughput_per_user"]["avg"], 1000.0 / 30.0);
    for (metric, unit) in [
        ("time_to_first_token", "ms"),
        ("output_token_throughput", "tokens/sec"),
        ("output_token_throughput_per_user", "tokens/sec/user"),
        ("request_throughput", "requests/sec"),
        ("benchmark_duration", "sec"),
        ("request_count", "requests"),
    ] {
        assert_eq!(file[metric]["unit"], json!(unit), "{metric}");
    }
    // The second round began before the first one's stall was over, and is not in the window.
    assert_eq!(file["time_to_first_token"]["p99"], Value::Null, "36 requests have no p99");
    assert_eq!(file["input_sequence_length"]["avg"], Value::Null);
    assert_eq!(file["total_isl"]["avg"], Value::Null);
    assert_eq!(file["output_sequence_length"]["count"], json!(36));
    assert_eq!((&file["schema_version"], &file["was_cancelled"]), (&json!("1.1"), &json!(false)));
}

#[test]
fn several_targets_have_a_file_each_and_failures_are_in_no_latency() {
    let folder = Folder::new(&[("load.json", &golden())]);
    let (code, said) = folder.report(&["load.json", "--out=r", "--format=vllm,aiperf"]);
    assert_eq!(code, Some(0), "{said}");
    let both = [folder.json("r/vllm-1-1.json"), folder.json("r/vllm-1-2.json")];
    let failed: u64 = both.iter().filter_map(|file| file["failed"].as_u64()).sum();
    let golden = golden();
    let requests = golden["levels"][0]["requests"].as_array().expect("a list");
    assert!(failed <= requests.iter().filter(|record| record.get("failure").is_some()).count() as u64);
    for file in &both {
        let (errors, ttfts) = (file["errors"].as_array().expect("a list"), file["ttfts"].as_array().expect("a list"));
        for (error, ttft) in errors.iter().zip(ttfts) {
            assert_eq!(error != "", ttft.is_null());
        }
    }
    assert!(folder.path("r/aiperf-1-2.json").exists());
    let receipt = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/receipt-1.json");
    let (code, said) = folder.report(&[receipt.to_str().expect("text"), "--out=r", "--format=vllm"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--format vllm: it needs a receipt of a load run"), "{said}");
}

fn result(users: Value, rate: Value) -> Value {
    json!({
        "date": "20260101-000000", "backend": "openai", "model_id": "org/model", "num_prompts": 40, "request_rate": rate,
        "max_concurrency": users, "duration": 3.2, "completed": 40, "failed": 0, "output_throughput": 25.0,
        "median_ttft_ms": 50.0, "p99_ttft_ms": 60.0, "median_itl_ms": 10.0, "generated_texts": ["a"], "ttfts": [0.05],
    })
}

#[test]
fn a_result_of_vllm_stands_beside_the_level_with_as_many_users() {
    let files = [
        ("load.json", &receipt(2)),
        ("vllm.json", &result(json!(2), json!("inf"))),
        ("other.json", &result(Value::Null, json!(3.5))),
    ];
    let folder = Folder::new(&files);
    let (code, said) = folder.report(&["load.json", "vllm.json", "other.json", "--out=r", "--format=md"]);
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(folder.path("r/report.md")).expect("a report");
    for row in [
        "| 2 users | `org/model` | output throughput | 25.0 tok/s | 50.0 tok/s | 2.00 times |",
        "| 2 users | `org/model` | TTFT P50 | 50.0 ms | 100 ms | 2.00 times |",
        "| 2 users | `org/model` | ITL P50 | 10.0 ms | 20.0 ms | 2.00 times |",
        "| 3.5 requests/s | `org/model` | output throughput | 25.0 tok/s |",
    ] {
        assert!(text.contains(row), "{row} is not in {text}");
    }
    assert!(text.contains("| 2 users | `org/model` | TTFT P99 | 60.0 ms | — "), "38 requests have no p99: {text}");
    assert!(folder.path("r/pictures/vllm.svg").exists());
}

#[test]
fn what_is_no_result_of_vllm_is_refused_in_one_line() {
    let folder = Folder::new(&[
        ("other.json", &json!({ "hello": 1 })),
        ("negative.json", &json!({ "duration": -1.0, "completed": 3 })),
    ]);
    let (code, said) = folder.report(&["other.json", "--out=r"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("other.json: not a usable file") && said.contains("vllm bench serve --save-result"),
        "{said}"
    );
    let (code, said) = folder.report(&["negative.json", "--out=r"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("a rate or a time: -1 is no number"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
}

/// What is written for vLLM is read as vLLM's.
#[test]
fn an_export_can_be_read_back() {
    let folder = Folder::new(&[("load.json", &receipt(2))]);
    folder.report(&["load.json", "--out=r", "--format=vllm"]);
    let (code, said) = folder.report(&["load.json", "r/vllm.json", "--out=again", "--format=md"]);
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(folder.path("again/report.md")).expect("a report");
    assert!(text.contains("| TPOT P50 | 20.0 ms | 20.0 ms | 1.00 times |"), "{text}");
}

/// Each number is one that a run may give, and their sum is not.
#[test]
fn tokens_whose_sum_is_beyond_all_numbers_are_exported() {
    let mut load = receipt(500);
    for request in load["levels"][0]["requests"].as_array_mut().expect("requests") {
        for tokens in ["input_tokens", "output_tokens"] {
            request[tokens] = json!(1_000_000_000_000_000_u64);
        }
    }
    let folder = Folder::new(&[("load.json", &load)]);
    let (code, said) = folder.report(&["load.json", "--out=r", "--format=vllm,aiperf,html"]);
    assert_eq!(code, Some(0), "{said}");
}
