//! The worker's side: which bench is asked for, and when.
//!
//! A bench's closure borrows what stands around it, so it can only run while its function runs. The functions are therefore
//! called in passes. The first one lists the benches. Each further one goes on until the bench that is asked for comes up, and
//! there requests are answered for as long as they are about that bench.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::time::{Duration, Instant};

use ::criterion::measurement::{Measurement, WallTime};
use anyhow::{Context, Result, bail, ensure};
use infergate_core::sha256::words;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Bencher;
use super::bencher::Timed;
use crate::build_info;
use crate::case::{BenchName, Case};
use crate::engine::EngineInfo;
use crate::measure::InvariantBroken;
use crate::printable::printable;
use crate::process::this_program;
use crate::receipt::limits::MAX_CASES;
use crate::receipt::{Output, Throughput, ThroughputUnit, output_sha256};
use crate::worker::standard_streams;
use crate::worker::{Capability, Loaded, PreparedReply, Request, SampleReply, Wire, hello, to_answer};

/// What a worker of benches can do.
const CAPABILITIES: [Capability; 4] =
    [Capability::Prepare, Capability::Sample, Capability::RequestId, Capability::Iterations];

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
        stage: Stage::Idle,
        benches: None,
        seen: BTreeMap::new(),
        trouble: None,
        outputs: BTreeMap::new(),
    };
    director.advance()?;
    loop {
        match &director.stage {
            Stage::Idle => return Ok(()),
            Stage::Listing { .. } => {
                director = pass(director, groups)?;
                director.answer_list()?;
            }
            Stage::Wanted(wanted) => {
                let number = wanted.number;
                director = pass(director, groups)?;
                director.ensure_reached(number)?;
            }
        }
    }
}

/// Calls all functions once.
fn pass(mut director: Director, groups: &dyn Fn()) -> Result<Director> {
    director.seen.clear();
    DIRECTOR.set(Some(director));
    groups();
    DIRECTOR.take().context("worker: the benches ended on another thread than they began")
}

/// A bench came up.
pub fn visit<M: Measurement + 'static>(
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
    stage: Stage,
    /// Known once they were listed.
    benches: Option<Vec<Case>>,
    /// How often each id came up in this pass.
    seen: BTreeMap<String, usize>,
    /// Why the benches cannot be listed.
    trouble: Option<anyhow::Error>,
    /// What each prepared bench returned, as words of its SHA-256.
    outputs: BTreeMap<BenchName, Vec<u32>>,
}

enum Stage {
    /// The input has ended.
    Idle,
    /// The request of this id waits for the names of all benches.
    Listing { id: Option<u64>, started: Instant },
    /// A request waits for its bench to come up.
    Wanted(Wanted),
}

struct Wanted {
    /// Which wait this is, so that a pass can tell whether it ended the one it began with.
    number: u64,
    id: Option<u64>,
    name: BenchName,
    request: Request,
}

impl Director {
    /// Answers what needs no bench, up to the request that does, or the end.
    fn advance(&mut self) -> Result<()> {
        let number = if let Stage::Wanted(wanted) = &self.stage { wanted.number + 1 } else { 0 };
        while let Some(asked) = self.wire.receive()? {
            let request = match asked.request {
                Ok(request) => request,
                Err(error) => {
                    self.wire.answer(asked.id, Err(error))?;
                    continue;
                }
            };
            let case = match &request {
                Request::Prepare { case, .. } | Request::Sample { case, .. } => Some(*case),
                _ => None,
            };
            let reply = match (&request, case, &self.benches) {
                (Request::Hello, ..) => to_answer(&hello(&CAPABILITIES, build_info::build(), false)),
                (Request::Load { .. }, _, Some(benches)) => loaded(benches.clone(), Duration::ZERO),
                (Request::Load { .. }, _, None) => {
                    self.stage = Stage::Listing { id: asked.id, started: Instant::now() };
                    return Ok(());
                }
                (_, Some(_), None) => Err(anyhow::anyhow!("worker: nothing is loaded; send load first")),
                (_, Some(Case::Bench(name)), Some(benches)) if benches.contains(&Case::Bench(name)) => {
                    self.stage = Stage::Wanted(Wanted { number, id: asked.id, name, request });
                    return Ok(());
                }
                (_, Some(case), _) => Err(anyhow::anyhow!("worker: there is no bench called '{case}'")),
                _ => Err(anyhow::anyhow!("worker: criterion benches can only be prepared and sampled")),
            };
            self.wire.answer(asked.id, reply)?;
        }
        self.stage = Stage::Idle;
        Ok(())
    }

