//! The engine over any decoder: greedy choice, context limits, rewinding, identity.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::common::{fixture, ids, json, request};
use anyhow::Result;
use candle_core::quantized::{GgmlDType, QTensor, gguf_file};
use candle_core::{Device, Tensor};
use infergate::engine::{Cost, Engine, EngineFactory, EngineInfo, LoadRequest, TokenId, check_contract};
use infergate_candle::decoder::{Decoder, Facts};
use infergate_candle::digest::{Digest, file_sha256};
use infergate_candle::{CANDLE_VERSION, Candle, CandleEngine};
use tempfile::TempDir;

/// Gives the same logits whatever it reads.
struct Constant {
    logits: Vec<f32>,
    cached: usize,
}

impl Decoder for Constant {
    fn reset(&mut self) -> Result<()> {
        self.cached = 0;
        Ok(())
    }
    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        self.cached += tokens.len();
        Ok(Tensor::new(self.logits.as_slice(), &Device::Cpu)?)
    }
    fn cached_tokens(&self) -> usize {
        self.cached
    }
    fn truncate(&mut self, _tokens: usize) -> Result<bool> {
        Ok(false)
    }
    fn fork(&self) -> Result<Box<dyn Decoder>> {
        Ok(Box::new(Self { logits: self.logits.clone(), cached: 0 }))
    }
    fn facts(&self) -> Facts {
        let cost = Cost {
            decode_bytes_fixed: 0.0,
            decode_bytes_per_context_token: 0.0,
            prefill_flops_per_token: 0.0,
            prefill_flops_per_pair: 0.0,
        };
        Facts { parameters: 0, weight_bytes: 0, cost, settings: BTreeMap::new() }
    }
}

fn engine(logits: &[f32]) -> CandleEngine {
    let info = EngineInfo { context_tokens: 8, vocab_tokens: logits.len(), ..EngineInfo::default() };
    let decoder = Constant { logits: logits.to_vec(), cached: 0 };
    CandleEngine::new(Box::new(decoder), info, None, Digest::of_recipe("constant"))
}

#[test]
fn the_lowest_of_equal_logits_wins() {
    let mut e = engine(&[0.5, 2.0, 2.0, 1.0]);
    assert_eq!(e.start(&[0]).unwrap(), 1);
    assert_eq!(e.last_step().and_then(|step| step.margin), Some(0.0));
    let mut e = engine(&[f32::NEG_INFINITY, -3.0, -1.5]);
    assert_eq!(e.start(&[0]).unwrap(), 2);
    let step = e.last_step().unwrap();
    assert_eq!((step.token, step.margin), (2, Some(1.5)));
    assert!(step.sample_ns.is_some());
    assert_eq!(engine(&[f32::NEG_INFINITY; 3]).start(&[0]).unwrap(), 0);
}

#[test]
fn nan_and_an_empty_vocabulary_are_errors() {
    let mut e = engine(&[1.0, f32::NAN, 2.0]);
    assert!(e.start(&[0]).unwrap_err().to_string().contains("NaN"));
    assert!(e.next().is_err(), "a failed start leaves no sequence");
    assert!(engine(&[]).start(&[0]).is_err());
}

#[test]
fn the_context_is_never_exceeded() {
    let mut e = engine(&[0.0, 1.0]);
    assert!(e.next().unwrap_err().to_string().contains("start"));
    assert!(e.start(&[0; 8]).unwrap_err().to_string().contains("context of 8"));
    e.start(&[0; 7]).unwrap();
    assert!(e.next().unwrap_err().to_string().contains("context of 8"));
    e.start(&[0; 5]).unwrap();
    e.next().unwrap();
    e.next().unwrap();
    assert!(e.next().is_err());
    assert!(e.start(&[2]).unwrap_err().to_string().contains("vocabulary"));
}

#[test]
fn rewinding_gives_the_same_steps_again() {
    for (model, dtype) in [("llama", None), ("llama/model.gguf", None), ("qwen2", None), ("qwen3", None)] {
        let expected = json(&format!("{}/expected.json", model.split('/').next().unwrap()));
        let mut engine = Candle.load(&request(fixture(model), dtype)).unwrap();
        engine.start(&ids(&expected["prompt_ids"])).unwrap();
        let steps: Vec<_> = (0..3).map(|_| engine.next().unwrap()).collect();
        assert!(engine.rewind().unwrap(), "{model}");
        assert_eq!((0..3).map(|_| engine.next().unwrap()).collect::<Vec<_>>(), steps, "{model}");
    }
}

