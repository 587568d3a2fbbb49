//! What a model's weights are expected to take of the memory, in numbers: nothing is loaded here.

use crate::common::fixture;
use infergate_candle::config::{Family, LlamaConfig};
use infergate_candle::gguf::Gguf;
use infergate_candle::weights;

#[test]
fn a_published_model_has_as_many_weights_as_its_card_says() {
    let config = LlamaConfig {
        family: Family::Qwen2,
        layers: 28,
        hidden: 3584,
        intermediate: 18944,
        heads: 28,
        kv_heads: 4,
        head_dim: 128,
        vocab: 152_064,
        context: 131_072,
        tied: false,
        ..LlamaConfig::smollm2_135m()
    };
    assert_eq!(weights::parameters(&config), 7_615_616_512);
}

#[test]
fn a_gguf_keeps_its_embedding_in_f32_too() {
    for name in ["llama", "qwen2", "qwen3"] {
        let file = Gguf::open(&fixture(name).join("model.gguf")).unwrap();
        let config = file.config().unwrap();
        let embedding_f32 = (config.vocab * config.hidden * 4) as u64;
        assert!(file.quantized_bytes(&config).0 > embedding_f32, "{name}");
    }
}
