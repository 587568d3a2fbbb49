//! The committed JSON Schemas are those of the code, and the golden files keep to them.

use std::path::Path;

use cargo_infergate::gate::paired::summarise;
use cargo_infergate::machine::{detect, doctor};
use cargo_infergate::receipt::{CHECKUP_SCHEMA, Calibration, Checkup, PairedSight, Sight, json_schemas};
use serde_json::{Value, json, to_value};

use crate::receipt::support::golden_value;

#[test]
fn committed_schemas_are_those_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, schema) in json_schemas() {
        let path = folder.join(name);
        if std::env::var_os("INFERGATE_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &schema)).expect("a schema file");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == schema,
            "schemas/{name} is stale; run `INFERGATE_BLESS=1 cargo test -p cargo-infergate --test rules receipt` and commit it"
        );
    }
}

#[test]
fn golden_files_keep_to_the_schemas() {
    for (kind, golden) in [
        ("receipt", "receipt-1.json"),
        ("baseline", "baseline-1.json"),
        ("verdict", "verdict-2.json"),
        ("paired", "paired-1.json"),
        ("memory", "memory-1.json"),
        ("calibration", "calibration-1.json"),
        ("load", "load-1.json"),
        ("load-baseline", "load-baseline-1.json"),
    ] {
        let schema = schema(kind);
        assert_eq!(violation(&schema, &schema, &golden_value(golden)), None, "{golden}");
    }
}

#[test]
fn what_calibrate_and_doctor_write_keeps_to_its_schema() {
    let calibration: Calibration = serde_json::from_value(golden_value("calibration-1.json")).expect("a calibration");
    let checkup = Checkup {
        schema: CHECKUP_SCHEMA,
        machine: detect(),
        findings: doctor::examine_at(Path::new("/nonexistent/infergate")),
        sight: vec![Sight { baseline: "a.json".into(), case: "decode/p128".into(), sessions: 2, days: 1, ratio: None }],
        paired: vec![PairedSight {
            calibration: "a.json".into(),
            case: "decode/p128".into(),
            std: Some(0.01),
            ratio: Some(1.025),
        }],
    };
    for (kind, value) in [("calibration-summary", to_value(summarise(&calibration))), ("checkup", to_value(checkup))] {
        let (schema, mut value) = (schema(kind), value.expect("plain JSON"));
        assert_eq!(violation(&schema, &schema, &value), None, "{kind}");
        assert_eq!(value["schema"], json!(format!("infergate.{kind}/1")));
        let all = value.as_object_mut().expect("an object");
        all.retain(|field, _| field == "schema");
        assert!(violation(&schema, &schema, &value).is_some(), "{kind}");
    }
}

#[test]
fn the_schemas_refuse_what_is_broken() {
    let schema = schema("receipt");
    type Change = fn(&mut Value);
    let change: [(&str, Change); 4] = [
        ("cases", |value| drop(value.as_object_mut().map(|receipt| receipt.remove("cases")))),
        ("samples_ns", |value| value["cases"][0]["processes"][0]["samples_ns"][0][0] = (-1).into()),
        ("threads", |value| value["threads"] = "two".into()),
        ("probes", |value| value["probes"]["before"]["matrix_flops_per_s"] = Value::Null),
    ];
    for (field, change) in change {
        let mut value = golden_value("receipt-1.json");
        change(&mut value);
        let what = violation(&schema, &schema, &value).unwrap_or_else(|| panic!("a broken {field} is refused"));
        assert!(what.contains(field), "{what}");
    }
}

fn schema(kind: &str) -> Value {
    let found =
        json_schemas().into_iter().find(|(name, _)| name.rsplit_once('-').is_some_and(|(found, _)| found == kind));
    serde_json::from_str(&found.expect("a schema").1).expect("a schema is JSON")
}

/// The first place at which `value` breaks `schema`: as much of JSON Schema as these schemas use.
fn violation(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).expect("a definition");
        return violation(root, target, value);
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[any].as_array() {
            let refused: Vec<String> = choices.iter().filter_map(|choice| violation(root, choice, value)).collect();
            return (refused.len() == choices.len()).then(|| refused.join(", nor "));
        }
    }
    if let Some(expected) = schema.get("const") {
        return (expected != value).then(|| format!("{value} is not {expected}"));
    }
    if let Some(choices) = schema["enum"].as_array() {
        return (!choices.contains(value)).then(|| format!("{value} is not one of {choices:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
        return Some(format!("{value} is not of type {types:?}"));
    }
    if schema["minimum"].as_f64().zip(value.as_f64()).is_some_and(|(least, value)| value < least) {
        return Some(format!("{value} is below {}", schema["minimum"]));
    }
    if let Some(object) = value.as_object() {
        let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(name) = missing.into_iter().find(|name| !object.contains_key(*name)) {
            return Some(format!("{name} is missing"));
        }
        return object.iter().find_map(|(name, field)| {
            let schema = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"))?;
            violation(root, schema, field).map(|what| format!("{name}: {what}"))
        });
    }
    value.as_array()?.iter().find_map(|item| violation(root, schema.get("items")?, item))
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the schemas use type {other}, which this check does not know"),
    }
}