    fn visit<M: Measurement + 'static>(
        &mut self,
        id: &str,
        throughput: Option<&::criterion::Throughput>,
        measurement: &M,
        bench: &mut Closure<'_, M>,
    ) -> Result<()> {
        let name = self.name(id);
        if let Stage::Listing { .. } = self.stage {
            match name {
                Ok(name) => self.benches.get_or_insert_default().push(Case::Bench(name)),
                Err(error) => self.trouble = self.trouble.take().or(Some(error)),
            }
            return Ok(());
        }
        let Ok(name) = name else { return Ok(()) };
        while let Stage::Wanted(wanted) = &self.stage {
            if wanted.name != name {
                return Ok(());
            }
            let (id, request) = (wanted.id, wanted.request.clone());
            let reply = self.answer(name, &request, throughput, measurement, bench);
            self.wire.answer(id, reply)?;
            self.advance()?;
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

    fn answer_list(&mut self) -> Result<()> {
        let Stage::Listing { id, started } = &self.stage else { return Ok(()) };
        let (id, took) = (*id, started.elapsed());
        let benches = self.benches.get_or_insert_default();
        let reply = match self.trouble.take() {
            Some(error) => Err(error),
            None if benches.is_empty() => Err(anyhow::anyhow!("there are no benches; add one to a criterion_group!")),
            None if benches.len() > MAX_CASES => {
                Err(anyhow::anyhow!("{} benches are more than {MAX_CASES}; gate fewer at a time", benches.len()))
            }
            None => loaded(benches.clone(), took),
        };
        self.wire.answer(id, reply)?;
        self.advance()
    }

    /// A whole pass went by, and the bench that was wanted when it began never came up.
    fn ensure_reached(&mut self, number: u64) -> Result<()> {
        match &self.stage {
            Stage::Wanted(wanted) if wanted.number == number => {
                let id = wanted.id;
                let gone = anyhow::anyhow!(
                    "the bench '{}' did not come up again; a group has to run the same benches each time",
                    wanted.name
                );
                self.wire.answer(id, Err(gone))?;
                self.advance()
            }
            _ => Ok(()),
        }
    }

    fn answer<M: Measurement + 'static>(
        &mut self,
        name: BenchName,
        request: &Request,
        throughput: Option<&::criterion::Throughput>,
        measurement: &M,
        bench: &mut Closure<'_, M>,
    ) -> Result<Value> {
        ensure!(
            TypeId::of::<M>() == TypeId::of::<WallTime>(),
            "{name}: measures something else than wall time, which the gate cannot judge; leave it out with --cases"
        );
        match request {
            Request::Prepare { known, .. } => {
                let output = self.prepare(name, known.as_deref(), measurement, bench)?;
                let throughput = throughput.and_then(of_criterion);
                to_answer(&PreparedReply { output, work: None, throughput })
            }
            Request::Sample { count, iterations, slowdown, .. } => {
                ensure!(self.outputs.contains_key(&name), "worker: {name} is not prepared; send prepare first");
                ensure!(*count > 0 && *iterations > 0, "worker: no iterations of {name} were asked for");
                ensure!(slowdown.is_finite() && *slowdown >= 0.0, "a slowdown of {slowdown} is no fraction");
                let sample = |_| Ok(vec![slowed(run(name, *iterations, measurement, bench)?.0, *slowdown)]);
                let samples_ns = (0..*count).map(sample).collect::<Result<_>>()?;
                to_answer(&SampleReply { samples_ns })
            }
            _ => bail!("worker: criterion benches can only be prepared and sampled"),
        }
    }

    /// One iteration to warm up and to hear the output, or two where nothing is known of it.
    fn prepare<M: Measurement>(
        &mut self,
        name: BenchName,
        known: Option<&[u32]>,
        measurement: &M,
        bench: &mut Closure<'_, M>,
    ) -> Result<Output> {
        let ids = run(name, 1, measurement, bench)?.1;
        let before = match known {
            Some(known) => known.to_vec(),
            None => run(name, 1, measurement, bench)?.1,
        };
        if ids != before {
            return Err(InvariantBroken(format!(
                "{name}: its output is not the same in every run; a time without a repeatable output means nothing, make the bench deterministic"
            ))
            .into());
        }
        self.outputs.insert(name, ids.clone());
        let sha256 = output_sha256(&ids);
        Ok(Output { sha256, ids, top2_margins: Vec::new(), fingerprint: None, prompt_sha256: None })
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
    let took = once.took.with_context(|| format!("{name}: its closure calls no loop; call iter or one of its kind"))?;
    let ns = measurement.to_f64(&took).round();
    ensure!((0.0..1e18).contains(&ns), "{name}: {ns} ns is no time; mend its iter_custom");
    Ok((ns as u64, output.map(|bytes| words(&Sha256::digest(bytes))).unwrap_or_default()))
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
        _ => return None,
    };
    Some(Throughput { unit, per_iteration })
}

/// The answer to `load`. The model of benches is the bench target's name, so that no other target is compared with it.
fn loaded(benches: Vec<Case>, took: Duration) -> Result<Value> {
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
    let load_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    to_answer(&Loaded { engine, load_ns, devices: Vec::new(), benches })
}
