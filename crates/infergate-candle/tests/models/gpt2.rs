//! GPT-2 equals Hugging Face transformers, whatever way its cache was filled. Fixtures: `tests/fixtures/make_gpt2.py`.

use std::collections::HashMap;

use crate::common::{fixture, json};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use infergate_candle::decoder::Decoder;
use infergate_candle::gpt2::{Gpt2, Gpt2Config};
use infergate_candle::synthetic;
use serde::Deserialize;

pub const MODELS: [&str; 2] = ["gpt2-new", "gpt2-erf"];
const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
pub struct Case {
    pub prompt_ids: Vec<u32>,
    pub output_ids: Vec<u32>,
    prefill_logits: Vec<f32>,
    last_logits: Vec<f32>,
}

pub fn config(name: &str) -> Gpt2Config {
    serde_json::from_value(json(&format!("{name}/config.json"))).unwrap()
}

pub fn tensors(name: &str) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(fixture(name).join("model.safetensors"), &Device::Cpu).unwrap()
}

pub fn load_from(
    config: &Gpt2Config,
    tensors: HashMap<String, Tensor>,
    dtype: DType,
    threads: usize,
) -> anyhow::Result<Gpt2> {
    Gpt2::load(config, VarBuilder::from_tensors(tensors, dtype, &Device::Cpu), threads)
}

pub fn load(name: &str, threads: usize) -> Gpt2 {
    load_from(&config(name), tensors(name), DType::F32, threads).unwrap()
}

pub fn cases(name: &str) -> Vec<Case> {
    serde_json::from_value(json(&format!("{name}/expected.json"))["cases"].take()).unwrap()
}

pub fn logits(model: &mut dyn Decoder, tokens: &[u32]) -> Vec<f32> {
    model.forward(tokens).unwrap().to_vec1().unwrap()
}

