//! Whole completions, and what the server says of itself.

use infergate_serve::Settings;
use serde_json::json;

use crate::client::{get, post};
use crate::engines::{Bytes, alone, server, start, written};

#[test]
fn a_completion_has_exactly_the_tokens_that_the_engine_gives_alone() {
    let server = server();
    let ids = alone(&[1, 2, 3], 5);
    for body in [
        r#"{"model":"fake","prompt":[1,2,3],"max_tokens":5,"ignore_eos":true,"temperature":0}"#,
        r#"{"prompt":[[1,2,3]],"max_tokens":5,"stop":[],"n":1,"stream":false}"#,
        r#"{"prompt":[1,2,3],"max_completion_tokens":5,"something_new":{"a":1}}"#,
    ] {
        let answer = post(server.address(), "/v1/completions", body);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{}", answer.body);
        let json = answer.json();
        assert_eq!((&json["object"], &json["model"]), (&json!("text_completion"), &json!("fake")));
        assert!(json["id"].as_str().is_some_and(|id| id.starts_with("cmpl-")) && json["created"].is_u64());
        let choice = json!([{ "index": 0, "text": written(&ids), "logprobs": null, "finish_reason": "length" }]);
        assert_eq!(json["choices"], choice);
        assert_eq!(json["usage"], json!({ "prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8 }));
    }
}

#[test]
fn without_a_tokenizer_a_prompt_is_its_bytes() {
    let server = server();
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":"Hé","max_tokens":2}"#);
    let prompt: Vec<u32> = "Hé".bytes().map(u32::from).collect();
    assert_eq!(answer.json()["choices"][0]["text"], written(&alone(&prompt, 2)));
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":["Hé"]}"#);
    assert_eq!(answer.json()["choices"][0]["text"], written(&alone(&prompt, 16)), "16 tokens unless told otherwise");
}

#[test]
fn a_chat_is_one_text_for_the_engine() {
    let server = server();
    let body = json!({
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Hi" }, { "type": "text", "text": "!" }] },
        ],
        "max_completion_tokens": 3,
    });
    let answer = post(server.address(), "/v1/chat/completions", &body.to_string());
    let json = answer.json();
    let prompt: Vec<u32> = "system: Be brief.\nuser: Hi!\nassistant:".bytes().map(u32::from).collect();
    let message = json!({ "role": "assistant", "content": written(&alone(&prompt, 3)) });
    assert_eq!(json["object"], "chat.completion");
    assert_eq!(json["choices"][0]["message"], message);
    assert_eq!(json["choices"][0]["finish_reason"], "length");
    assert_eq!(json["usage"]["prompt_tokens"], prompt.len());
}

#[test]
fn a_tokenizer_is_used_where_there_is_one() {
    let server = start(Bytes { says: "né", given: 0 }, Settings::default());
    let answer = post(server.address(), "/v1/completions", r#"{"model":"bytes","prompt":"abc","max_tokens":7}"#);
    let json = answer.json();
    // The seventh byte is "n"; with six it would end in a whole character, with five in a half one.
    assert_eq!((&json["choices"][0]["text"], &json["usage"]["prompt_tokens"]), (&json!("nénén"), &json!(3)));
    let cut = post(server.address(), "/v1/completions", r#"{"prompt":"abc","max_tokens":5}"#);
    assert_eq!(cut.json()["choices"][0]["text"], "nén\u{fffd}");
}

#[test]
fn the_model_and_its_health_are_shown() {
    let server = server();
    let models = get(server.address(), "/v1/models").json();
    assert_eq!(models["object"], "list");
    assert_eq!((&models["data"][0]["id"], &models["data"][0]["max_model_len"]), (&json!("fake"), &json!(1024)));
    let health = get(server.address(), "/health");
    assert_eq!((health.status, health.json()), (200, json!({ "status": "ok", "in_flight": 0, "waiting": 0 })));
}
