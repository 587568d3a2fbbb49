//! Controls of the memory phase: engines whose leak, or whose innocence, is known. Each is a model spec, `control:heap`, or on
//! top of a real model `control:heap:synthetic:gpt2`; what they do happens once a run. The tests run all of them, and
//! `cargo run --example leaky_engine` lists them.

#[path = "../support/fake.rs"]
mod fake;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use infergate::engine::{Engine, EngineFactory, EngineInfo, LoadRequest, TokenId};
use infergate_candle::Candle;
use infergate_core::worker::WORKER_ARGUMENT;

use fake::{FakeEngine, VirtualClock};

#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

const KIB: usize = 1024;
/// Starts of prompts of this length before the first run that counts: prepared twice, looked at once, warmed up five times.
const BEFORE: usize = 8;

/// Name, what it is, and what a run does.
type Control = (&'static str, &'static str, fn(&mut Kept, usize) -> Result<()>);

const CONTROLS: &[Control] = &[
    ("steady", "keeps nothing", |_, _| Ok(())),
    ("copy", "keeps nothing, beside 64 MiB of mapped memory from its load on", |_, _| Ok(())),
    ("heap", "leaks 4 KiB a run", |_, _| leak(4 * KIB)),
    ("byte", "leaks one byte a run", |_, _| leak(1)),
    ("mapped", "leaks 64 KiB of mapped memory a run, which no allocator counts", |_, _| map(64 * KIB)),
    ("mapped-16", "leaks 16 KiB of mapped memory a run", |_, _| map(16 * KIB)),
    ("files", "opens a file in each run and never closes it", |_, _| open_file()),
    ("cache", "keeps 3,000 bytes a run until it is full at run 76", |kept, run| {
        fill(kept, run);
        Ok(())
    }),
    ("cache-and-leak", "the cache that is full at run 76, and leaks 100 bytes a run", |kept, run| {
        fill(kept, run);
        leak(100)
    }),
];

/// What an engine holds on to between runs.
type Kept = Vec<Box<[u8]>>;

/// Pages that nobody wrote to are not resident.
fn filled(bytes: usize) -> Box<[u8]> {
    vec![1; bytes].into_boxed_slice()
}

fn fill(cache: &mut Kept, run: usize) {
    if run < 76 {
        cache.push(filled(3000));
    }
}

fn leak(bytes: usize) -> Result<()> {
    std::mem::forget(filled(bytes));
    Ok(())
}

#[cfg(unix)]
fn map(bytes: usize) -> Result<()> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private map that nothing else knows, written to within its length.
    unsafe {
        let pages = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        ensure!(pages != libc::MAP_FAILED, "the system gives no more maps");
        pages.cast::<u8>().write_bytes(1, bytes);
    }
    Ok(())
}

#[cfg(not(unix))]
fn map(_bytes: usize) -> Result<()> {
    anyhow::bail!("there are no anonymous maps on this system")
}

#[cfg(unix)]
fn open_file() -> Result<()> {
    use std::os::fd::IntoRawFd as _;
    // One that nobody will ever close.
    let _ = std::fs::File::open("/dev/null")?.into_raw_fd();
    Ok(())
}

#[cfg(not(unix))]
fn open_file() -> Result<()> {
    anyhow::bail!("there are no file descriptors on this system")
}

struct Leaky {
    engine: Box<dyn Engine + Send>,
    control: &'static Control,
    kept: Kept,
    starts: usize,
}

impl Engine for Leaky {
    fn info(&self) -> EngineInfo {
        EngineInfo { name: "control".into(), model: self.control.0.into(), ..self.engine.info() }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        // Shorter prompts are counted cases, not runs.
        if prompt.len() == 128 {
            self.starts += 1;
            if self.starts > BEFORE {
                (self.control.2)(&mut self.kept, self.starts - BEFORE - 1)?;
            }
        }
        self.engine.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.engine.next()
    }
}

/// `control:NAME` or `control:NAME:MODEL`.
fn parse(request: &LoadRequest) -> (&str, LoadRequest) {
    let spec = request.model.strip_prefix("control:").unwrap_or_default();
    let (name, model) = spec.split_once(':').unwrap_or((spec, ""));
    (name, LoadRequest { model: model.to_owned(), ..request.clone() })
}

struct Controls;

impl EngineFactory for Controls {
    fn load(&self, request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
        let (name, model) = parse(request);
        let control = CONTROLS.iter().find(|control| control.0 == name);
        let control = control.with_context(|| format!("there is no {}; run this program for a list", request.model))?;
        if name == "copy" {
            map(64 * KIB * KIB)?;
        }
        let engine: Box<dyn Engine + Send> = match model.model.as_str() {
            "" => Box::new(FakeEngine::new(Default::default(), VirtualClock::default())),
            _ => Candle.load(&model)?,
        };
        Ok(Box::new(Leaky { engine, control, kept: Kept::new(), starts: 0 }))
    }

    fn environment(&self, request: &LoadRequest) -> Vec<(String, String)> {
        let (_, model) = parse(request);
        if model.model.is_empty() { Vec::new() } else { Candle.environment(&model) }
    }
}

fn main() -> ExitCode {
    // As `cargo bench` starts a bench target, or as the gate starts a worker.
    if !std::env::args().any(|argument| argument == WORKER_ARGUMENT || argument == "--bench") {
        for (name, what, _) in CONTROLS {
            println!("control:{name:14}{what}");
        }
        return ExitCode::SUCCESS;
    }
    infergate::bench::memory_main(&Controls)
}
