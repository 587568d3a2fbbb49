//! Text becomes the tokens that Hugging Face tokenizers makes of it, and comes back whole.

use std::path::Path;

use crate::common::gguf::{GgufFile, Value};
use crate::common::{fixture, ids, json, request};
use infergate::engine::EngineFactory;
use infergate_candle::Candle;
use infergate_candle::engine::Tokenize as _;
use infergate_candle::gguf::Gguf;
use infergate_candle::tokenizer::Text;

const PRE_TOKENIZERS: [&str; 4] = ["gpt-2", "smollm", "llama-bpe", "qwen2"];

/// Metadata of a GGUF file with the fixtures' vocabulary and this pre-tokenizer.
fn metadata(pre: &str) -> GgufFile {
    let vocab = json("tokenizer/vocab.json");
    let strings = |key: &str| serde_json::from_value::<Vec<String>>(vocab[key].clone()).unwrap();
    let tokens = strings("tokens");
    let types = tokens.iter().map(|t| if t.starts_with("<|") { 3 } else { 1 }).collect();
    GgufFile::default()
        .with("tokenizer.ggml.model", Value::Text("gpt2".into()))
        .with("tokenizer.ggml.pre", Value::Text(pre.into()))
        .with("tokenizer.ggml.tokens", Value::Texts(tokens))
        .with("tokenizer.ggml.token_type", Value::Numbers(types))
        .with("tokenizer.ggml.merges", Value::Texts(strings("merges")))
}

fn text(file: &GgufFile) -> anyhow::Result<Option<Text>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    Text::from_gguf(&mut Gguf::open(&path).unwrap().content)
}

fn assert_cases(text: &Text, pre: &str) {
    for case in json("tokenizer/expected.json")[pre].as_array().unwrap() {
        let wanted = ids(&case["ids"]);
        let source = case["text"].as_str().unwrap();
        assert_eq!(text.tokenize(source).unwrap(), wanted, "{pre}: {source:?}");
        let back = text.detokenize(&wanted).unwrap();
        // Qwen2 composes accents (NFC) before it cuts.
        assert!(back == source || (pre == "qwen2" && source == "deja\u{300}" && back == "dejà"), "{pre}: {back:?}");
    }
}

#[test]
fn gguf_pre_tokenizers_give_hugging_face_ids() {
    for pre in PRE_TOKENIZERS {
        assert_cases(&text(&metadata(pre)).unwrap().unwrap(), pre);
    }
}

/// Llama 2's kind, against SentencePiece itself.
#[test]
fn gguf_sentencepiece_gives_its_ids() {
    let spm = json("tokenizer/spm.json");
    let file = GgufFile::default()
        .with("tokenizer.ggml.model", Value::Text("llama".into()))
        .with("tokenizer.ggml.tokens", Value::Texts(serde_json::from_value(spm["tokens"].clone()).unwrap()))
        .with("tokenizer.ggml.token_type", Value::Numbers(serde_json::from_value(spm["types"].clone()).unwrap()));
    assert!(text(&file).map(|_| ()).unwrap_err().to_string().contains("tokenizer.ggml.scores"));
    let scores = Value::Floats(serde_json::from_value(spm["scores"].clone()).unwrap());
    let text = text(&file.with("tokenizer.ggml.scores", scores)).unwrap().unwrap();
    for case in spm["cases"].as_array().unwrap() {
        let (source, wanted) = (case["text"].as_str().unwrap(), ids(&case["ids"]));
        assert_eq!(text.tokenize(source).unwrap(), wanted, "{source:?}");
        assert_eq!(text.detokenize(&wanted).unwrap(), source);
    }
}

#[test]
fn tokenizer_json_gives_hugging_face_ids() {
    assert_cases(&Text::from_file(&fixture("tokenizer/gpt-2.json")).unwrap(), "gpt-2");
}

#[test]
fn a_file_without_a_tokenizer_is_none() {
    assert!(text(&GgufFile::default()).unwrap().is_none());
    let engine = Candle.load(&request(fixture("qwen3/model.gguf"), None)).unwrap();
    assert_eq!(engine.tokenize("text").unwrap(), None);
    assert_eq!(engine.detokenize(&[1]).unwrap(), None);
}

#[test]
fn what_is_not_known_is_an_error_that_names_it() {
    let error = |file: GgufFile| format!("{:#}", text(&file).map(|_| ()).unwrap_err());
    let unknown = error(metadata("tekken"));
    assert!(unknown.contains("`tekken`") && unknown.contains("smollm"), "{unknown}");
    assert!(error(metadata("gpt-2").with("tokenizer.ggml.model", Value::Text("rwkv".into()))).contains("`rwkv`"));
    assert!(error(metadata("gpt-2").without("tokenizer.ggml.pre")).contains("tokenizer.ggml.pre"));
    assert!(error(metadata("gpt-2").without("tokenizer.ggml.merges")).contains("tokenizer.ggml.merges"));
    let merges = Value::Texts(vec!["no-such token".into()]);
    assert!(error(metadata("gpt-2").with("tokenizer.ggml.merges", merges)).contains("damaged"));
}

/// On the real model that CI fetches; `INFERGATE_TEST_GGUF` names it.
#[test]
fn smollm2_round_trips_text() {
    let Some(path) = std::env::var_os("INFERGATE_TEST_GGUF") else {
        println!("skipped: INFERGATE_TEST_GGUF names no SmolLM2 GGUF file");
        return;
    };
    let text = Text::from_gguf(&mut Gguf::open(Path::new(&path)).unwrap().content).unwrap().unwrap();
    for source in [
        "The capital of France is",
        "In 1839, 12345 days; 7.5 % of 1000000",
        " leading",
        "  two  spaces and a tab\t.",
        "line\nbreak\r\n\r\n  indented\n",
        "東京は日本の首都です。北京",
        "👩‍🚀 and 🇫🇷 flags ½ ² Ⅷ ٣٤",
        "don't DON'T we'll déjà vu",
    ] {
        let tokens = text.tokenize(source).unwrap();
        assert_eq!(text.detokenize(&tokens).unwrap(), source);
    }
    // As transformers has them.
    assert_eq!(text.tokenize("The capital of France is").unwrap(), [504, 3575, 282, 4649, 314]);
    let digits = text.tokenize("12345").unwrap();
    assert_eq!(digits.len(), 5, "digits are cut one by one");
}
