//! A server in memory that does what its script says, in made-up time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use infergate_load::api::body::{Api, RequestTemplate};
use infergate_load::client::dial::{Dial, Dialling};
use infergate_load::client::endpoint::{Endpoint, Limits};
use infergate_load::client::stream::Stream;
use infergate_load::client::url::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

/// One thing a server does with a request.
#[derive(Debug, Clone)]
pub enum Act {
    Wait(Duration),
    Send(Vec<u8>),
    Close,
    /// So many tokens, each of which takes so many milliseconds for each request that is answered at the same time.
    Share(u32, u64),
    /// Never ends.
    Hang,
}

pub fn wait_ms(ms: u64) -> Act {
    Act::Wait(Duration::from_millis(ms))
}

pub fn send(text: impl Into<String>) -> Act {
    Act::Send(text.into().into_bytes())
}

pub const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
pub const END: &str = "0\r\n\r\n";

/// `text` as an HTTP chunk.
pub fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub fn token() -> Act {
    send(chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"))
}

pub fn done(tokens: u32) -> Act {
    let usage = format!("{{\"prompt_tokens\":5,\"completion_tokens\":{tokens}}}");
    let last = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n";
    send(chunk(&format!("{last}data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n")) + END)
}

/// `tokens` tokens, the first after `ttft_ms`, the others `itl_ms` apart.
pub fn answer(ttft_ms: u64, itl_ms: u64, tokens: u32) -> Vec<Act> {
    let mut acts = vec![send(HEAD), wait_ms(ttft_ms), token()];
    for _ in 1..tokens {
        acts.extend([wait_ms(itl_ms), token()]);
    }
    acts.push(done(tokens));
    acts
}

/// A server with one answer after the other; the last one is repeated.
#[derive(Clone, Default)]
pub struct Script {
    answers: Rc<RefCell<VecDeque<Vec<Act>>>>,
    pub dials: Rc<Cell<usize>>,
    sharing: Rc<Cell<u64>>,
    /// Heads and bodies of all requests.
    pub requests: Rc<RefCell<Vec<String>>>,
}

impl Script {
    pub fn new(answers: impl IntoIterator<Item = Vec<Act>>) -> Self {
        Self { answers: Rc::new(RefCell::new(answers.into_iter().collect())), ..Self::default() }
    }

    fn next(&self) -> Vec<Act> {
        let mut answers = self.answers.borrow_mut();
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }.expect("a script has an answer")
    }
}

impl Dial for Script {
    fn dial(&self) -> Dialling<'_> {
        self.dials.set(self.dials.get() + 1);
        let (client, server) = duplex(1 << 20);
        spawn_local(serve(server, self.clone()));
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(client);
            Ok(stream)
        })
    }
}

async fn serve(mut connection: DuplexStream, script: Script) {
    let mut kept = Vec::new();
    while let Some(request) = next_request(&mut connection, &mut kept).await {
        script.requests.borrow_mut().push(request);
        for act in script.next() {
            match act {
                Act::Wait(time) => sleep(time).await,
                Act::Send(bytes) => {
                    if connection.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Close => return,
                Act::Share(tokens, ms) => {
                    script.sharing.set(script.sharing.get() + 1);
                    let sent = share(&mut connection, &script.sharing, tokens, ms).await;
                    script.sharing.set(script.sharing.get() - 1);
                    if sent.is_none() {
                        return;
                    }
                }
                Act::Hang => std::future::pending().await,
            }
        }
    }
}

async fn share(connection: &mut DuplexStream, sharing: &Cell<u64>, tokens: u32, ms: u64) -> Option<()> {
    let Act::Send(token) = token() else { return None };
    for _ in 0..tokens {
        // A request's part of each millisecond, until it is a token's.
        let mut left = 1.0;
        while left > 1e-9 {
            sleep(Duration::from_millis(1)).await;
            left -= 1.0 / (ms * sharing.get()) as f64;
        }
        connection.write_all(&token).await.ok()?;
    }
    Some(())
}

async fn next_request(connection: &mut DuplexStream, kept: &mut Vec<u8>) -> Option<String> {
    loop {
        let text = String::from_utf8_lossy(kept).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
            if body.len() >= length {
                kept.drain(..head.len() + 4 + length);
                return Some(text[..head.len() + 4 + length].to_owned());
            }
        }
        if connection.read_buf(kept).await.ok()? == 0 {
            return None;
        }
    }
}

pub fn template() -> RequestTemplate {
    RequestTemplate {
        extra: serde_json::Map::default(),
        api: Api::Completions,
        model: "m".into(),
        limit_field: "max_tokens",
        ignore_eos: false,
    }
}

pub fn endpoint(script: &Script, limits: Limits) -> Endpoint {
    let dial = Box::new(script.clone());
    let url = Url::parse("http://server", Api::Completions).expect("a URL");
    Endpoint::new(dial, &url, Some("SECRET"), template(), limits).expect("an endpoint")
}

/// Runs `work` in made-up time, which jumps to the next thing that happens.
pub fn in_made_up_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), work)
}