#[test]
fn synthetic_models_come_from_their_seed() {
    let load = |seed| Candle.load(&LoadRequest { seed, ..request("synthetic:tiny", None) }).unwrap();
    let mut engine = load(1);
    check_contract(engine.as_mut()).unwrap();
    assert_eq!(engine.info(), load(1).info());
    assert_eq!(engine.info().model, "synthetic:tiny");
    assert_eq!(engine.tokenize("text").unwrap(), None);
    let mut other = load(2);
    assert_ne!(engine.info().weights_sha256, other.info().weights_sha256);
    let output = |engine: &mut dyn Engine| {
        let mut ids = vec![engine.start(&[1, 2, 3]).unwrap()];
        ids.extend((1..32).map(|_| engine.next().unwrap()));
        ids
    };
    let ids = output(engine.as_mut());
    assert_ne!(ids, output(other.as_mut()));
    assert!(BTreeSet::from_iter(&ids).len() > 4, "{ids:?}");
    let error = Candle.load(&request("synthetic:tiny", Some("bf16"))).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`bf16`"), "{error}");
}

#[test]
fn an_engine_says_who_it_is() {
    let info = Candle.load(&request(fixture("llama/model.gguf"), None)).unwrap().info();
    assert_eq!((info.name.as_str(), info.model.as_str(), info.dtype.as_str()), ("candle", "model.gguf", "q8_0"));
    assert_eq!(info.architecture.as_deref(), Some("llama"));
    assert_eq!(info.weights_sha256, Some(file_sha256(&fixture("llama/model.gguf")).unwrap()));
    // Dequantized it computes other numbers, and must not be compared with the file as it is.
    let recast = Candle.load(&request(fixture("llama/model.gguf"), Some("f32"))).unwrap().info();
    assert_eq!((recast.model.as_str(), recast.dtype.as_str()), ("model.gguf as f32", "f32"));
    let f32 = Candle.load(&request(fixture("llama"), None)).unwrap().info();
    assert_eq!((f32.model.as_str(), f32.dtype.as_str(), f32.context_tokens), ("llama", "f32", 64));
    assert_eq!(f32.parameters, info.parameters);
    assert_eq!(f32.weight_bytes, f32.parameters.map(|n| 4 * n));
    assert!(info.settings.contains_key("candle_threads") && info.settings.contains_key("RAYON_NUM_THREADS"));
    for (model, cache) in [("qwen3/model.gguf", "f32, preallocated"), ("qwen3", "f32, concatenated at each step")] {
        let info = Candle.load(&request(fixture(model), None)).unwrap().info();
        assert_eq!(info.settings["kv_cache"], cache, "{model}");
    }
    // Shards: one digest, that of one of them it is not.
    let shards = Candle.load(&request(fixture("qwen2"), None)).unwrap().info().weights_sha256.unwrap();
    assert_ne!(shards, file_sha256(&fixture("qwen2/model-00001-of-00002.safetensors")).unwrap());
}

/// The Llama of the fixtures with every matrix in `dtype`.
fn rewritten(folder: &Path, dtype: GgmlDType) -> PathBuf {
    let mut file = File::open(fixture("llama/model.gguf")).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let weights: Vec<(&String, QTensor)> = content
        .tensor_infos
        .keys()
        .map(|name| {
            let weight = content.tensor(&mut file, name, &Device::Cpu).unwrap().dequantize(&Device::Cpu).unwrap();
            let dtype = if weight.rank() == 1 { GgmlDType::F32 } else { dtype };
            (name, QTensor::quantize(&weight, dtype).unwrap())
        })
        .collect();
    let metadata: Vec<_> = content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let weights: Vec<_> = weights.iter().map(|(name, weight)| (name.as_str(), weight)).collect();
    let path = folder.join(format!("{dtype:?}.gguf"));
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &weights).unwrap();
    path
}

#[test]
fn weights_that_are_widened_say_what_is_computed_in() {
    let folder = TempDir::new().unwrap();
    let info = |dtype| Candle.load(&request(rewritten(folder.path(), dtype), None)).unwrap().info();
    for (dtype, stored, computes_in) in [
        (GgmlDType::F16, "f16", Some("f32")),
        (GgmlDType::BF16, "bf16", Some("f32")),
        (GgmlDType::F32, "f32", None),
        (GgmlDType::Q8_0, "q8_0", None),
    ] {
        let info = info(dtype);
        assert_eq!((info.dtype.as_str(), info.computes_in.as_deref()), (stored, computes_in));
    }
}

#[test]
fn the_version_is_the_one_built() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    assert!(lock.contains(&format!("name = \"candle-core\"\nversion = \"{CANDLE_VERSION}\"")));
}
