//! The server of the self-audit: it sends tokens at scripted times and writes down when it sent each. On loopback, in a thread of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::stamped::RunClock;

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

/// When each token of a request was written, just before; by the request's number.
pub type Log = BTreeMap<u64, Vec<u64>>;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server that runs until this is dropped.
pub struct Server {
    /// Its port on loopback.
    pub port: u16,
    ended: oneshot::Sender<()>,
    thread: JoinHandle<Result<Log>>,
}

impl Server {
    /// Serves from now on, and writes times by `clock`.
    pub fn start(script: Script, clock: RunClock) -> Result<Self> {
        let listener = net::TcpListener::bind(("127.0.0.1", 0)).context("no port on 127.0.0.1 for the self-audit")?;
        let port = listener.local_addr()?.port();
        let (ended, end) = oneshot::channel();
        let thread = thread::spawn(move || serve_until(end, listener, script, clock));
        Ok(Self { port, ended, thread })
    }

    /// Ends it, and gives what it wrote down.
    pub fn finish(self) -> Result<Log> {
        drop(self.ended);
        self.thread.join().ok().context("the self-audit's server failed; its output is above")?
    }
}

fn serve_until(end: oneshot::Receiver<()>, listener: net::TcpListener, script: Script, clock: RunClock) -> Result<Log> {
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let log: Rc<RefCell<Log>> = Rc::default();
    let served = log.clone();
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((connection, _)) => drop(spawn_local(serve(connection, script, clock, served.clone()))),
                    // There are too many at this moment.
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        });
        let _ = end.await;
        anyhow::Ok(())
    })?;
    Ok(log.take())
}

async fn serve(mut connection: TcpStream, script: Script, clock: RunClock, log: Rc<RefCell<Log>>) {
    let _ = connection.set_nodelay(true);
    while let Some(request) = next_request(&mut connection).await {
        let Some(times) = answer(&mut connection, script, clock).await else { return };
        log.borrow_mut().insert(request, times);
    }
}

/// Reads one request and gives its prompt, the request's number. The next one comes when this one was answered.
async fn next_request(connection: &mut TcpStream) -> Option<u64> {
    let mut kept: Vec<u8> = Vec::new();
    while connection.read_buf(&mut kept).await.ok()? > 0 {
        if let Some(head) = kept.windows(4).position(|end| end == b"\r\n\r\n")
            && let Ok(request) = serde_json::from_slice::<Value>(&kept[head + 4..])
        {
            return request["prompt"].as_str()?.parse().ok();
        }
    }
    None
}

/// Sends the script's tokens at their times. Gives when each was written.
async fn answer(connection: &mut TcpStream, script: Script, clock: RunClock) -> Option<Vec<u64>> {
    let began = Instant::now();
    connection.write_all(HEAD).await.ok()?;
    let mut times = Vec::with_capacity(script.output_tokens as usize);
    for token in 0..script.output_tokens {
        sleep_until(began + Duration::from_nanos(script.ttft_ns + u64::from(token) * script.itl_ns)).await;
        let piece = chunk("data: {\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" token\"}]}\n\n");
        times.push(clock.now_ns());
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
