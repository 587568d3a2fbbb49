//! The worker's side: which bench is asked for, and when.
//!
//! A bench's closure borrows what stands around it, so it can only run while its function runs. The functions are therefore
//! called in passes. The first one lists the benches. Each further one goes on until the bench that is asked for comes up, and
//! there requests are answered for as long as they are about that bench.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::time::{Duration, Instant};

use ::criterion::measurement::{Measurement, WallTime};
use anyhow::{Context, Result, anyhow, bail, ensure};
use infergate_core::sha256::words;
use sha2::{Digest, Sha256};

use super::Bencher;
use super::bencher::Timed;
use crate::engine::{EngineInfo, LoadRequest};
use crate::measure::InvariantBroken;
use crate::memory::{allocations_of_iteration, count_iteration, heap};
use crate::profiler;
use crate::worker::standard_streams;
use crate::worker::{Capability, Hello, Ids, Loaded, Measured, PreparedReply, Profile, Request, Wire, hello};
use infergate_core::build_info;
use infergate_core::case::{BenchName, Case};
use infergate_core::printable::printable;
use infergate_core::process::this_program;
use infergate_core::receipt::limits::MAX_CASES;
use infergate_core::receipt::{AllocationSite, CountedCase, Counter, Throughput, ThroughputUnit, output_sha256};

/// What a worker of benches can do.
const CAPABILITIES: [Capability; 5] =
    [Capability::Prepare, Capability::Sample, Capability::RequestId, Capability::Iterations, Capability::Profile];

/// What one can do beside that which counts its heap.
const COUNTING: [Capability; 2] = [Capability::Count, Capability::Sites];

thread_local! {
    /// Lent to the functions of the benches while they run. They run on this thread, which also answers.
    static DIRECTOR: RefCell<Option<Director>> = const { RefCell::new(None) };
}

/// A bench's closure.
type Closure<'a, M> = dyn FnMut(&mut Bencher<'_, M>) + 'a;

/// Answers requests until the input ends. `groups` runs all benches.
///
/// # Errors
/// When the pipes break; a request that fails is answered.
pub fn serve(groups: &dyn Fn()) -> Result<()> {
    let (input, output) = standard_streams::take().context("worker: stdin and stdout cannot be taken")?;
    let mut director = Director {
        wire: Wire::new(BufReader::new(input), BufWriter::new(output)),
        between: Between::default(),
        seen: BTreeMap::new(),
        reached: false,
        outputs: BTreeMap::new(),
    };
    director.wire.serve(&mut director.between)?;
    while let Some(request) = director.wire.left() {
        let bench = bench_of(request);
        let begun = Instant::now();
        director = pass(director, groups)?;
        match bench {
            None => director.between.listed(begun.elapsed()),
            Some(bench) if !director.reached => {
                let gone = "did not come up again; a group has to run the same benches each time";
                director.wire.refuse(anyhow!("the bench '{bench}' {gone}"))?;
            }
            Some(_) => {}
        }
        director.wire.serve(&mut director.between)?;
    }
    Ok(())
}

/// Calls all functions once.
fn pass(mut director: Director, groups: &dyn Fn()) -> Result<Director> {
    director.seen.clear();
    director.reached = false;
    DIRECTOR.set(Some(director));
    groups();
    DIRECTOR.take().context("worker: the benches ended on another thread than they began")
}

/// A bench came up.
pub fn visit<M: Measurement>(
    id: &str,
    throughput: Option<&::criterion::Throughput>,
    measurement: &M,
    bench: &mut Closure<'_, M>,
) {
    let Some(mut director) = DIRECTOR.take() else { return };
    if let Err(error) = director.visit(id, throughput, measurement, bench) {
        eprintln!("error: {}", printable(&format!("{error:#}")));
        std::process::exit(2);
    }
    DIRECTOR.set(Some(director));
}

