//! Llama, Qwen2 and Qwen3 compute what Hugging Face transformers computes, from safetensors and from GGUF.

use crate::common::{copy_of, fixture, ids, json, request};
use infergate::engine::{EngineFactory, check_contract};
use infergate_candle::Candle;
use serde_json::{Value, json};
use std::path::Path;

const F32_TOLERANCE: f32 = 1e-4;
/// The quantized kernels round activations to 8 bits.
const Q8_TOLERANCE: f32 = 0.5;

/// The largest difference between the logits of `model` and the expected ones, over prefill and the steps after it.
fn logits_difference(model: &Path, dtype: Option<&str>, expected: &Value) -> f32 {
    let mut engine = Candle.load(&request(model, dtype)).unwrap();
    let output = ids(&expected["output_ids"]);
    let (mut largest, mut found) = (0_f32, Vec::new());
    for (step, row) in expected["logits"].as_array().unwrap().iter().enumerate() {
        let wanted: Vec<f32> = serde_json::from_value(row.clone()).unwrap();
        if step == 0 {
            engine.start(&ids(&expected["prompt_ids"])).unwrap();
        } else {
            assert!(engine.force(output[step - 1]).unwrap());
            engine.next().unwrap();
        }
        assert!(engine.logits(&mut found));
        assert_eq!(found.len(), wanted.len());
        largest = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(largest, f32::max);
    }
    largest
}

fn output(model: &Path, dtype: Option<&str>, expected: &Value) -> Vec<u32> {
    let mut engine = Candle.load(&request(model, dtype)).unwrap();
    let mut tokens = vec![engine.start(&ids(&expected["prompt_ids"])).unwrap()];
    while tokens.len() < ids(&expected["output_ids"]).len() {
        tokens.push(engine.next().unwrap());
    }
    tokens
}

fn assert_f32(model: &Path, dtype: Option<&str>, expected: &Value) {
    let difference = logits_difference(model, dtype, expected);
    assert!(difference <= F32_TOLERANCE, "{}: logits differ by {difference}", model.display());
    assert_eq!(output(model, dtype, expected), ids(&expected["output_ids"]), "{}", model.display());
}

fn assert_contract(model: &Path, dtype: Option<&str>) {
    check_contract(Candle.load(&request(model, dtype)).unwrap().as_mut()).unwrap();
}

/// One family: safetensors, GGUF dequantized, GGUF as it is; and the engine's contract on each.
fn assert_family(name: &str) {
    let expected = json(&format!("{name}/expected.json"));
    let (directory, gguf) = (fixture(name), fixture(&format!("{name}/model.gguf")));
    assert_f32(&directory, None, &expected);
    assert_f32(&gguf, Some("f32"), &expected);
    let difference = logits_difference(&gguf, None, &expected);
    assert!(difference <= Q8_TOLERANCE, "{name}: quantized logits differ by {difference}");
    assert_contract(&directory, None);
    assert_contract(&gguf, Some("f32"));
    assert_contract(&gguf, None);
}

#[test]
fn llama() {
    assert_family("llama");
}

#[test]
fn qwen2_in_shards() {
    assert!(fixture("qwen2/model.safetensors.index.json").exists());
    assert_family("qwen2");
}

#[test]
fn qwen3_with_its_own_head_size() {
    assert_family("qwen3");
}

/// config.json as transformers 4 writes it, and with Llama 3.1's stretched frequencies.
#[test]
fn rotary_settings_of_old_and_new_configs() {
    let expected = json("llama/expected.json");
    let copy = copy_of("llama");
    let mut config = json("llama/config.json");
    config.as_object_mut().unwrap().remove("rope_parameters");
    config["rope_theta"] = json!(10000.0);
    config["rope_scaling"] = Value::Null;
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    assert_f32(copy.path(), None, &expected);

    config["rope_scaling"] = json!({"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 16});
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    assert_f32(copy.path(), None, &expected["llama3_rope"]);
}
