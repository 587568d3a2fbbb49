//! How much the token gaps of running streams grow while prompts of 100,000 characters arrive beside them.
//!
//! `cargo run --release -p infergate-serve --example long_prompt [-- HOST:PORT]`
//!
//! Without an address it starts a server of its own: tokens every 20 ms, and a tokenizer that takes a microsecond a byte. Windows
//! with and without long prompts take turns, so that what changes on the machine meanwhile changes both.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use infergate::engine::{Engine, EngineInfo, Scheduler, TokenId};
use infergate_serve::timed::{TimedEngine, TimedScript};
use infergate_serve::{Server, Settings};

const WINDOWS: usize = 5;
const STREAMS: usize = 4;
const TOKENS: usize = 100;
const PROMPT_CHARACTERS: usize = 100_000;
/// From the end of one long prompt to the next.
const PAUSE: Duration = Duration::from_millis(100);
const SPIN_PER_BYTE: Duration = Duration::from_micros(1);

fn main() -> Result<()> {
    let (address, _server) = match std::env::args().nth(1) {
        Some(address) => (address.parse().context("the address is HOST:PORT")?, None),
        None => {
            let script = TimedScript { context_tokens: 1 << 17, ..TimedScript::default() };
            let server = Server::start(Box::new(Spoken(TimedEngine::new(script))), Settings::default())?;
            (server.address(), Some(server))
        }
    };
    window(address, false)?;
    let (mut alone, mut beside, mut prompts) = (Vec::new(), Vec::new(), 0);
    for _ in 0..WINDOWS {
        alone.extend(window(address, false)?.0);
        let (gaps, sent) = window(address, true)?;
        beside.extend(gaps);
        prompts += sent;
    }
    ensure!(prompts > 0, "no long prompt was answered");
    println!("{prompts} prompts of {PROMPT_CHARACTERS} characters beside {STREAMS} streams, {} gaps", beside.len());
    println!("gap        alone ms  beside ms  ratio");
    for (name, of) in [
        ("mean", mean as fn(&[f64]) -> f64),
        ("median", |gaps| at(gaps, 0.5)),
        ("99 %", |gaps| at(gaps, 0.99)),
        ("longest", |gaps| at(gaps, 1.0)),
    ] {
        let (before, after) = (of(&alone), of(&beside));
        println!("{name:8} {before:10.3} {after:10.3} {:6.3}", after / before);
    }
    Ok(())
}

/// The gaps of all streams, milliseconds, and how many long prompts were answered meanwhile.
fn window(address: SocketAddr, with_prompts: bool) -> Result<(Vec<f64>, usize)> {
    let (over, sent) = (AtomicBool::new(!with_prompts), AtomicUsize::new(0));
    let gaps = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // A model with a small context refuses it after it was read, which is as good here.
                if long_prompt(address).is_ok() {
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(PAUSE);
            }
        });
        let streams: Vec<_> = (0..STREAMS).map(|user| scope.spawn(move || stream(address, user))).collect();
        let gaps: Result<Vec<Vec<f64>>> = streams
            .into_iter()
            .map(|stream| stream.join().map_err(|_| anyhow::anyhow!("a stream's thread panicked"))?)
            .collect();
        over.store(true, Ordering::Relaxed);
        gaps
    })?;
    Ok((gaps.concat(), sent.into_inner()))
}

fn post(address: SocketAddr, body: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).context("no server listens there")?;
    stream.set_nodelay(true)?;
    let bytes = body.len();
    write!(
        stream,
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n{body}"
    )?;
    Ok(stream)
}

fn long_prompt(address: SocketAddr) -> Result<()> {
    let words = "the first of many words ";
    let prompt: String = words.chars().cycle().take(PROMPT_CHARACTERS).collect();
    let mut answer = String::new();
    post(address, &format!("{{\"prompt\":\"{prompt}\",\"max_tokens\":1}}"))?.read_to_string(&mut answer)?;
    ensure!(!answer.contains("HTTP/1.1 429"), "the server is full");
    Ok(())
}

/// The gaps between the events of one stream, milliseconds.
fn stream(address: SocketAddr, user: usize) -> Result<Vec<f64>> {
    let body = format!("{{\"prompt\":[{},1,2,3],\"max_tokens\":{TOKENS},\"stream\":true}}", user + 4);
    let mut last = None;
    let mut gaps = Vec::with_capacity(TOKENS);
    for line in BufReader::new(post(address, &body)?).lines() {
        if line?.starts_with("data: {") {
            let now = Instant::now();
            gaps.extend(last.map(|last: Instant| now.duration_since(last).as_secs_f64() * 1e3));
            last = Some(now);
        }
    }
    ensure!(gaps.len() + 1 >= TOKENS / 2, "a stream ended after {} tokens", gaps.len());
    Ok(gaps)
}

fn mean(gaps: &[f64]) -> f64 {
    gaps.iter().sum::<f64>() / gaps.len() as f64
}

fn at(gaps: &[f64], quantile: f64) -> f64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * quantile).round() as usize]
}

/// With a tokenizer that works as long as a real one: four bytes a token.
struct Spoken(TimedEngine);

impl Engine for Spoken {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.0.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.0.next()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        let begun = Instant::now();
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        while begun.elapsed() < SPIN_PER_BYTE * bytes {
            std::hint::spin_loop();
        }
        Ok(Some(text.as_bytes().chunks(4).map(|four| four.iter().map(|byte| TokenId::from(*byte)).sum()).collect()))
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        Ok(Some(tokens.iter().map(|id| format!("t{id} ")).collect()))
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self(TimedEngine::new(TimedScript {
            context_tokens: self.0.info().context_tokens,
            ..TimedScript::default()
        }))))
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        self.0.scheduler(requests)
    }
}
