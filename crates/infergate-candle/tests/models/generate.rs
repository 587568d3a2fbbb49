//! `cargo run --example generate` shows that a model is real: text, or one line of JSON, or one line of error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::hub_server::{HubServer, REPO};
use crate::common::{fixture, json};
use crate::support::example;
use serde_json::Value;

fn generate(model: &Path, more: &[&str]) -> Output {
    command(model, more).output().unwrap()
}

fn command(model: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(example("generate"));
    command.arg("--model").arg(model).args(more).env_remove("HF_TOKEN").env("HF_HUB_OFFLINE", "1");
    command
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line on stderr of a run that must end with exit code 2 and print nothing else.
fn error(output: &Output) -> String {
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(line.starts_with("error: ") && line.ends_with('\n') && line.lines().count() == 1, "{line}");
    line
}

#[test]
fn json_is_one_line_with_the_ids() {
    let expected = json("llama/expected.json");
    let list = |key: &str| expected[key].to_string();
    let prompt = list("prompt_ids").trim_matches(['[', ']']).to_owned();
    for dtype in [&[][..], &["--dtype", "f32"]] {
        let more = [&["--prompt-ids", &prompt, "--max-new", "12", "--json"], dtype].concat();
        let line = stdout(&generate(&fixture("llama/model.gguf"), &more));
        let start = format!("{{\"prompt_ids\":{},\"output_ids\":", list("prompt_ids"));
        assert!(line.starts_with(&start) && line.ends_with("\"}\n") && line.lines().count() == 1, "{line}");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["text"].is_string());
        if !dtype.is_empty() {
            assert_eq!(answer["output_ids"], expected["output_ids"]);
        }
    }
}

#[test]
fn text_comes_as_text() {
    let model = fixture("llama");
    let text = stdout(&generate(&model, &["--prompt", "the words", "--max-new", "4"]));
    let line = stdout(&generate(&model, &["--prompt", "the words", "--max-new", "4", "--json"]));
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(text, format!("{}\n", answer["text"].as_str().unwrap()));
}

#[test]
fn a_model_without_a_tokenizer_takes_and_gives_ids() {
    let model = fixture("qwen3");
    let text = stdout(&generate(&model, &["--prompt-ids", "1,2,3", "--max-new", "3"]));
    assert_eq!(text.split_whitespace().filter(|id| id.parse::<u32>().is_ok()).count(), 3, "{text}");
    let line = stdout(&generate(&model, &["--prompt-ids", "1,2,3", "--max-new", "3", "--json"]));
    assert!(line.ends_with("\"text\":null}\n"), "{line}");
    assert!(error(&generate(&model, &["--prompt", "text"])).contains("--prompt-ids"));
}

#[test]
fn errors_are_one_line_and_exit_2() {
    let model = fixture("llama");
    assert!(error(&generate(Path::new("gtp2"), &["--prompt-ids", "1"])).contains("synthetic:NAME (gpt2"));
    assert!(error(&generate(&model, &["--prompt-ids", "1", "--max-new", "64"])).contains("context of 64"));
    assert!(error(&generate(&model, &["--prompt-ids", "1", "--max-new", "0"])).contains("--max-new"));
    assert!(error(&generate(&model, &["--prompt-ids", "1", "--threads", "0"])).contains("--threads"));
    assert!(error(&generate(&model, &["--prompt", ""])).contains("no tokens"));
    assert!(error(&generate(&model, &["--prompt-ids", "1", "--dtype", "int8"])).contains("`int8`"));
}

#[test]
fn the_hub_is_used_as_the_environment_says() {
    let (server, home) = (HubServer::start(&fixture("llama")), tempfile::tempdir().unwrap());
    server.with(|s| s.token = Some("hf_secret".into()));
    let spec = PathBuf::from(format!("hf:{REPO}"));
    let run = |offline: &str, token: &str| {
        let mut command = command(&spec, &["--prompt-ids", "1", "--max-new", "2", "--json"]);
        command.env("HF_HOME", home.path()).env("HF_ENDPOINT", &server.endpoint);
        command.env("HF_HUB_OFFLINE", offline).env("HF_TOKEN", token).env_remove("HF_HUB_CACHE");
        command.output().unwrap()
    };
    assert!(error(&run("1", "")).contains("HF_HUB_OFFLINE"));
    assert!(error(&run("0", "hf_wrong")).contains("set HF_TOKEN"));
    let downloaded = run("0", "hf_secret");
    assert_eq!(downloaded.stderr, b"", "no progress bar where nobody looks");
    assert_eq!(stdout(&run("1", "")), stdout(&downloaded));
}

/// On the real model that CI fetches; `INFERGATE_TEST_GGUF` names it.
#[test]
fn smollm2_knows_the_capital_of_france() {
    let Some(path) = std::env::var_os("INFERGATE_TEST_GGUF") else {
        println!("skipped: INFERGATE_TEST_GGUF names no SmolLM2 GGUF file");
        return;
    };
    for dtype in [&[][..], &["--dtype", "f32"]] {
        let more = [&["--prompt", "The capital of France is", "--max-new", "2"], dtype].concat();
        assert_eq!(stdout(&generate(Path::new(&path), &more)), " Paris.\n");
    }
}
