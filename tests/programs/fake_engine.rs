//! `FakeEngine` as a measured worker on virtual time: what the tests of suite and gate run instead of a model.
//!
//! What it does is a list of words, from the model spec (`fake:slow`) and from its own file name (`fake+slow`), so that base
//! and head of a paired gate can differ: `slow` (twice), `slower` (5 %), `faster` (5 %), `stalls-2x6` (2 % of its steps take six
//! times as long), `stalls-10x3` and `stalls-25x2` likewise, `other-output`, `other-model`,
//! `speaks` (has text for its tokens), `small-context`, `unrepeatable`, `fails`, `dies` (at load), `dies-at-end` (when it is dropped), `exits-late` (after 5,000 steps), `dies-later` and `hangs` (from
//! the second process on), `wrong-tails` (other tokens behind prompts whose length 8 does not divide), `whole-blocks` (refuses those), `forks` (serves requests together), `wrong-forks` (and says something else then), `failing-forks` (and fails then), `dying-forks` (and dies then), `tiring-forks` (and dies at the third), `noisy` (each process another speed), `waits` (in the third process, for a file), `prints` (to stdout, as an
//! engine may), `new-protocol`, `keeps-prompt` (and answers the same one at once). It speaks the worker protocol and nothing else.

#[path = "../support/fake.rs"]
mod fake;

use std::fs::OpenOptions;
use std::io::{self, BufRead, Seek, Write};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use infergate::engine::{Engine, EngineInfo, LoadRequest, Step, TokenId};
use infergate::worker;

use fake::{FakeEngine, FakeScript, VirtualClock};

/// So many steps are made up; then they come again.
const STEPS: u64 = 4096;

/// `stalls-2x6`: what is added to each step, drawn anew in each process. `None` for another word.
fn stalls_ns(word: &str, step_ns: u64, earlier: u64) -> Option<Vec<u64>> {
    let (percent, times) = word.strip_prefix("stalls-")?.split_once('x')?;
    let (percent, times): (u64, u64) = (percent.parse().ok()?, times.parse().ok()?);
    // splitmix64: the same numbers in each run of a test.
    let mixed = |at: u64| {
        let z = (earlier * STEPS + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let stalls = |at| if mixed(at) % 100 < percent { step_ns * times.saturating_sub(1) } else { 0 };
    Some((0..STEPS).map(stalls).collect())
}

/// The fake with faults that end or stop its process.
struct Faulty {
    engine: FakeEngine,
    clock: VirtualClock,
    words: Vec<String>,
    /// The prompt it has read last.
    prompt: Vec<TokenId>,
    /// How many processes of this program ran before: a file beside it says so.
    earlier: u64,
    steps: usize,
}

impl Faulty {
    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }
}

/// Forks that this process was asked for.
static FORKS: AtomicUsize = AtomicUsize::new(0);

impl Drop for Faulty {
    fn drop(&mut self) {
        if self.is("dies-at-end") {
            process::exit(9);
        }
    }
}

impl Engine for Faulty {
    fn info(&self) -> EngineInfo {
        let mut info = self.engine.info();
        if self.is("other-model") {
            info.model = "other".into();
        }
        info
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        if self.is("prints") {
            print("reading a prompt");
        }
        let is_whole = prompt.len() % 8 == 0;
        ensure!(
            is_whole || !self.is("whole-blocks"),
            "the prompt has {} tokens, which are no whole blocks",
            prompt.len()
        );
        let is_known = self.prompt == prompt;
        self.prompt = prompt.to_vec();
        if is_known && self.is("keeps-prompt") && self.engine.rewind()? {
            self.clock.advance_ns(1_000_000);
            return self.engine.last_step().map(|step| step.token).context("it was started");
        }
        if is_whole || !self.is("wrong-tails") {
            return self.engine.start(prompt);
        }
        let mut wrong = prompt.to_vec();
        wrong[0] += 1;
        self.engine.start(&wrong)
    }

    fn next(&mut self) -> Result<TokenId> {
        if self.earlier > 0 && self.is("dies-later") {
            process::exit(9);
        }
        if self.earlier > 0 && self.is("hangs") {
            eprintln!("hangs");
            loop {
                thread::park();
            }
        }
        if self.earlier > 1 && self.is("waits") && !beside("go")?.exists() {
            eprintln!("waits");
            while !beside("go")?.exists() {
                thread::yield_now();
            }
        }
        self.steps += 1;
        if self.steps > 5_000 && self.is("exits-late") {
            process::exit(9);
        }
        self.engine.next()
    }

    fn rewind(&mut self) -> Result<bool> {
        self.engine.rewind()
    }

    fn last_step(&self) -> Option<Step> {
        self.engine.last_step()
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        Ok(self.is("speaks").then(|| tokens.iter().map(|token| format!("<{token}>")).collect()))
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        self.engine.logits(out)
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        self.engine.force(token)
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        let is_third = || FORKS.fetch_add(1, Ordering::Relaxed) == 2;
        if self.is("dying-forks") || self.is("tiring-forks") && is_third() {
            process::exit(9);
        }
        if self.is("forks") {
            return self.engine.fork();
        }
        let script = if self.is("wrong-forks") || self.is("tiring-forks") {
            FakeScript { output_salt: 7, ..FakeScript::default() }
        } else if self.is("failing-forks") {
            FakeScript { fails_at_step: Some(3), ..FakeScript::default() }
        } else {
            bail!("this fake serves one request at a time");
        };
        Ok(Box::new(FakeEngine::new(script, VirtualClock::default())))
    }
}

/// As an engine prints, and as a C library does, without Rust's buffer.
fn print(what: &str) {
    println!("{what}");
    let line = format!("{what}\n");
    // SAFETY: the pointer and the length are of one string, which outlives the call.
    unsafe {
        libc::write(libc::STDOUT_FILENO, line.as_ptr().cast(), line.len() as libc::size_t as _);
    }
}

/// This program's file with another ending.
fn beside(ending: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_extension(ending))
}

