//! A bench while its closure can run: its output, its samples, and what an iteration allocates.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ::criterion::measurement::{Measurement, WallTime};
use anyhow::{Context, Result, ensure};
use infergate_core::sha256::words;
use sha2::{Digest, Sha256};

use super::bencher::Timed;
use super::{Bencher, set_up};
use crate::measure::InvariantBroken;
use crate::memory::{allocations_of_iteration, count_iteration};
use crate::profiler;
use crate::worker::{Ids, Measured, PreparedReply, Profile, Request, Sampling};
use infergate_core::case::Case;
use infergate_core::receipt::{AllocationSite, CountedCase, Counter, Throughput, ThroughputUnit, output_sha256};

/// A bench's closure.
pub type Closure<'a, M> = dyn FnMut(&mut Bencher<'_, M>) + 'a;

/// The bench that a request is about.
pub fn bench_of(request: &Request) -> Option<Case> {
    match request {
        Request::Prepare { case, .. }
        | Request::Sample { case, .. }
        | Request::Profile { case, .. }
        | Request::Count { case, .. }
        | Request::Sites { case } => Some(*case),
        _ => None,
    }
}

/// A bench that is at hand. Requests about anything else are left.
pub struct AtBench<'a, 'b, M: Measurement> {
    pub case: Case,
    pub throughput: Option<&'a ::criterion::Throughput>,
    pub measurement: &'a M,
    pub bench: &'a mut Closure<'b, M>,
    pub outputs: &'a mut BTreeMap<Case, Vec<u32>>,
    /// Benches that ran in this process.
    pub ran: &'a mut BTreeSet<Case>,
}

impl<M: Measurement> AtBench<'_, '_, M> {
    /// Prepared, by this process or by one whose place it took: then it is warmed up here.
    fn ensure_prepared(&mut self) -> Result<()> {
        self.ensure_wall_time()?;
        ensure!(self.outputs.contains_key(&self.case), "worker: {} is not prepared; send prepare first", self.case);
        if self.ran.insert(self.case) {
            self.once()?;
        }
        Ok(())
    }

    /// One iteration: the words of the output's SHA-256.
    fn once(&mut self) -> Result<Vec<u32>> {
        Ok(self.run(1, false)?.1)
    }

    /// Runs the bench: what so many iterations took, nanoseconds, and the words of the output's SHA-256.
    fn run(&mut self, iterations: u64, warm_up: bool) -> Result<(u64, Vec<u32>)> {
        let mut once = Once { iterations, warm_up, took: None };
        let mut bencher = Bencher::new(&mut once, self.measurement);
        (self.bench)(&mut bencher);
        let output = bencher.output;
        let took = once.took.with_context(|| no_loop(self.case))?;
        let ns = self.measurement.to_f64(&took).round();
        ensure!((0.0..1e18).contains(&ns), "{}: {ns} ns is no time; fix its iter_custom", self.case);
        Ok((ns as u64, output.map(|bytes| words(&Sha256::digest(bytes))).unwrap_or_default()))
    }

    /// What `look` sees of the second iteration of the bench's loop.
    fn second<T: Send>(&mut self, look: &mut Look<'_, T>) -> Result<T> {
        let mut second = Second { look, seen: None };
        (self.bench)(&mut Bencher::new(&mut second, self.measurement));
        second.seen.with_context(|| no_loop(self.case))?
    }

    fn ensure_wall_time(&self) -> Result<()> {
        ensure!(
            type_name::<M>() == type_name::<WallTime>(),
            "{}: measures something else than wall time, which the gate cannot judge; leave it out with --cases",
            self.case
        );
        Ok(())
    }
}

impl<M: Measurement> Measured for AtBench<'_, '_, M> {
    fn leaves(&self, request: &Request) -> bool {
        bench_of(request) != Some(self.case)
    }

    /// One iteration to warm up and to hear the output, or two where nothing is known of it.
    fn prepare(&mut self, _: Case, known: Ids, _: Ids) -> Result<PreparedReply> {
        self.ensure_wall_time()?;
        let ids = self.once()?;
        let before = match known {
            Some(known) => known,
            None => self.once()?,
        };
        if ids != before {
            return Err(InvariantBroken(format!(
                "{}: its output is not the same in every run; a time without a repeatable output means nothing, make the bench deterministic",
                self.case
            ))
            .into());
        }
        self.outputs.insert(self.case, ids.clone());
        self.ran.insert(self.case);
        Ok(PreparedReply { throughput: self.throughput.and_then(of_criterion), ..PreparedReply::of_ids(ids) })
    }

    fn sample(&mut self, _: Case, sampling: Sampling) -> Result<Vec<Vec<u64>>> {
        self.ensure_prepared()?;
        let Sampling { count, iterations, warm_up } = sampling;
        (0..count).map(|_| Ok(vec![self.run(iterations as u64, warm_up)?.0])).collect()
    }

    /// Always warmed up: the first iteration of a closure may do what no further one does.
    fn profile(&mut self, case: Case, count: usize, iterations: usize, file: &Path) -> Result<Profile> {
        let sampling = Sampling { warm_up: true, ..Sampling::of(count, iterations) };
        profiler::profile(file, &mut || self.sample(case, sampling))
    }

    fn count(&mut self, id: Case, repeats: usize) -> Result<CountedCase> {
        self.ensure_prepared()?;
        let mut counters: BTreeMap<String, Counter> = BTreeMap::new();
        for _ in 0..repeats.max(1) {
            for (name, value) in self.second(&mut |iteration| count_iteration(iteration))? {
                let once = Counter { min: value, max: value };
                let counter = counters.entry(name.to_owned()).or_insert(once);
                *counter = counter.with(once);
            }
        }
        let output_sha256 = self.outputs.get(&self.case).map(|ids| output_sha256(ids)).unwrap_or_default();
        Ok(CountedCase { id, output_sha256, counters, reached_twice: BTreeMap::new() })
    }

    fn sites(&mut self, _: Case) -> Result<Vec<AllocationSite>> {
        self.ensure_prepared()?;
        self.second(&mut |iteration| allocations_of_iteration(iteration))
    }
}

/// Looks at what an iteration does, which it is given.
type Look<'a, T> = dyn FnMut(&mut dyn FnMut()) -> Result<T> + Send + 'a;

/// A look at the second iteration of a loop: the first one fills what later ones find full.
struct Second<'a, T> {
    look: &'a mut Look<'a, T>,
    seen: Option<Result<T>>,
}

impl<M: Measurement, T: Send> Timed<M> for Second<'_, T> {
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value) {
        routine(1);
        self.seen = Some((self.look)(&mut || drop(routine(1))));
    }
}

/// A worker that counts iterations down once, and keeps what they took.
struct Once<M: Measurement> {
    iterations: u64,
    /// One more goes first, which is not timed.
    warm_up: bool,
    took: Option<M::Value>,
}

impl<M: Measurement> Timed<M> for Once<M> {
    fn time(&mut self, routine: &mut dyn FnMut(u64) -> M::Value) {
        if self.warm_up {
            set_up(|| drop(routine(1)));
        }
        self.took = Some(routine(self.iterations));
    }
}

fn no_loop(case: Case) -> String {
    format!("{case}: its closure calls no loop; call iter or one of its kind")
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
