//! The file of a load run: read as it was written, refused where no run could have written it.

use infergate_core::load::Arrivals;
use infergate_receipts::Scenario;
use infergate_receipts::{
    AuditRecord, ErrorNs, LOAD_SCHEMA, LoadReceipt, Machine, Price, TargetRecord, read, write_json,
};
use serde_json::{Value, json, to_value};
use tempfile::TempDir;

use crate::load::summary::level;

/// A run of one scenario with two users.
pub fn sound() -> LoadReceipt {
    let error = ErrorNs { p50: Some(50e3), p99: Some(200e3), max: Some(900e3) };
    LoadReceipt {
        schema: LOAD_SCHEMA.into(),
        created: "2026-01-01T00:00:00Z".into(),
        partial: false,
        invalid: Vec::new(),
        notes: vec!["a note".into()],
        tool: "0.1.0".into(),
        machine: Machine { class: "linux-x86_64-amd-epyc-2".into(), ..Machine::default() },
        probes: None,
        targets: vec![TargetRecord::Endpoint {
            name: String::new(),
            url: "http://127.0.0.1:8000/v1/chat/completions".into(),
            api: "chat".into(),
            model: "m".into(),
            extensions: vec!["ignore_eos".into()],
            shared_prefix_tokens: 0,
            price: None,
        }],
        seed: 1,
        prompt_seed: 1,
        limits: Vec::new(),
        scenarios: vec![Scenario::plain("chatbot", 256, 4)],
        dataset_prompts: None,
        shards: Vec::new(),
        audits: vec![AuditRecord {
            shard: None,
            arrivals: Arrivals::Closed { users: 2 },
            ttft_ns: 20_000_000,
            itl_ns: 5_000_000,
            output_tokens: 32,
            requests: 12,
            wrong_requests: 0,
            tokens: 384,
            stamp_error_ns: error,
            gap_error_ns: error,
            client_cpu_share: Some(0.03),
        }],
        levels: vec![level(2, 20)],
    }
}

/// What reading `receipt` with `change` gives.
fn after(change: impl FnOnce(&mut Value)) -> Result<LoadReceipt, String> {
    let mut value = to_value(sound()).expect("JSON");
    change(&mut value);
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("load.json");
    std::fs::write(&path, value.to_string()).expect("a file");
    read::<LoadReceipt>(&path).map_err(|error| format!("{error:#}"))
}

#[test]
fn what_is_written_is_read_the_same() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("load.json");
    write_json(&path, &sound()).expect("a file");
    assert_eq!(read::<LoadReceipt>(&path).expect("a receipt"), sound());
    assert_eq!(after(|value| value["later"] = json!(3)).expect("unknown fields do no harm"), sound());
    assert_eq!(after(|value| value["scenarios"][0]["later"] = json!(3)).expect("nor in a scenario"), sound());
}

#[test]
fn a_price_is_two_numbers_and_makes_a_cost() {
    let price: Price = "0.5, 2".parse().expect("a price");
    assert_eq!((price.input_per_million, price.output_per_million), (0.5, 2.0));
    for text in ["", "1", "1,x", "1,-1", "inf,1", "NaN,1", "1,2,3"] {
        let error = text.parse::<Price>().expect_err(text).to_string();
        assert!(error.contains("price") || error.contains("for example 0.15,0.60"), "{text}: {error}");
    }
    let mut receipt = sound();
    for record in receipt.levels.iter_mut().flat_map(|level| &mut level.requests) {
        record.input_tokens = Some(100);
    }
    let TargetRecord::Endpoint { price: own, .. } = &mut receipt.targets[0] else { panic!("a server") };
    *own = Some(price);
    // 100 tokens in for 0.5 and 4 out for 2 a million.
    let text = super::text(&receipt);
    assert!(["a million output tokens", " 0.0580 ", " 14.50"].iter().all(|part| text.contains(part)), "{text}");
}
