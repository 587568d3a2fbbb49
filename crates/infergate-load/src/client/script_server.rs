//! The server of the self-audit: it sends tokens at scripted times and writes down when it sent each. A process of its own, on
//! loopback, that ends with its input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until};

use crate::client::cpu::{raise_connection_limit, shared_clock_ns};

/// The hidden command that runs it; its arguments are those of [`Script`], in their order.
pub const COMMAND: &str = "load-script-server";

/// When the tokens of each answer come.
#[derive(Clone, Copy)]
pub struct Script {
    /// From the request to the first token.
    pub ttft_ns: u64,
    /// From one token to the next.
    pub itl_ns: u64,
    /// Tokens of an answer.
    pub output_tokens: u32,
}

/// When each token of a request was written, by [`shared_clock_ns`], just before; by the request's number.
pub type Log = BTreeMap<u64, Vec<u64>>;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Prints the port, serves until standard input ends, and prints the log.
pub fn run(script: Script) -> Result<()> {
    infergate_core::process::end_with_parent();
    raise_connection_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let log: Rc<RefCell<Log>> = Rc::default();
    let served = log.clone();
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no port on 127.0.0.1 for the self-audit")?;
        println!("{}", listener.local_addr()?.port());
        std::io::stdout().flush()?;
        let (ended, end) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            let _ = ended.send(());
        });
        spawn_local(async move {
            while let Ok((connection, _)) = listener.accept().await {
                spawn_local(serve(connection, script, served.clone()));
            }
        });
        let _ = end.await;
        anyhow::Ok(())
    })?;
    println!("{}", serde_json::to_string(&*log.borrow())?);
    Ok(())
}

async fn serve(mut connection: TcpStream, script: Script, log: Rc<RefCell<Log>>) {
    let _ = connection.set_nodelay(true);
    let mut kept = Vec::new();
    while let Some(prompt) = next_request(&mut connection, &mut kept).await {
        let Some(times) = answer(&mut connection, script).await else { return };
        let mut log = log.borrow_mut();
        // Whoever uses it by hand has no numbers for prompts: the order of the ends is as good.
        let request = prompt.parse().unwrap_or(log.len() as u64);
        log.insert(request, times);
    }
}

/// Reads one request and gives its prompt.
async fn next_request(connection: &mut TcpStream, kept: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(head) = kept.windows(4).position(|end| end == b"\r\n\r\n") {
            let length = content_length(&kept[..head])?;
            let whole = head + 4 + length;
            if kept.len() >= whole {
                let request: Value = serde_json::from_slice(&kept[head + 4..whole]).ok()?;
                kept.drain(..whole);
                return Some(request["prompt"].as_str().unwrap_or_default().to_owned());
            }
        }
        if connection.read_buf(kept).await.ok()? == 0 {
            return None;
        }
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    length.trim().parse().ok()
}

/// Sends the script's tokens at their times. Gives when each was written.
async fn answer(connection: &mut TcpStream, script: Script) -> Option<Vec<u64>> {
    let began = Instant::now();
    connection.write_all(HEAD).await.ok()?;
    let mut times = Vec::with_capacity(script.output_tokens as usize);
    for token in 0..script.output_tokens {
        sleep_until(began + Duration::from_nanos(script.ttft_ns + u64::from(token) * script.itl_ns)).await;
        let piece = chunk("data: {\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" token\"}]}\n\n");
        times.push(shared_clock_ns());
        connection.write_all(piece.as_bytes()).await.ok()?;
    }
    let tokens = script.output_tokens;
    let last = format!(
        "data: {{\"object\":\"text_completion\",\"choices\":[{{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}}]}}\n\n\
         data: {{\"object\":\"text_completion\",\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens}}}}}\n\ndata: [DONE]\n\n"
    );
    connection.write_all((chunk(&last) + "0\r\n\r\n").as_bytes()).await.ok()?;
    Some(times)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