struct Director {
    wire: Wire<BufReader<File>, BufWriter<File>>,
    between: Between,
    /// How often each id came up in this pass.
    seen: BTreeMap<String, usize>,
    /// Whether the bench that this pass looks for came up.
    reached: bool,
    /// What each prepared bench returned, as words of its SHA-256.
    outputs: BTreeMap<BenchName, Vec<u32>>,
}

impl Director {
    fn visit<M: Measurement>(
        &mut self,
        id: &str,
        throughput: Option<&::criterion::Throughput>,
        measurement: &M,
        bench: &mut Closure<'_, M>,
    ) -> Result<()> {
        let name = self.name(id);
        if self.wire.left().is_some_and(|request| bench_of(request).is_none()) {
            self.between.list(name);
            return Ok(());
        }
        let Ok(name) = name else { return Ok(()) };
        while let Some(request) = self.wire.left() {
            if bench_of(request) != Some(Case::Bench(name)) {
                return Ok(());
            }
            self.reached = true;
            let mut at_bench = AtBench { name, throughput, measurement, bench, outputs: &mut self.outputs };
            self.wire.serve(&mut at_bench)?;
            self.wire.serve(&mut self.between)?;
        }
        // Nobody asks any more: what stands behind this bench need not be run.
        std::process::exit(0);
    }

    /// The id, numbered where it came up in this pass before.
    fn name(&mut self, id: &str) -> Result<BenchName> {
        let times = self.seen.entry(id.to_owned()).or_default();
        *times += 1;
        if *times == 1 { BenchName::of(id) } else { BenchName::of(&format!("{id} #{times}")) }
    }
}

/// The bench that a request is about.
fn bench_of(request: &Request) -> Option<Case> {
    match request {
        Request::Prepare { case, .. }
        | Request::Sample { case, .. }
        | Request::Profile { case, .. }
        | Request::Count { case, .. }
        | Request::Sites { case } => Some(*case),
        _ => None,
    }
}

/// What is answered while no bench is at hand. The names of all benches and what is asked of one of them wait for a pass.
#[derive(Default)]
struct Between {
    /// Known once they were listed.
    benches: Option<Vec<Case>>,
    /// Benches that came up in the pass that lists them.
    found: Vec<Case>,
    /// Why the benches cannot be listed.
    trouble: Option<anyhow::Error>,
    /// What listing them took, for the request that it was done for.
    took: Duration,
}

impl Between {
    fn list(&mut self, name: Result<BenchName>) {
        match name {
            Ok(name) => self.found.push(Case::Bench(name)),
            Err(error) => self.trouble = self.trouble.take().or(Some(error)),
        }
    }

    fn listed(&mut self, took: Duration) {
        self.benches = Some(std::mem::take(&mut self.found));
        self.took = took;
    }
}

impl Measured for Between {
    fn hello(&self) -> Result<Hello> {
        let counting = COUNTING.into_iter().filter(|_| heap().is_some());
        let can = CAPABILITIES.into_iter().chain(counting);
        let can: Vec<Capability> = can.filter(|can| Capability::of_engines().contains(can)).collect();
        Ok(hello(&can, build_info::build(), false))
    }

    fn leaves(&self, request: &Request) -> bool {
        match (request, &self.benches) {
            (Request::Load { .. }, None) => true,
            (_, Some(benches)) => bench_of(request).is_some_and(|case| benches.contains(&case)),
            _ => false,
        }
    }

