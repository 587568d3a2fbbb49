//! The weights a model with Llama's layout has: names in safetensors and in GGUF, shapes.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, bail, ensure};

use crate::config::{Family, LlamaConfig};

/// One weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its name in Hugging Face's safetensors.
    pub hf: String,
    /// Its name in GGUF.
    pub gguf: String,
    /// Rows and columns; one number for a vector.
    pub shape: Vec<usize>,
    /// GGUF keeps Llama's q and k with the rows of each of so many heads interleaved.
    pub interleaved_heads: Option<usize>,
}

/// Every weight of `config`, the embedding first.
pub fn weights(config: &LlamaConfig) -> impl Iterator<Item = Weight> + '_ {
    let c = config;
    let head = (!c.tied).then(|| plain("lm_head.weight", "output.weight", &[c.vocab, c.hidden]));
    [
        plain("model.embed_tokens.weight", "token_embd.weight", &[c.vocab, c.hidden]),
        plain("model.norm.weight", "output_norm.weight", &[c.hidden]),
    ]
    .into_iter()
    .chain(head)
    .chain((0..c.layers).flat_map(|layer| block(c, layer)))
}

fn block(c: &LlamaConfig, layer: usize) -> Vec<Weight> {
    let weight = |hf: &str, gguf: &str, shape: &[usize]| {
        plain(&format!("model.layers.{layer}.{hf}"), &format!("blk.{layer}.{gguf}"), shape)
    };
    let rotary =
        |weight: Weight, heads| Weight { interleaved_heads: (c.family == Family::Llama).then_some(heads), ..weight };
    let mut weights = vec![
        weight("input_layernorm.weight", "attn_norm.weight", &[c.hidden]),
        rotary(weight("self_attn.q_proj.weight", "attn_q.weight", &[c.q_width(), c.hidden]), c.heads),
        rotary(weight("self_attn.k_proj.weight", "attn_k.weight", &[c.kv_width(), c.hidden]), c.kv_heads),
        weight("self_attn.v_proj.weight", "attn_v.weight", &[c.kv_width(), c.hidden]),
        weight("self_attn.o_proj.weight", "attn_output.weight", &[c.hidden, c.q_width()]),
        weight("post_attention_layernorm.weight", "ffn_norm.weight", &[c.hidden]),
        weight("mlp.gate_proj.weight", "ffn_gate.weight", &[c.intermediate, c.hidden]),
        weight("mlp.up_proj.weight", "ffn_up.weight", &[c.intermediate, c.hidden]),
        weight("mlp.down_proj.weight", "ffn_down.weight", &[c.hidden, c.intermediate]),
    ];
    match c.family {
        Family::Llama => {}
        Family::Qwen2 => weights.extend([
            weight("self_attn.q_proj.bias", "attn_q.bias", &[c.q_width()]),
            weight("self_attn.k_proj.bias", "attn_k.bias", &[c.kv_width()]),
            weight("self_attn.v_proj.bias", "attn_v.bias", &[c.kv_width()]),
        ]),
        Family::Qwen3 => weights.extend([
            weight("self_attn.q_norm.weight", "attn_q_norm.weight", &[c.head_dim]),
            weight("self_attn.k_norm.weight", "attn_k_norm.weight", &[c.head_dim]),
        ]),
    }
    weights
}

fn plain(hf: &str, gguf: &str, shape: &[usize]) -> Weight {
    Weight { hf: hf.to_owned(), gguf: gguf.to_owned(), shape: shape.to_vec(), interleaved_heads: None }
}

/// Number of weights of `config`.
pub fn parameters(config: &LlamaConfig) -> u64 {
    weights(config).map(|w| w.shape.iter().map(|&n| n as u64).product::<u64>()).sum()
}

/// What they take in f32.
pub fn f32_bytes(config: &LlamaConfig) -> u64 {
    4 * parameters(config)
}

/// Compares the weights that a file has, by name, with what `config` needs, before a model is built from them. `name` picks a
/// weight's name in this file.
///
/// A weight in the file that this layout does not know is an error as well: without it the output would be wrong.
///
/// # Errors
/// Naming the first weight that is missing, has another shape, or is not known.
pub fn check(config: &LlamaConfig, name: fn(&Weight) -> &str, stored: &HashMap<String, Vec<usize>>) -> Result<()> {
    let mut known = HashSet::new();
    for weight in weights(config) {
        let key = name(&weight);
        let Some(shape) = stored.get(key) else { bail!("the weight `{key}` is missing; is the file complete?") };
        ensure!(
            *shape == weight.shape,
            "the weight `{key}` has shape {shape:?} and the configuration asks for {:?}",
            weight.shape
        );
        known.insert(key.to_owned());
    }
    // Old checkpoints store the rotary frequencies, and some store the tied head a second time.
    let harmless = |n: &str| n.ends_with(".rotary_emb.inv_freq") || (config.tied && n == "lm_head.weight");
    if let Some(extra) = stored.keys().filter(|name| !known.contains(*name) && !harmless(name)).min() {
        bail!(
            "the weight `{extra}` is not part of the {} layout computed here; the output would be wrong without it",
            config.family.name()
        );
    }
    Ok(())
}
