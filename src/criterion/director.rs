//! The worker's side: which bench is asked for, and when.
//!
//! A bench's closure borrows what stands around it, so it can only run while its function runs. The functions are therefore
//! called in passes. The first one lists the benches. Each further one goes on until the bench that is asked for comes up, and
//! there requests are answered for as long as they are about that bench. Where set-up beside the benches panics in a further pass,
//! each pass gets a process that is new. So does each of a `main` that is not `criterion_main!`'s, and cannot be called: it begins at
//! the first `Criterion` and ends when `main` returns.

mod in_main;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufReader, BufWriter, Chain, Cursor, Read};
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ::criterion::measurement::Measurement;
use anyhow::{Context, Result, anyhow, bail, ensure};

use super::at_bench::{AtBench, Closure, bench_of};
use super::reexec;
use crate::engine::{EngineInfo, LoadRequest};
use crate::memory::heap;
use crate::worker::{Capability, Hello, Loaded, Measured, PACKAGE_FOLDER, Request, Wire, hello, profile};
use infergate_core::build_info;
use infergate_core::case::{BenchName, Case};
use infergate_core::printable::print_error;
use infergate_core::process::{standard_streams, this_program};

pub use in_main::{begin_in_main, end_in_main};

thread_local! {
    /// Lent to the functions of the benches while they run. They run on this thread, which also answers.
    static DIRECTOR: RefCell<Option<Director>> = const { RefCell::new(None) };
}

/// Answers requests until the input ends. `groups` runs all benches.
///
/// # Errors
/// When the pipes break; a request that fails is answered.
pub fn serve(groups: &dyn Fn()) -> Result<()> {
    let mut director = Director::new()?;
    director.wire.serve(&mut director.between)?;
    while let Some(request) = director.wire.left() {
        let bench = bench_of(request);
        let begun = Instant::now();
        director = pass(director, groups)?;
        director.passed(bench, begun)?;
    }
    Ok(())
}

/// Its benches cannot be profiled.
pub static WITHOUT_PROFILE: AtomicBool = AtomicBool::new(false);

/// A worker began its work, in `criterion_main!` or where its `main` made the first `Criterion`.
static BEGUN: AtomicBool = AtomicBool::new(false);

fn fail(error: &anyhow::Error) -> ! {
    print_error(error);
    process::exit(2)
}

/// Calls all functions once.
fn pass(mut director: Director, groups: &dyn Fn()) -> Result<Director> {
    let passes = director.passes;
    if passes > 0 && director.only_once {
        return Err(director.reexec());
    }
    director.passes += 1;
    director.seen.clear();
    director.reached = false;
    DIRECTOR.set(Some(director));
    if passes == 1 {
        keep_quiet_between_benches();
    }
    if let Err(panicked) = panic::catch_unwind(AssertUnwindSafe(groups)) {
        if panicked.is::<Over>() {
            process::exit(0);
        }
        // A bench's own panic ends this process, and so does that of set-up which never worked.
        match DIRECTOR.take().filter(|_| passes > 0) {
            Some(director) => return Err(director.reexec()),
            None => panic::resume_unwind(panicked),
        }
    }
    DIRECTOR.take().context("worker: the benches ended on another thread than they began")
}

/// From now on what stands beside the benches panics without a word: if it does so in a new process, too, the word is said there.
fn keep_quiet_between_benches() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let is_between = DIRECTOR.try_with(|director| director.try_borrow().is_ok_and(|director| director.is_some()));
        if !is_between.unwrap_or(false) {
            say(panicked);
        }
    }));
}

/// A bench came up.
pub fn visit<M: Measurement>(
    id: &str,
    throughput: Option<&::criterion::Throughput>,
    measurement: &M,
    bench: &mut Closure<'_, M>,
) {
    let Some(mut director) = DIRECTOR.take().or_else(in_main::summed_up) else {
        fail(&anyhow!(
            "the bench '{id}' is not run by criterion_main!, or on another thread; let main be that macro's"
        ));
    };
    if let Err(error) = director.visit(id, throughput, measurement, bench) {
        fail(&error);
    }
    // What stands behind this bench need not be run, but what its function made goes: a folder, a file, a process.
    if director.is_over() {
        if director.in_main.is_some() {
            // One that joins a thread with its benches takes this for a panic of theirs, and would say so.
            panic::set_hook(Box::new(|_| {}));
        }
        panic::resume_unwind(Box::new(Over));
    }
    DIRECTOR.set(Some(director));
}

/// What a bench's function is left by at the end.
struct Over;

/// Requests, behind the one that an earlier process left.
type Requests = BufReader<Chain<Cursor<String>, standard_streams::Requests>>;

struct Director {
    wire: Wire<Requests, BufWriter<standard_streams::Answers>>,
    between: Between,
    beginning: reexec::Beginning,
    /// Passes of this process so far.
    passes: usize,
    /// Set-up beside the benches failed in a second pass, before this process began.
    only_once: bool,
    /// Where the passes are those of a `main` of its own: when this one began.
    in_main: Option<Instant>,
    /// How often each id came up in this pass.
    seen: BTreeMap<String, usize>,
    /// Whether the bench that this pass looks for came up.
    reached: bool,
    /// What each prepared bench returned, as words of its SHA-256.
    outputs: BTreeMap<Case, Vec<u32>>,
    /// Benches that ran in this process.
    ran: BTreeSet<Case>,
}

