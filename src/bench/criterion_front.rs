//! Criterion groups `prefill`, `decode` and `generate` over the case grid.

use std::cell::RefCell;
use std::process;
use std::time::Duration;

use anyhow::{Context, Result};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use super::arguments::Arguments;
use super::record::Recorder;
use crate::engine::EngineFactory;
use crate::measure::{self, Sampler};
use infergate_core::case::{Phase, full_grid, select_fitting};
use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::config::Config;
use infergate_core::{prompt, sha256};

/// Criterion's smallest sample size: a generation takes seconds.
const SAMPLES: usize = 10;

/// Criterion needs some; the output was computed twice before, which is the real warm-up.
const WARM_UP: Duration = Duration::from_millis(1);

/// Runs the groups that `arguments` name, and writes the receipt.
pub fn run(factory: &dyn EngineFactory, config: &Config, arguments: &Arguments) -> Result<()> {
    let clock = MonotonicClock::default();
    let own_text = config.own_prompt_text()?;
    let text = own_text.as_deref().unwrap_or(prompt::TEXT);
    let start_ns = clock.now_ns();
    let mut engine = factory.load(&config.load_request())?;
    let load_ns = clock.now_ns() - start_ns;
    measure::ensure_reads(engine.as_ref(), own_text.as_deref())?;
    let context_tokens = engine.info().context_tokens;
    let cases = select_fitting(&config.cases, &full_grid(context_tokens), context_tokens)?;

    let measured = !(arguments.list || arguments.test || arguments.load_baseline);
    let mut recorder = Recorder::new(config, engine.as_ref(), own_text.as_deref().map(sha256::of));
    if let Some(case) = cases.iter().find(|case| measured && arguments.names(&case.to_string())) {
        let tokenize_ns = measure::first_tokenize_ns(engine.as_ref(), &clock, text, case.prompt_tokens())?;
        let prompt = measure::fixed_prompt(engine.as_ref(), text, case.prompt_tokens(), config.seed)?;
        let cold = measure::Cold { load_ns, tokenize_ns };
        recorder.receipt.cold.push(measure::ttft_parts(engine.as_mut(), &clock, &prompt, Some(cold))?);
        recorder.receipt.warm.push(measure::ttft_parts(engine.as_mut(), &clock, &prompt, None)?);
    }

    let mut criterion = Criterion::default().sample_size(SAMPLES).warm_up_time(WARM_UP).configure_from_args();
    for phase in [Phase::Prefill, Phase::Decode, Phase::Generate] {
        let mut group = criterion.benchmark_group(phase.name());
        group.sampling_mode(SamplingMode::Flat);
        for case in cases.iter().filter(|case| case.phase() == phase) {
            let prepared = if arguments.names(&case.to_string()) && !arguments.list && !arguments.load_baseline {
                let prompt = measure::fixed_prompt(engine.as_ref(), text, case.prompt_tokens(), config.seed)?;
                Some(measure::prepare(engine.as_mut(), *case, prompt, None)?)
            } else {
                None
            };
            let per_sample = match &prepared {
                Some(prepared) if measured => measure::iterations_per_sample(engine.as_mut(), &clock, prepared)?,
                _ => 1,
            };
            // Tokens the timed region works through.
            let tokens = if phase == Phase::Prefill { case.prompt_tokens() } else { case.times_in_sample() };
            group.throughput(Throughput::Elements(tokens as u64));
            let samples = RefCell::new(Vec::new());
            group.bench_function(BenchmarkId::from_parameter(case.parameter()), |bencher| {
                let Some(prepared) = &prepared else { return };
                let mut sampler = Sampler::default();
                bencher.iter_custom(|iterations| {
                    let mut total_ns = 0;
                    let mut left = usize::try_from(iterations).unwrap_or(usize::MAX);
                    while left > 0 {
                        let together = left.min(per_sample);
                        let sample = sampler.sample(engine.as_mut(), &clock, prepared, together).context("bench");
                        // Criterion's closures cannot fail, and a made-up time would be a lie.
                        let sample = sample.unwrap_or_else(|error| process::exit(super::failed(&error).into()));
                        total_ns += sample.last().copied().unwrap_or(0);
                        if together == per_sample {
                            samples.borrow_mut().push(sample);
                        }
                        left -= together;
                    }
                    Duration::from_nanos(total_ns)
                });
            });
            if let (Some(prepared), true) = (prepared, measured) {
                recorder.case(prepared, samples.into_inner(), per_sample);
            }
        }
        group.finish();
    }
    criterion.final_summary();
    if measured { recorder.finish() } else { Ok(()) }
}
