//! Completions as JSON: whole ones, and the events of a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::request::Api;

/// Writes what is said of one request. Every output ends because it is as long as was asked for.
pub struct Writer {
    api: Api,
    /// `"id":..,"object":..,"created":..,"model":..` of every event.
    head: String,
    include_usage: bool,
    id: String,
    created_s: u64,
    model: String,
}

impl Writer {
    /// For request number `number` to `model`.
    pub fn new(api: Api, number: u64, model: &str, include_usage: bool) -> Self {
        let created_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (prefix, object) = match api {
            Api::Completions => ("cmpl", "text_completion"),
            Api::Chat => ("chatcmpl", "chat.completion.chunk"),
        };
        let id = format!("{prefix}-{number}");
        let named = quoted(model);
        let head = format!(r#""id":"{id}","object":"{object}","created":{created_s},"model":{named}"#);
        Self { api, head, include_usage, id, created_s, model: model.to_owned() }
    }

    /// The events of one token. A chat begins with its role and ends with an event of its own.
    pub fn token(&self, text: &str, first: bool, last: bool) -> String {
        let text = quoted(text);
        match self.api {
            Api::Completions => {
                let finish = if last { r#""length""# } else { "null" };
                self.event(&format!(r#"{{"index":0,"text":{text},"logprobs":null,"finish_reason":{finish}}}"#))
            }
            Api::Chat => {
                let delta = |delta: &str, finish: &str| {
                    self.event(&format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}"#))
                };
                let mut events = String::new();
                if first {
                    events += &delta(r#"{"role":"assistant","content":""}"#, "null");
                }
                events += &delta(&format!(r#"{{"content":{text}}}"#), "null");
                if last {
                    events += &delta("{}", r#""length""#);
                }
                events
            }
        }
    }

    fn event(&self, choice: &str) -> String {
        let usage = if self.include_usage { r#","usage":null"# } else { "" };
        format!("data: {{{},\"choices\":[{choice}]{usage}}}\n\n", self.head)
    }

    /// What stands behind the last token: the counts where they were asked for, and the stream's end.
    pub fn end(&self, prompt_tokens: usize, output_tokens: usize) -> String {
        let mut events = String::new();
        if self.include_usage {
            let usage = usage(prompt_tokens, output_tokens);
            events += &format!("data: {{{},\"choices\":[],\"usage\":{usage}}}\n\n", self.head);
        }
        events + "data: [DONE]\n\n"
    }

    /// The whole completion.
    pub fn whole(&self, text: &str, prompt_tokens: usize, output_tokens: usize) -> String {
        let (object, choice) = match self.api {
            Api::Completions => {
                ("text_completion", json!({ "index": 0, "text": text, "logprobs": null, "finish_reason": "length" }))
            }
            Api::Chat => (
                "chat.completion",
                json!({
                    "index": 0,
                    "message": { "role": "assistant", "content": text },
                    "logprobs": null,
                    "finish_reason": "length",
                }),
            ),
        };
        json!({
            "id": self.id,
            "object": object,
            "created": self.created_s,
            "model": self.model,
            "choices": [choice],
            "usage": usage(prompt_tokens, output_tokens),
        })
        .to_string()
    }
}

fn usage(prompt_tokens: usize, output_tokens: usize) -> Value {
    json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens.saturating_add(output_tokens),
    })
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
