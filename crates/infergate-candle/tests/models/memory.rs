//! What a model is expected to take of the memory, in numbers: nothing is loaded here.

use crate::common::fixture;
use infergate_candle::config::{Family, LlamaConfig};
use infergate_candle::gguf::Gguf;
use infergate_candle::gpt2::Gpt2Config;
use infergate_candle::weights;

const MIB: u64 = 1 << 20;

#[test]
fn gpt2_keeps_its_whole_cache_and_is_cut_while_it_loads() {
    let config = Gpt2Config::gpt2();
    let cut = config.cut_bytes(config.n_layer);
    assert_eq!(cut, 4 * 12 * 7 * 768 * 768);
    let needs = config.needs(cut);
    assert_eq!(needs.weights, 4 * 124_439_808);
    assert!(needs.running > 2 * 12 * 1024 * 768 * 4, "{needs:?}");
    assert_eq!(needs.peak(), needs.weights + cut, "loading takes more than running");
    let synthetic = config.needs(0);
    assert_eq!(synthetic.peak(), synthetic.weights + synthetic.running);
}

#[test]
fn a_published_model_takes_what_its_card_says_and_what_runs_beside_it() {
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
    let parameters = weights::parameters(&config);
    assert_eq!(parameters, 7_615_616_512);
    let needs = config.needs(4 * parameters, 0, false);
    assert!((29_000 * MIB..31_500 * MIB).contains(&needs.peak()), "{needs:?}");
}

#[test]
fn a_gguf_keeps_its_embedding_in_f32_too() {
    for name in ["llama", "qwen2", "qwen3"] {
        let file = Gguf::open(&fixture(name).join("model.gguf")).unwrap();
        let config = file.config().unwrap();
        let embedding_f32 = (config.vocab * config.hidden * 4) as u64;
        let in_file = std::fs::metadata(fixture(name).join("model.gguf")).unwrap().len();
        let needs = file.needs(&config, true);
        assert!(needs.weights > embedding_f32, "{name}");
        assert!(needs.peak() > in_file + embedding_f32, "{name}: {needs:?}");
        let as_f32 = file.needs(&config, false);
        assert_eq!(as_f32.weights, 4 * weights::parameters(&config), "{name}");
        assert!(as_f32.loading > needs.loading, "{name}: dequantized beside the stored ones");
    }
}