/// How many processes of this program counted themselves before, this one from now on among them.
fn count_me() -> io::Result<u64> {
    let mut started = OpenOptions::new().append(true).create(true).open(beside("started")?)?;
    started.write_all(b".")?;
    // Where its own byte went: both sides of a block start at once, and may find the file as long as each other.
    Ok(started.stream_position()? - 1)
}

/// Words of the model spec and of this file's name.
fn words(model: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    model.split(':').skip(1).chain(name.split('+').skip(1)).map(str::to_owned).collect()
}

fn script(words: &[String], earlier: u64) -> Result<FakeScript> {
    let mut script = FakeScript { jitter_ns: vec![0, 150_000, 40_000, 90_000, 10_000], ..FakeScript::default() };
    for word in words {
        match word.as_str() {
            "slow" => script.step_ns *= 2,
            "slower" => script.step_ns += script.step_ns / 20,
            "faster" => script.step_ns -= script.step_ns / 20,
            "other-output" => script.output_salt = 1,
            "unrepeatable" => script.unrepeatable = true,
            "small-context" => script.context_tokens = 4,
            "fails" => script.fails_at_step = Some(30),
            "dies" => process::exit(9),
            "prints" => print("loading"),
            "dies-at-end" | "exits-late" | "other-model" | "dies-later" | "hangs" | "noisy" | "waits" | "speaks"
            | "keeps-prompt" | "wrong-tails" | "whole-blocks" | "forks" | "wrong-forks" | "failing-forks"
            | "dying-forks" | "tiring-forks" => {}
            stalls if stalls.starts_with("stalls-") => {
                let stalls_ns =
                    stalls_ns(stalls, script.step_ns, earlier).context("stalls: percent and times, stalls-2x6")?;
                let usual = script.jitter_ns.iter().cycle();
                script.jitter_ns = stalls_ns.iter().zip(usual).map(|(stall, usual)| stall + usual).collect();
            }
            _ => bail!("unknown fake '{word}'; this program's first lines name those there are"),
        }
    }
    Ok(script)
}

fn main() -> ExitCode {
    infergate_core::process::end_with_parent();
    let said = words(&std::env::var("INFERGATE_MODEL").unwrap_or_default());
    if said.iter().any(|word| word == "new-protocol") {
        let _ = io::stdin().lock().read_line(&mut String::new());
        println!(r#"{{"ok":{{"protocol":99,"tool":"9.0.0","machine":{{}},"build":{{}}}}}}"#);
    }
    let _ = io::stdout().flush();
    let clock = VirtualClock::default();
    let engine_clock = clock.clone();
    let load = move |request: &LoadRequest| -> Result<Box<dyn Engine + Send>> {
        engine_clock.advance_ns(1_000_000_000);
        let words = words(&request.model);
        let is_counted = |word: &String| {
            word.starts_with("stalls-") || ["dies-later", "hangs", "noisy", "waits"].contains(&word.as_str())
        };
        let counts = words.iter().any(is_counted);
        let earlier = if counts { count_me()? } else { 0 };
        let mut script = script(&words, earlier)?;
        if words.iter().any(|word| word == "noisy") {
            // Half to one and a half times, by no pattern that blocks could follow.
            let luck = (earlier + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            script.step_ns = script.step_ns / 2 + script.step_ns * luck / 1024;
        }
        let engine = FakeEngine::new(script, engine_clock.clone());
        let clock = engine_clock.clone();
        Ok(Box::new(Faulty { engine, clock, words, prompt: Vec::new(), earlier, steps: 0 }))
    };
    match worker::serve_here(&load, &clock) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
