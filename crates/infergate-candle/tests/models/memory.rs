//! What a model is expected to take of the memory, in numbers: nothing is loaded here.

use crate::common::fixture;
use infergate_candle::config::{Family, LlamaConfig};
use infergate_candle::fits::Needs;
use infergate_candle::gguf::Gguf;
use infergate_candle::gpt2::Gpt2Config;
use infergate_candle::weights;

const MIB: u64 = 1 << 20;

fn qwen2_7b() -> LlamaConfig {
    LlamaConfig {
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
    }
}

#[test]
fn gpt2_keeps_its_whole_cache_and_is_cut_while_it_loads() {
    let config = Gpt2Config::gpt2();
    let cut = config.cut_bytes(config.n_layer);
    assert_eq!(cut, 4 * 12 * 7 * 768 * 768);
    let needs = config.needs(cut);
    assert_eq!(needs.weights, 4 * 124_439_808);
    assert_eq!(needs.cache, 2 * 12 * 1024 * 768 * 4);
    assert_eq!(needs.tables, 64 * (1024 + 64) * 4);
    assert_eq!(needs.peak(), needs.weights + needs.tables + cut, "loading takes more than running");
    let synthetic = config.needs(0);
    assert_eq!(synthetic.peak(), synthetic.weights + synthetic.tables + synthetic.cache + synthetic.buffers);
}

#[test]
fn rotary_tables_cover_the_whole_context_and_the_cache_what_is_counted() {
    let config = qwen2_7b();
    let parameters = weights::parameters(&config);
    assert_eq!(parameters, 7_615_616_512, "as its model card says");
    let needs = Needs::llama(&config, 4 * parameters, 0, false);
    assert_eq!(needs.tables, 3 * 131_072 * 64 * 4);
    assert_eq!(needs.cache, 2 * (2 * 28 * 512 * 1024 * 4));
    // Scores of 28 heads over 1024 tokens, three times.
    assert!(needs.buffers > 3 * 28 * 1024 * 1024 * 4);
    assert!((29_000 * MIB..31_500 * MIB).contains(&needs.peak()), "{needs:?}");
    let short = Needs::llama(&LlamaConfig { context: 100, ..config }, 0, 0, false);
    assert_eq!(short.cache, 2 * (2 * 28 * 512 * 100 * 4), "no more than the context");
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

#[test]
fn what_does_not_fit_is_refused_with_its_parts() {
    let needs = Needs { weights: 3 << 30, loading: 1 << 30, tables: 512 * MIB, cache: 1 << 30, buffers: 1 << 30 };
    assert_eq!(needs.peak(), (5 << 30) + 512 * MIB);
    needs.ensure_below(needs.peak(), "m").unwrap();
    let line = needs.ensure_below(needs.peak() - 1, "m").unwrap_err().to_string();
    assert!(line.starts_with(
        "m: it takes 5.5 GiB of memory (weights 3.0, loading them 1.0, tables 0.5, cache and buffers 2.0)"
    ));
    assert!(line.contains("5.5 GiB are free; close programs") && !line.contains('\n'), "{line}");
}

#[test]
fn numbers_without_end_are_refused_not_wrapped() {
    let config = LlamaConfig {
        layers: usize::MAX,
        hidden: 1 << 22,
        intermediate: 1 << 22,
        heads: 1 << 11,
        kv_heads: 1 << 11,
        head_dim: 1 << 11,
        vocab: 1 << 22,
        context: 1 << 21,
        ..LlamaConfig::smollm2_135m()
    };
    let needs = Needs::llama(&config, u64::MAX, u64::MAX, true);
    assert_eq!((needs.cache, needs.peak()), (u64::MAX, u64::MAX));
}