    /// The model of benches is the bench target's name, so that no other target is compared with it.
    fn load(&mut self, _request: &LoadRequest, _prompt_text: Option<String>) -> Result<Loaded> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let benches = self.benches.clone().unwrap_or_default();
        ensure!(!benches.is_empty(), "there are no benches; add one to a criterion_group!");
        ensure!(
            benches.len() <= MAX_CASES,
            "{} benches are more than {MAX_CASES}; gate fewer at a time",
            benches.len()
        );
        let program = this_program()?;
        let stem = program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        // Cargo puts a hash behind it.
        let target = stem.rsplit_once('-').map_or(stem.as_str(), |(target, _)| target);
        let engine = EngineInfo {
            name: EngineInfo::CRITERION.into(),
            model: target.to_owned(),
            dtype: "none".into(),
            ..EngineInfo::default()
        };
        let load_ns = u64::try_from(std::mem::take(&mut self.took).as_nanos()).unwrap_or(u64::MAX);
        Ok(Loaded { engine, load_ns, devices: Vec::new(), benches })
    }

    fn prepare(&mut self, case: Case, _: Ids, _: Ids) -> Result<PreparedReply> {
        self.no_bench(case)
    }

    fn sample(&mut self, case: Case, _: usize, _: usize, _: f64) -> Result<Vec<Vec<u64>>> {
        self.no_bench(case)
    }

    fn profile(&mut self, case: Case, _: usize, _: usize, _: &Path) -> Result<Profile> {
        self.no_bench(case)
    }

    fn count(&mut self, case: Case, _: usize) -> Result<CountedCase> {
        self.no_bench(case)
    }

    fn sites(&mut self, case: Case) -> Result<Vec<AllocationSite>> {
        self.no_bench(case)
    }
}

impl Between {
    fn no_bench<T>(&self, case: Case) -> Result<T> {
        ensure!(self.benches.is_some(), "worker: nothing is loaded; send load first");
        bail!("worker: there is no bench called '{case}'")
    }
}

/// A bench that is at hand. Requests about anything else are left.
struct AtBench<'a, 'b, M: Measurement> {
    name: BenchName,
    throughput: Option<&'a ::criterion::Throughput>,
    measurement: &'a M,
    bench: &'a mut Closure<'b, M>,
    outputs: &'a mut BTreeMap<BenchName, Vec<u32>>,
}

impl<M: Measurement> AtBench<'_, '_, M> {
    fn ensure_prepared(&self) -> Result<()> {
        self.ensure_wall_time()?;
        ensure!(self.outputs.contains_key(&self.name), "worker: {} is not prepared; send prepare first", self.name);
        Ok(())
    }

    /// What `look` sees of the second iteration of the bench's loop.
    fn second<T>(&mut self, look: &mut Look<'_, T>) -> Result<T> {
        let mut second = Second { look, seen: None };
        (self.bench)(&mut Bencher::new(&mut second, self.measurement));
        second.seen.with_context(|| no_loop(self.name))?
    }

    fn ensure_wall_time(&self) -> Result<()> {
        ensure!(
            type_name::<M>() == type_name::<WallTime>(),
            "{}: measures something else than wall time, which the gate cannot judge; leave it out with --cases",
            self.name
        );
        Ok(())
    }
}

impl<M: Measurement> Measured for AtBench<'_, '_, M> {
    fn leaves(&self, request: &Request) -> bool {
        bench_of(request) != Some(Case::Bench(self.name))
    }

    /// One iteration to warm up and to hear the output, or two where nothing is known of it.
    fn prepare(&mut self, _: Case, known: Ids, _: Ids) -> Result<PreparedReply> {
        self.ensure_wall_time()?;
        let ids = run(self.name, 1, self.measurement, self.bench)?.1;
        let before = match known {
            Some(known) => known,
            None => run(self.name, 1, self.measurement, self.bench)?.1,
        };
        if ids != before {
            return Err(InvariantBroken(format!(
                "{}: its output is not the same in every run; a time without a repeatable output means nothing, make the bench deterministic",
                self.name
            ))
            .into());
        }
        self.outputs.insert(self.name, ids.clone());
        Ok(PreparedReply { throughput: self.throughput.and_then(of_criterion), ..PreparedReply::of_ids(ids) })
    }

    fn sample(&mut self, _case: Case, count: usize, iterations: usize, slowdown: f64) -> Result<Vec<Vec<u64>>> {
        self.ensure_prepared()?;
        let name = self.name;
        let sample = |_| Ok(vec![slowed(run(name, iterations, self.measurement, self.bench)?.0, slowdown)]);
        (0..count).map(sample).collect()
    }

