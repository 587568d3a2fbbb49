//! Completions token by token.

use anyhow::Result;
use infergate::engine::fake::FakeScript;
use infergate::engine::{Engine, EngineInfo, Event, FakeEngine, RequestId, RoundRobin, Scheduler, TokenId};
use infergate_serve::Settings;
use serde_json::{Value, json};

use crate::client::{get, post, send};
use crate::engines::{Bytes, Gate, Gated, alone, fake, server, start, written};

fn parsed(events: &[String]) -> Vec<Value> {
    events.iter().map(|event| serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}: {event}"))).collect()
}

#[test]
fn a_completion_is_an_event_for_each_token_and_an_end() {
    let server = server();
    let body = r#"{"prompt":[1,2,3],"max_tokens":4,"stream":true}"#;
    let stream = send(server.address(), "POST", "/v1/completions", body);
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    let mut events = stream.events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    let events = parsed(&events);
    let ids = alone(&[1, 2, 3], 4);
    assert_eq!(events.len(), 4);
    for (number, (event, id)) in events.iter().zip(ids).enumerate() {
        let finish = if number == 3 { json!("length") } else { Value::Null };
        let choice = json!([{ "index": 0, "text": format!("t{id} "), "logprobs": null, "finish_reason": finish }]);
        assert_eq!((&event["choices"], &event["object"]), (&choice, &json!("text_completion")));
        assert!(event["id"] == events[0]["id"] && event.get("usage").is_none());
    }
}

#[test]
fn usage_comes_in_a_last_event_where_it_is_asked_for() {
    let server = server();
    let body = r#"{"prompt":[1,2,3],"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}"#;
    let mut events = send(server.address(), "POST", "/v1/completions", body).events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    let events = parsed(&events);
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    assert_eq!((&events[2]["choices"], &events[2]["usage"]), (&json!([]), &usage));
    assert!(events[..2].iter().all(|event| event["usage"].is_null() && event.get("usage").is_some()));
}

#[test]
fn a_chat_begins_with_its_role_and_ends_with_a_reason() {
    let server = server();
    let body = r#"{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"stream":true}"#;
    let mut events = send(server.address(), "POST", "/v1/chat/completions", body).events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    let events = parsed(&events);
    let prompt: Vec<u32> = "user: Hi\nassistant:".bytes().map(u32::from).collect();
    let ids = alone(&prompt, 2);
    let deltas: Vec<&Value> = events.iter().map(|event| &event["choices"][0]["delta"]).collect();
    assert_eq!(
        deltas,
        [
            &json!({ "role": "assistant", "content": "" }),
            &json!({ "content": written(&ids[..1]) }),
            &json!({ "content": written(&ids[1..]) }),
            &json!({}),
        ]
    );
    let reasons: Vec<&Value> = events.iter().map(|event| &event["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons, [&Value::Null, &Value::Null, &Value::Null, &json!("length")]);
    assert!(events.iter().all(|event| event["object"] == "chat.completion.chunk"));
}

#[test]
fn each_token_is_sent_before_the_next_one_is_computed() {
    let gate = Gate::default();
    let server = start(Gated::new(&gate), Settings::default());
    let body = r#"{"prompt":[1,2,3],"max_tokens":3,"stream":true}"#;
    let mut stream = send(server.address(), "POST", "/v1/completions", body);
    for id in alone(&[1, 2, 3], 3) {
        gate.let_through(1);
        let event = stream.event().expect("a token");
        assert!(event.contains(&format!("\"text\":\"t{id} \"")), "{event}");
    }
    assert_eq!(stream.events(), ["[DONE]"]);
}

#[test]
fn a_character_that_is_spread_over_tokens_comes_whole() {
    let server = start(Bytes { says: "né€", given: 0 }, Settings::default());
    let text = |tokens: usize| {
        let body = format!(r#"{{"prompt":"abc","max_tokens":{tokens},"stream":true}}"#);
        let mut events = send(server.address(), "POST", "/v1/completions", &body).events();
        assert_eq!(events.pop().as_deref(), Some("[DONE]"));
        let texts = parsed(&events).into_iter().map(|event| event["choices"][0]["text"].clone());
        texts.map(|text| text.as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(text(6), ["n", "é", "€"]);
    assert_eq!(text(7), ["n", "é", "€", "n"]);
    assert_eq!(text(4), ["n", "é", "\u{fffd}"], "the last token's text is given, whole or not");
}

#[test]
fn many_streams_at_once_do_not_mix() {
    let server = server();
    let address = server.address();
    let prompts: Vec<[u32; 2]> = (0..20).map(|user| [user, 7]).collect();
    std::thread::scope(|scope| {
        for prompt in &prompts {
            scope.spawn(move || {
                let body = json!({ "prompt": prompt, "max_tokens": 30, "stream": true }).to_string();
                let mut events = send(address, "POST", "/v1/completions", &body).events();
                assert_eq!(events.pop().as_deref(), Some("[DONE]"));
                let texts: String =
                    parsed(&events).iter().map(|event| event["choices"][0]["text"].as_str().expect("text")).collect();
                assert_eq!(texts, written(&alone(prompt, 30)));
            });
        }
    });
}

#[test]
fn an_engine_that_fails_ends_its_stream_with_an_error_and_the_server_goes_on() {
    let script = FakeScript { fails_at_step: Some(2), ..FakeScript::default() };
    let server = start(fake(script), Settings { slots: 1, ..Settings::default() });
    let body = r#"{"prompt":[1],"max_tokens":5,"stream":true}"#;
    let events = send(server.address(), "POST", "/v1/completions", body).events();
    assert_eq!(events.len(), 4, "three tokens and the error, and no [DONE]: {events:?}");
    let error = &parsed(&events)[3]["error"];
    assert_eq!(
        (&error["message"], &error["type"]),
        (&json!("the fake engine failed at step 2"), &json!("server_error"))
    );
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":[1],"max_tokens":5}"#);
    assert_eq!((answer.status, answer.refusal().as_str()), (500, "the fake engine failed at step 2"));
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":[1],"max_tokens":1}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(get(server.address(), "/health").json()["in_flight"], 0);
}

/// A scheduler that stops at an end of sequence, as others do.
struct Ends(RoundRobin);

impl Scheduler for Ends {
    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn submit(&mut self, prompt: &[TokenId], output_tokens: usize) -> Result<RequestId> {
        self.0.submit(prompt, output_tokens.min(2))
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        self.0.step()
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        self.0.cancel(request)
    }
}

struct Early(FakeEngine);

impl Engine for Early {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.0.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.0.next()
    }

    fn scheduler(&self, _requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        Ok(Box::new(Ends(RoundRobin::new(vec![self.0.fork()?])?)))
    }
}

#[test]
fn a_scheduler_that_ends_a_request_early_is_named_and_the_server_goes_on() {
    let server = start(Early(fake(FakeScript::default())), Settings { slots: 1, ..Settings::default() });
    let answer = post(server.address(), "/v1/completions", r#"{"prompt":[1],"max_tokens":5}"#);
    let why = "the scheduler ended the request after 2 of 5 tokens";
    assert!(answer.status == 500 && answer.refusal().starts_with(why), "{}", answer.body);
    assert_eq!(post(server.address(), "/v1/completions", r#"{"prompt":[1],"max_tokens":2}"#).status, 200);
}
