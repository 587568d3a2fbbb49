//! What the profiler of an explanation costs: samples with it and without, in turn, in one process. Prints the ratio.
//!
//! `cargo run --release --example profiler_overhead -- WORKER [MODEL] [CASE]`, WORKER being a bench binary.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use infergate_core::case::Case;
use infergate_core::engine::LoadRequest;
use infergate_core::worker::{Client, Patience, WorkerFile};

/// Turns of each kind, and samples in a turn.
const TURNS: usize = 20;
const SAMPLES: usize = 100;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let worker = words.first().context("name the bench binary")?;
    let model = words.get(1).map_or("synthetic:gpt2", String::as_str);
    let case: Case = words.get(2).map_or("decode/p128", String::as_str).parse()?;
    let load = LoadRequest { model: model.into(), threads: 2, seed: 1, ..LoadRequest::default() };
    let cancelled = AtomicBool::new(false);
    let (mut client, _) = Client::spawn(&WorkerFile::open(worker.as_ref())?, &load, Patience::default(), &cancelled)?;
    client.load(&load, None)?;
    client.prepare(case, None)?;
    let file = tempfile::NamedTempFile::new()?;
    let sum_ns = |samples: Vec<Vec<u64>>| samples.iter().filter_map(|sample| sample.last()).sum::<u64>() as f64;
    let (mut ratios, mut seen) = (Vec::new(), 0);
    for turn in 0..TURNS {
        let mut times_ns = [0.0; 2];
        for place in 0..2 {
            let with = (place == 0) == (turn % 2 == 0);
            times_ns[usize::from(with)] = if with {
                let profile = client.profile(case, SAMPLES, 1, file.path())?;
                seen += profile.timed;
                sum_ns(profile.samples_ns)
            } else {
                sum_ns(client.sample(case, SAMPLES, 1)?.samples_ns)
            };
        }
        ratios.push(times_ns[1] / times_ns[0]);
    }
    ratios.sort_by(f64::total_cmp);
    let (low, middle, high) =
        (ratios[TURNS / 4], (ratios[TURNS / 2] + ratios[TURNS / 2 - 1]) / 2.0, ratios[3 * TURNS / 4]);
    println!(
        "{case} with the profiler takes {middle:.4} of the time without (quartiles {low:.4} to {high:.4}; {seen} samples in {TURNS} turns)"
    );
    Ok(())
}