    fn profile(&mut self, case: Case, count: usize, iterations: usize, file: &Path) -> Result<Profile> {
        profiler::profile(file, &mut || self.sample(case, count, iterations, 0.0))
    }

    fn count(&mut self, id: Case, repeats: usize) -> Result<CountedCase> {
        self.ensure_prepared()?;
        let mut counters: BTreeMap<String, Counter> = BTreeMap::new();
        for _ in 0..repeats.max(1) {
            for (name, value) in self.second(&mut |iteration| count_iteration(iteration))? {
                let counter = counters.entry(name.to_owned()).or_insert(Counter { min: value, max: value });
                *counter = Counter { min: counter.min.min(value), max: counter.max.max(value) };
            }
        }
        let output_sha256 = self.outputs.get(&self.name).map(|ids| output_sha256(ids)).unwrap_or_default();
        Ok(CountedCase { id, output_sha256, counters })
    }

    fn sites(&mut self, _: Case) -> Result<Vec<AllocationSite>> {
        self.ensure_prepared()?;
        self.second(&mut |iteration| allocations_of_iteration(iteration))
    }
}

/// Looks at what an iteration does, which it is given.
type Look<'a, T> = dyn FnMut(&mut dyn FnMut()) -> Result<T> + 'a;

/// A look at the second iteration of a loop: the first one fills what later ones find full.
struct Second<'a, T> {
    look: &'a mut Look<'a, T>,
    seen: Option<Result<T>>,
}

impl<M: Measurement, T> Timed<M> for Second<'_, T> {
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value) {
        routine(1);
        self.seen = Some((self.look)(&mut || drop(routine(1))));
    }
}

/// A worker that counts iterations down once, and keeps what they took.
struct Once<M: Measurement> {
    iterations: u64,
    took: Option<M::Value>,
}

impl<M: Measurement> Timed<M> for Once<M> {
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value) {
        self.took = Some(routine(self.iterations));
    }
}

/// So many iterations: what they took, nanoseconds, and the words of the output's SHA-256.
fn run<M: Measurement>(
    name: BenchName,
    iterations: usize,
    measurement: &M,
    bench: &mut Closure<'_, M>,
) -> Result<(u64, Vec<u32>)> {
    let mut once = Once { iterations: iterations as u64, took: None };
    let mut bencher = Bencher::new(&mut once, measurement);
    bench(&mut bencher);
    let output = bencher.take_output();
    let took = once.took.with_context(|| no_loop(name))?;
    let ns = measurement.to_f64(&took).round();
    ensure!((0.0..1e18).contains(&ns), "{name}: {ns} ns is no time; mend its iter_custom");
    Ok((ns as u64, output.map(|bytes| words(&Sha256::digest(bytes))).unwrap_or_default()))
}

fn no_loop(name: BenchName) -> String {
    format!("{name}: its closure calls no loop; call iter or one of its kind")
}

/// A time made longer by a fraction of itself, spent spinning.
fn slowed(ns: u64, slowdown: f64) -> u64 {
    if slowdown == 0.0 {
        return ns;
    }
    let (start, longer) = (Instant::now(), Duration::from_nanos((ns as f64 * slowdown) as u64));
    while start.elapsed() < longer {
        std::hint::spin_loop();
    }
    ns + u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX / 2)
}

fn of_criterion(throughput: &::criterion::Throughput) -> Option<Throughput> {
    use ::criterion::Throughput as Theirs;
    let (unit, per_iteration) = match throughput {
        Theirs::Bytes(bytes) | Theirs::BytesDecimal(bytes) => (ThroughputUnit::Bytes, *bytes),
        Theirs::Elements(elements) => (ThroughputUnit::Elements, *elements),
        // Criterion before 0.8 has no others.
        #[allow(unreachable_patterns)]
        _ => return None,
    };
    Some(Throughput { unit, per_iteration })
}
