//! Controls of the memory phase: engines whose leak, or whose innocence, is known. Each is a model spec, `control:heap`, or on
//! top of a real model `control:heap:synthetic:gpt2`; what they do happens once a run. The tests run all of them, and
//! `cargo run --example leaky_engine` lists them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use infergate::clock::VirtualClock;
use infergate::engine::{Engine, EngineFactory, EngineInfo, FakeEngine, LoadRequest, TokenId};
use infergate_candle::Candle;
use infergate_core::worker::WORKER_ARGUMENT;

#[global_allocator]
static ALLOCATOR: infergate::memory::CountingAllocator = infergate::memory::CountingAllocator;

const KIB: usize = 1024;
/// Starts of prompts of this length before the first run that counts: prepared twice, looked at once, warmed up five times.
const BEFORE: usize = 8;

thread_local! {
    static HISTORY: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Name, what it is, and what a run does.
type Control = (&'static str, &'static str, fn(&mut Kept, usize) -> Result<()>);

const CONTROLS: &[Control] = &[
    ("steady", "keeps nothing", |_, _| Ok(())),
    ("copy", "keeps nothing, beside 64 MiB of mapped memory from its load on", |_, _| Ok(())),
    ("heap", "leaks 4 KiB a run", |_, _| leak(4 * KIB)),
    ("byte", "leaks one byte a run", |_, _| leak(1)),
    ("mapped", "leaks 64 KiB of mapped memory a run, which no allocator counts", |_, _| map(64 * KIB)),
    ("mapped-8", "leaks 8 KiB of mapped memory a run", |_, _| map(8 * KIB)),
    ("mapped-16", "leaks 16 KiB of mapped memory a run", |_, _| map(16 * KIB)),
    ("files", "opens a file in each run and never closes it", |_, _| open_file()),
    ("thread-local", "keeps 1 KiB a run in a thread-local", |_, _| {
        HISTORY.with_borrow_mut(|history| history.push(filled(KIB)));
        Ok(())
    }),
    ("tensor", "forgets a tensor of 1 KiB a run", |_, _| {
        std::mem::forget(Tensor::zeros((16, 16), DType::F32, &Device::Cpu)?);
        Ok(())
    }),
    ("warm-up", "keeps 256 KiB a run for 20 runs, then nothing more", |kept, run| {
        kept.push_if(run < 20, 256 * KIB);
        Ok(())
    }),
    ("alternating", "holds 64 KiB and 1 MiB in turn", |kept, run| {
        kept.buffers.clear();
        kept.push_if(true, if run % 2 == 0 { 64 * KIB } else { KIB * KIB });
        Ok(())
    }),
    ("sawtooth", "keeps 128 KiB a run and lets go of all of it every 20 runs", |kept, run| {
        if run % 20 == 0 {
            kept.buffers.clear();
        }
        kept.push_if(true, 128 * KIB);
        Ok(())
    }),
    ("cache", "keeps 3,000 bytes a run until it is full at run 76", |kept, run| {
        kept.push_if(run < 76, 3000);
        Ok(())
    }),
    ("prompts", "keeps each prompt that it was not asked before", |kept, _| {
        kept.prompts.insert(kept.prompt.clone());
        Ok(())
    }),
    (
        "cache-at-random",
        "a cache of 5,000 entries of 64 bytes, of which 50 a run are asked for at random",
        |kept, run| {
            kept.ask_at_random(run);
            Ok(())
        },
    ),
    ("cache-and-leak", "the cache that is full at run 76, and leaks 100 bytes a run", |kept, run| {
        kept.push_if(run < 76, 3000);
        leak(100)
    }),
    ("rare", "leaks 1 KiB in each 30th run", |_, run| if run % 30 == 0 { leak(KIB) } else { Ok(()) }),
    ("late", "takes 8 MiB once, after 70 runs", |kept, run| {
        kept.push_if(run == 70, 8 * KIB * KIB);
        Ok(())
    }),
];

/// What an engine holds on to between runs.
#[derive(Default)]
struct Kept {
    buffers: Vec<Box<[u8]>>,
    entries: HashMap<usize, Box<[u8]>>,
    prompts: HashSet<Vec<TokenId>>,
    /// What is asked now.
    prompt: Vec<TokenId>,
}

impl Kept {
    fn push_if(&mut self, really: bool, bytes: usize) {
        if really {
            self.buffers.push(filled(bytes));
        }
    }

    fn ask_at_random(&mut self, run: usize) {
        let mut random = fastrand::Rng::with_seed(run as u64);
        for _ in 0..50 {
            self.entries.entry(random.usize(..5000)).or_insert_with(|| filled(64));
        }
    }
}

/// Pages that nobody wrote to are not resident.
fn filled(bytes: usize) -> Box<[u8]> {
    vec![1; bytes].into_boxed_slice()
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
            prompt.clone_into(&mut self.kept.prompt);
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
        Ok(Box::new(Leaky { engine, control, kept: Kept::default(), starts: 0 }))
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