/// The lowest index of the highest logit.
pub fn greedy(logits: &[f32]) -> u32 {
    (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
}

#[track_caller]
fn assert_close(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: number of logits");
    let diff = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(diff <= TOLERANCE, "{what}: logits differ by up to {diff}");
}

/// Prefills and decodes greedily; checks ids and logits.
#[track_caller]
fn assert_generates(model: &mut dyn Decoder, case: &Case, what: &str) {
    let mut last = logits(model, &case.prompt_ids);
    assert_close(&last, &case.prefill_logits, what);
    let mut ids = vec![greedy(&last)];
    while ids.len() < case.output_ids.len() {
        last = logits(model, &[ids[ids.len() - 1]]);
        ids.push(greedy(&last));
    }
    assert_eq!(ids, case.output_ids, "{what}: greedy ids");
    assert_close(&last, &case.last_logits, what);
}

#[test]
fn equals_transformers_for_any_number_of_threads() {
    for name in MODELS {
        for threads in [1, 2, 3, 5] {
            for case in cases(name) {
                let what = format!("{name}, {threads} threads, prompt of {}", case.prompt_ids.len());
                assert_generates(&mut load(name, threads), &case, &what);
            }
        }
    }
}

#[test]
fn a_prompt_read_in_pieces_gives_the_same_logits() {
    for name in MODELS {
        for case in cases(name) {
            for piece in [1, 7, 64, 149] {
                let mut model = load(name, 2);
                let pieces = case.prompt_ids.chunks(piece);
                let last = pieces.map(|tokens| logits(&mut model, tokens)).last().unwrap();
                assert_close(&last, &case.prefill_logits, &format!("{name} in pieces of {piece}"));
                assert_eq!(model.cached_tokens(), case.prompt_ids.len());
            }
        }
    }
}

#[test]
fn reset_and_truncate_forget_what_came_behind() {
    for name in MODELS {
        let cases = cases(name);
        let mut model = load(name, 2);
        for case in cases.iter().rev() {
            model.reset().unwrap();
            assert_generates(&mut model, case, &format!("{name} after a reset"));
            assert!(model.truncate(case.prompt_ids.len()).unwrap());
            for &token in &case.output_ids[..case.output_ids.len() - 2] {
                logits(&mut model, &[token]);
            }
            let last = logits(&mut model, &case.output_ids[case.output_ids.len() - 2..][..1]);
            assert_close(&last, &case.last_logits, &format!("{name} after a truncation"));
        }
        assert!(
            model.truncate(model.cached_tokens() + 1).is_err(),
            "a cache cannot be truncated to more than it holds"
        );
    }
}

#[test]
fn forks_are_independent_and_may_run_at_the_same_time() {
    for name in MODELS {
        let cases = cases(name);
        let mut model = load(name, 2);
        logits(&mut model, &cases[2].prompt_ids);
        let forks: Vec<_> = cases.iter().map(|_| model.fork().unwrap()).collect();
        std::thread::scope(|scope| {
            for (mut fork, case) in forks.into_iter().zip(&cases) {
                scope.spawn(move || assert_generates(fork.as_mut(), case, "a fork"));
            }
        });
        let next = logits(&mut model, &cases[2].output_ids[..1]);
        assert_eq!(greedy(&next), cases[2].output_ids[1], "running forks changed the sequence they came from");
    }
}

#[test]
fn weights_without_the_prefix_load_too() {
    for name in MODELS {
        let bare = tensors(name).into_iter().map(|(key, value)| (key.replacen("transformer.", "", 1), value)).collect();
        let mut model = load_from(&config(name), bare, DType::F32, 2).unwrap();
        assert_generates(&mut model, &cases(name)[1], name);
    }
}

#[test]
fn wrong_weights_are_named() {
    let (config, good) = (config("gpt2-new"), tensors("gpt2-new"));
    let error =
        |tensors, dtype, threads| format!("{:#}", load_from(&config, tensors, dtype, threads).err().expect("an error"));

    let key = "transformer.h.1.mlp.c_fc.weight";
    let mut missing = good.clone();
    missing.remove(key);
    let message = error(missing, DType::F32, 2);
    assert!(message.contains(key) && message.contains("[24, 96]"), "{message}");

    let mut transposed = good.clone();
    transposed.insert(key.into(), good[key].t().unwrap());
    let message = error(transposed, DType::F32, 2);
    assert!(message.contains(key) && message.contains("[96, 24]"), "{message}");

    assert!(error(good.clone(), DType::F16, 2).contains("f32"));
    assert!(error(good, DType::F32, 0).contains("threads"));
}

#[test]
fn a_config_that_would_be_computed_wrongly_is_refused() {
    let changed = |key: &str, value: serde_json::Value| {
        let mut config = json("gpt2-new/config.json");
        config[key] = value;
        serde_json::from_value::<Gpt2Config>(config)
            .map_err(anyhow::Error::from)
            .and_then(|config| load_from(&config, tensors("gpt2-new"), DType::F32, 1))
            .err()
            .unwrap_or_else(|| panic!("{key} was accepted"))
            .to_string()
    };
    assert!(changed("activation_function", "relu".into()).contains("gelu_new"));
    for key in ["scale_attn_by_inverse_layer_idx", "add_cross_attention"] {
        assert!(changed(key, true.into()).contains(key));
    }
    assert!(changed("tie_word_embeddings", false.into()).contains("tie_word_embeddings"));
    assert!(changed("n_head", 5.into()).contains("n_head"));
    assert!(changed("n_layer", 0.into()).contains("n_layer"));
    assert!(changed("layer_norm_epsilon", 0.into()).contains("layer_norm_epsilon"));
}

#[test]
fn an_old_config_file_is_read() {
    let json = r#"{"model_type":"gpt2","vocab_size":50257,"n_ctx":1024,"n_positions":1024,"n_embd":768,"n_layer":12,
        "n_head":12,"layer_norm_epsilon":1e-5,"activation_function":"gelu_new","task_specific_params":{}}"#;
    assert_eq!(serde_json::from_str::<Gpt2Config>(json).unwrap(), Gpt2Config::gpt2());
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_the_cache_alone() {
    let mut model = load("gpt2-new", 2);
    let case = &cases("gpt2-new")[3];
    logits(&mut model, &case.prompt_ids);
    assert!(model.forward(&[]).is_err());
    assert!(model.forward(&[96]).unwrap_err().to_string().contains("96"));
    assert!(model.forward(&[1; 85]).unwrap_err().to_string().contains("384"));
    assert_eq!(model.cached_tokens(), 300);
    assert_eq!(greedy(&logits(&mut model, &case.output_ids[..1])), case.output_ids[1]);
    logits(&mut model, &[1; 83]);
    assert_eq!(model.cached_tokens(), 384, "the whole context can be used");
}

#[test]
fn counts_weights_and_work() {
    let gpt2 = Gpt2Config::gpt2();
    assert_eq!(gpt2.parameters(), 124_439_808);
    assert_eq!(Gpt2Config::distilgpt2().parameters(), 81_912_576);
    let cost = gpt2.cost();
    // All weights but 1023 rows of the position table.
    assert_eq!(cost.decode_bytes_fixed, 4.0 * (124_439_808.0 - 1023.0 * 768.0));
    assert_eq!(cost.decode_bytes_per_context_token, 73_728.0);
    // Eleven blocks of 12 * 768^2 weights, and the last block's keys and values.
    assert_eq!(cost.prefill_flops_per_token, 2.0 * (11.0 * 7_077_888.0 + 1_179_648.0));
    assert_eq!(cost.prefill_flops_per_pair, 33_792.0);
    let model = load("gpt2-erf", 2);
    let facts = model.facts();
    assert_eq!(facts.parameters as usize, tensors("gpt2-erf").values().map(|t| t.elem_count()).sum::<usize>());
    assert_eq!(facts.weight_bytes, 4 * facts.parameters);
    assert_eq!(facts.cost, config("gpt2-erf").cost());
}

#[test]
fn synthetic_weights_depend_on_seed_and_name_alone() {
    let values = |seed, name: &str, len: usize| {
        synthetic::var_builder(seed, DType::F32).get(len, name).unwrap().to_vec1::<f32>().unwrap()
    };
    let long = values(7, "wte.weight", 200_000);
    assert_eq!(long[..64], values(7, "wte.weight", 64));
    assert_ne!(long[..64], values(8, "wte.weight", 64));
    assert_ne!(long[..64], values(7, "wpe.weight", 64));
    let first: Vec<i32> = long[..4].iter().map(|v| (v * 1e6).round() as i32).collect();
    assert_eq!(first, [-2487, -15799, 24443, 49166], "the same on every machine");
    let mean = long.iter().sum::<f32>() / long.len() as f32;
    let std = (long.iter().map(|v| v * v).sum::<f32>() / long.len() as f32).sqrt();
    assert!(mean.abs() < 2e-4 && (std - 0.02).abs() < 2e-4, "mean {mean}, std {std}");
    assert_eq!(values(7, "h.0.ln_1.weight", 2), [1.0, 1.0]);
    assert_eq!(values(7, "model.layers.0.input_layernorm.weight", 2), [1.0, 1.0]);
    assert_eq!(values(7, "h.0.attn.c_attn.bias", 2), [0.0, 0.0]);
}