impl Director {
    fn new() -> Result<Self> {
        BEGUN.store(true, Relaxed);
        let handed = reexec::handed()?;
        let (input, output) = standard_streams::take().context("worker: stdin and stdout cannot be taken")?;
        let only_once = handed.is_some();
        let (left, benches, outputs, output) = match handed {
            Some(((left, benches, outputs), output)) => (left, Some(benches), outputs, output),
            None => (String::new(), None, Vec::new(), output),
        };
        let beginning = reexec::Beginning::of(&input, &output)?;
        Ok(Self {
            wire: Wire::new(BufReader::new(Cursor::new(left).chain(input)), BufWriter::new(output)),
            between: Between { benches, ..Between::default() },
            beginning,
            passes: 0,
            only_once,
            in_main: None,
            seen: BTreeMap::new(),
            reached: false,
            outputs: outputs.into_iter().collect(),
            ran: BTreeSet::new(),
        })
    }

    /// All functions ran. `bench` is what they were called for; `None` lists the benches.
    fn passed(&mut self, bench: Option<Case>, begun: Instant) -> Result<()> {
        match bench {
            None => {
                self.between.benches = Some(std::mem::take(&mut self.between.found));
                self.between.took = begun.elapsed();
            }
            Some(bench) if !self.reached => {
                let gone = "did not come up again; a group has to run the same benches each time";
                self.wire.refuse(anyhow!("the bench '{bench}' {gone}"))?;
            }
            Some(_) => {}
        }
        self.wire.serve(&mut self.between)
    }

    /// A new process in place of this one, which goes on where this one is. What comes back is why there is none.
    fn reexec(self) -> anyhow::Error {
        let left = self.wire.left_line().unwrap_or_default();
        let outputs = self.outputs.into_iter().collect();
        self.beginning.again(&(left, self.between.benches.unwrap_or_default(), outputs))
    }

    fn visit<M: Measurement>(
        &mut self,
        id: &str,
        throughput: Option<&::criterion::Throughput>,
        measurement: &M,
        bench: &mut Closure<'_, M>,
    ) -> Result<()> {
        let case = self.case(id);
        if self.wire.left().is_some_and(|request| bench_of(request).is_none()) {
            self.between.found.push(case);
            return Ok(());
        }
        while let Some(request) = self.wire.left() {
            if bench_of(request) != Some(case) {
                return Ok(());
            }
            self.reached = true;
            let (outputs, ran) = (&mut self.outputs, &mut self.ran);
            let mut at_bench = AtBench { case, throughput, measurement, bench, outputs, ran };
            self.wire.serve(&mut at_bench)?;
            self.wire.serve(&mut self.between)?;
        }
        Ok(())
    }

    /// Nobody asks any more.
    fn is_over(&self) -> bool {
        self.wire.left().is_none()
    }

    /// The id, numbered where it came up in this pass before.
    fn case(&mut self, id: &str) -> Case {
        // Each side has a folder of its own: an id of paths counts them from the package's.
        let folder = env::var(PACKAGE_FOLDER).unwrap_or_default();
        let id = &if folder.is_empty() { id.to_owned() } else { id.replace(&format!("{folder}/"), "") };
        let times = self.seen.entry(id.to_owned()).or_default();
        *times += 1;
        Case::Bench(if *times == 1 { BenchName::of(id) } else { BenchName::of(&format!("{id} #{times}")) })
    }
}

/// What is answered while no bench is at hand. The names of all benches and what is asked of one of them wait for a pass.
#[derive(Default)]
struct Between {
    /// Known once they were listed.
    benches: Option<Vec<Case>>,
    /// Benches that came up in the pass that lists them.
    found: Vec<Case>,
    /// What listing them took, for the request that it was done for.
    took: Duration,
}

impl Measured for Between {
    fn hello(&self) -> Result<Hello> {
        use Capability::{Count, Iterations, Prepare, Profile, RequestId, Sample, Sites, WarmUp};
        let mut can = vec![Prepare, Sample, RequestId, Iterations, WarmUp];
        if profile::IS_SUPPORTED && !WITHOUT_PROFILE.load(Relaxed) {
            can.push(Profile);
        }
        if heap().is_some() {
            can.extend([Count, Sites]);
        }
        Ok(hello(&can, build_info::build(), false))
    }

    fn leaves(&self, request: &Request) -> bool {
        match (request, &self.benches) {
            (Request::Load { .. }, None) => true,
            (_, Some(benches)) => bench_of(request).is_some_and(|case| benches.contains(&case)),
            _ => false,
        }
    }

    fn check(&self, request: &Request) -> Result<()> {
        let Some(case) = bench_of(request) else { return Ok(()) };
        ensure!(self.benches.is_some(), "worker: nothing is loaded; send load first");
        bail!("worker: there is no bench called '{case}'")
    }

    /// The model of benches is the bench target's name, so that no baseline of another target is compared with it.
    fn load(&mut self, _request: &LoadRequest, _prompt_text: Option<String>) -> Result<Loaded> {
        let benches = self.benches.clone().unwrap_or_default();
        ensure!(!benches.is_empty(), "there are no benches; add one to a criterion_group!");
        let program = this_program()?;
        let stem = program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        // Cargo puts 16 digits behind it.
        let target =
            stem.rsplit_once('-').filter(|(_, hash)| hash.len() == 16).map_or(stem.as_str(), |(target, _)| target);
        let engine = EngineInfo {
            name: EngineInfo::CRITERION.into(),
            model: target.to_owned(),
            dtype: "none".into(),
            ..EngineInfo::default()
        };
        let load_ns = std::mem::take(&mut self.took).as_nanos() as u64;
        Ok(Loaded { engine, load_ns, devices: Vec::new(), cost: None, benches })
    }
}
