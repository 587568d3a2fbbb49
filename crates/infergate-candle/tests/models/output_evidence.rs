//! What the gate says of a GPT-2 that computes something else, and of one that only rounds in another order.

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use infergate::engine::EngineInfo;
use infergate::measure;
use infergate_candle::digest::Digest;
use infergate_candle::gpt2::{Gpt2, Gpt2Config};
use infergate_candle::{CandleEngine, synthetic};
use infergate_core::case::Case;
use infergate_core::prompt::seeded_ids;
use infergate_core::receipt::Output;
use infergate_judge::output::{OutputComparison, OutputEvidence, compare, default_tolerance};

const CASES: [&str; 3] = ["prefill/p32", "decode/p32", "generate/p32-o20"];

/// GPT-2's twelve layers, a quarter as wide.
fn config() -> Gpt2Config {
    Gpt2Config { vocab_size: 1024, n_embd: 192, n_layer: 12, n_head: 6, ..Gpt2Config::gpt2() }
}

type Change = fn(&str, Tensor) -> Result<Tensor>;

/// Synthetic weights, some of them changed.
struct Changed(Change);

impl SimpleBackend for Changed {
    fn get(&self, shape: Shape, name: &str, init: Init, dtype: DType, _: &Device) -> Result<Tensor> {
        (self.0)(name, synthetic::var_builder(1, dtype).get_with_hints(shape, name, init)?)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        candle_core::bail!("{name} was requested without a shape")
    }

    fn contains_tensor(&self, _: &str) -> bool {
        true
    }
}

fn engine(config: &Gpt2Config, threads: usize, change: Change) -> CandleEngine {
    let vb = VarBuilder::from_backend(Box::new(Changed(change)), DType::F32, Device::Cpu);
    let decoder = Gpt2::load(config, vb, threads).expect("loads");
    let info = EngineInfo {
        model: "synthetic".into(),
        dtype: "f32".into(),
        context_tokens: config.n_positions,
        vocab_tokens: config.vocab_size,
        ..EngineInfo::default()
    };
    CandleEngine::new(Box::new(decoder), info, None, Digest::of_recipe("synthetic"))
}

fn outputs(mut engine: CandleEngine, base: Option<&[Output]>) -> Vec<Output> {
    let output = |(at, id): (usize, &&str)| {
        let case: Case = id.parse().expect("a case id");
        let prompt = seeded_ids(case.prompt_tokens(), 1, config().vocab_size);
        let path = base.map(|base| base[at].path());
        measure::prepare(&mut engine, case, prompt, path.as_deref()).expect("prepares").output
    };
    CASES.iter().enumerate().map(output).collect()
}

/// Each case of another engine compared with the unchanged one on two threads.
fn compared(others: Vec<CandleEngine>) -> Vec<Vec<OutputEvidence>> {
    let base = outputs(engine(&config(), 2, |_, weight| Ok(weight)), None);
    let tolerance = default_tolerance(&EngineInfo { dtype: "f32".into(), ..EngineInfo::default() });
    let beside = |other| {
        let head = outputs(other, Some(&base));
        base.iter().zip(&head).map(|(base, head)| compare(base, head, tolerance)).collect()
    };
    others.into_iter().map(beside).collect()
}

/// `c_attn` holds the queries' columns, then keys', then values', each head after head.
fn scaled_queries(c_attn: &Tensor, factor: f64) -> Result<Tensor> {
    let (last, width) = (c_attn.rank() - 1, config().n_embd);
    let rest = c_attn.narrow(last, width, 2 * width)?;
    Tensor::cat(&[(c_attn.narrow(last, 0, width)? * factor)?, rest], last)
}

fn swapped_heads(c_attn: &Tensor) -> Result<Tensor> {
    let (last, width, dim) = (c_attn.rank() - 1, config().n_embd, config().head_dim());
    let mut parts = Vec::new();
    for start in [0, width, 2 * width] {
        for (offset, len) in [(dim, dim), (0, dim), (2 * dim, width - 2 * dim)] {
            parts.push(c_attn.narrow(last, start + offset, len)?);
        }
    }
    Tensor::cat(&parts, last)?.contiguous()
}

/// Every other number off by its last bit, at random: what rounding elsewhere does.
fn last_bits(weight: &Tensor) -> Result<Tensor> {
    let mut state = 1_u64;
    let mut flip = |value: f32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f32::from_bits(value.to_bits() + u32::from(state >> 63 == 1))
    };
    let values: Vec<f32> = weight.flatten_all()?.to_vec1::<f32>()?.into_iter().map(&mut flip).collect();
    Tensor::from_vec(values, weight.shape(), &Device::Cpu)
}

#[test]
fn the_same_sums_in_another_order_are_the_same_or_drifted() {
    let unchanged: Change = |_, weight| Ok(weight);
    let rounded: Change = |name, weight| match name.ends_with("c_proj.weight") || name.ends_with("c_fc.weight") {
        true => last_bits(&weight),
        false => Ok(weight),
    };
    let found = compared(vec![
        engine(&config(), 2, unchanged),
        engine(&config(), 1, unchanged),
        engine(&config(), 3, unchanged),
        engine(&config(), 2, rounded),
    ]);
    assert!(found[0].iter().all(|case| case.comparison == OutputComparison::Same), "{:?}", found[0]);
    for case in found[1..].iter().flatten() {
        assert_eq!((case.comparison, case.positions), (OutputComparison::Drifted, Some(16)), "{case:?}");
        // Well inside: the tolerance is no close fit to these weights.
        assert!(case.relative_drift.is_some_and(|drift| drift < 5e-7), "{case:?}");
    }
}

#[test]
fn another_attention_another_epsilon_and_swapped_heads_are_changed_in_every_case() {
    let scale: Change = |name, weight| match name.contains("c_attn") {
        true => scaled_queries(&weight, 1.02),
        false => Ok(weight),
    };
    let scale_once: Change = |name, weight| match name.contains("h.11.attn.c_attn") {
        true => scaled_queries(&weight, 1.02),
        false => Ok(weight),
    };
    let swap: Change = |name, weight| match name.contains("h.11.attn.c_attn") {
        true => swapped_heads(&weight),
        false => Ok(weight),
    };
    // An epsilon makes a norm's output weaker by sqrt(variance / (variance + epsilon)). The first norm sees two embeddings of
    // variance 0.02^2 each; the last one sees a variance of about 100, where 1e-3 for 1e-5 is no more than 5 parts in a million.
    let first_norm: Change = |name, weight| match name.ends_with("h.0.ln_1.weight") {
        true => weight * (8.1e-4_f64 / 18.0e-4).sqrt(),
        false => Ok(weight),
    };
    let last_norm: Change = |name, weight| match name.ends_with("ln_f.weight") {
        true => weight * (1.0 - 4.6e-6),
        false => Ok(weight),
    };
    let unchanged: Change = |_, weight| Ok(weight);
    let every_norm = Gpt2Config { layer_norm_epsilon: 1e-3, ..config() };
    let engines = [scale, scale_once, swap, first_norm, last_norm].map(|change| engine(&config(), 2, change));
    let found = compared(engines.into_iter().chain([engine(&every_norm, 2, unchanged)]).collect());
    for (change, cases) in found.iter().enumerate() {
        for (case, id) in cases.iter().zip(CASES) {
            assert_eq!(case.comparison, OutputComparison::Changed, "change {change} of {id}: {case:?}");
        }
    }
}
