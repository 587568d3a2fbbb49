//! Before the first block: are the outputs the same, how long does an iteration take, how much does it vary?

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};

use super::block::{Pair, ensure_not};
use super::{Limits, PairedRequest, Program};
use crate::receipt::{BlockCase, PAIRED_SCHEMA, PairedCase, PairedReceipt, Side, SideRecord, timestamp};
use crate::stats::{median, median_absolute_deviation};
use infergate::case::Phase;
use infergate::case::choose;
use infergate::clock::{Clock, MonotonicClock};
use infergate::measure::first_difference;
use infergate::progress::Progress;
use infergate::worker::{Client, Interrupted, NotComparable, PreparedReply, Refused};

/// The pilot takes this many pairs of a case, or as many as fit [`PILOT_NS`], but never fewer than two.
const PILOT_PAIRS: usize = 64;
const PILOT_NS: f64 = 3e9;

/// A block's median should not add more than this to the luck of its two processes: beyond, more blocks help more.
const AIM: f64 = 0.008;

/// A case takes at least and at most this long of a block, and at most so many pairs: a pilot can be lucky, and beyond more
/// blocks help more than more pairs.
const LEAST_BLOCK_NS: f64 = 3e9;
const BLOCK_NS: f64 = 1e10;
const MOST_PAIRS: usize = 96;

/// The median of fewer is no shield against a burst; of a case that takes seconds there is not the time for more.
const LEAST_PAIRS: usize = 6;

/// A turn of a generation takes about this long, or one token: short against the swings of the machine, long against asking
/// for it.
const TURN_NS: f64 = 1.5e7;

/// What a fresh pair of processes varies by however long it is measured, where no calibration says.
const PROCESS_STD: f64 = 0.005;

/// Blocks that vary more than this get the wider threshold.
const QUIET_STD: f64 = 0.02;
/// The ratio from which on a slowdown fails where a case's blocks are quiet and nothing else was asked for.
pub const QUIET_THRESHOLD: f64 = 1.02;
const NOISY_THRESHOLD: f64 = 1.03;

/// An answer may take this many times the longest of the pilot, and never less than [`LEAST_LIMIT`].
const PATIENCE: u32 = 10;
const LEAST_LIMIT: Duration = Duration::from_secs(10);

/// What the pilot found.
pub struct Pilot {
    /// The suite, without blocks.
    pub receipt: PairedReceipt,
    /// How long an answer may take.
    pub limits: Limits,
    /// The time a block will take, nanoseconds.
    pub block_ns: u64,
}

/// The worker of one side.
pub fn program(request: &PairedRequest, side: Side) -> &Program {
    match side {
        Side::Base => &request.base,
        Side::Head => &request.head,
    }
}

/// One process of each side, loaded, with the time that took.
struct Started {
    client: Client,
    record: SideRecord,
    load_ns: u64,
    outputs: Vec<PreparedReply>,
}

/// Loads head and base, in this order: what head cannot do is a failed run, what only base cannot do is not comparable.
pub fn run(request: &PairedRequest, progress: &mut dyn FnMut(&Progress), cancelled: &AtomicBool) -> Result<Pilot> {
    let mut say = |label: &str| progress(&Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 });
    say("pilot: loading head");
    let (mut head, machine) = start(request, Side::Head, cancelled)?;
    let cases = choose(&request.cases, head.record.engine.context_tokens)?;
    say("pilot: loading base");
    let (mut base, _) = start(request, Side::Base, cancelled)?;
    ensure_same_model(&base.record, &head.record)?;
    let clock = MonotonicClock::new();
    // Twice the whole output: nothing a block asks for takes longer.
    let mut slowest = Duration::ZERO;
    for &case in &cases {
        ensure_not(cancelled)?;
        say(&format!("pilot: {case}"));
        let start_ns = clock.now_ns();
        head.outputs.push(head.client.prepare(case, None).context("head")?);
        let in_base = base.client.prepare(case, None).map_err(|error| not_in_base(error, &format!("run {case}")))?;
        base.outputs.push(in_base);
        slowest = slowest.max(Duration::from_nanos(clock.now_ns() - start_ns));
    }

    let mut limits = Limits::default();
    let mut planned = Vec::new();
    let mut sampling_ns = 0.0;
    let mut pair = Pair { base: base.client, head: head.client };
    for (at, &case) in cases.iter().enumerate() {
        say(&format!("pilot: {case}"));
        let (was, is) = (&base.outputs[at].output, &head.outputs[at].output);
        let timed = request.allow_output_change || first_difference(&was.ids, &is.ids).is_none();
        let mut plan = PairedCase {
            id: case,
            threshold: request.threshold.unwrap_or(QUIET_THRESHOLD),
            pairs: 0,
            base_output: was.clone(),
            head_output: is.clone(),
            timed,
            expected_std: None,
        };
        if timed {
            let seen = sample(&mut pair, &plan, &mut limits, cancelled)?;
            sampling_ns += decide(&mut plan, &seen, request);
        }
        planned.push(plan);
    }
    let load = Duration::from_nanos(head.load_ns.max(base.load_ns));
    limits.load = Some(LEAST_LIMIT.max(PATIENCE * load));
    limits.answer = Some(LEAST_LIMIT.max(PATIENCE * slowest));
    let receipt = PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: timestamp(),
        partial: false,
        out_of_time: false,
        invalid: Vec::new(),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine,
        base: base.record,
        head: head.record,
        threads: request.load.threads,
        seed: request.load.seed,
        cases: planned,
        blocks: Vec::new(),
        memory: None,
    };
    let block_ns = sampling_ns as u64 + head.load_ns + base.load_ns;
    Ok(Pilot { receipt, limits, block_ns })
}

fn start(request: &PairedRequest, side: Side, cancelled: &AtomicBool) -> Result<(Started, crate::receipt::Machine)> {
    ensure_not(cancelled)?;
    let program = program(request, side);
    let (mut client, hello) = Client::spawn(&program.path, &request.load).map_err(|error| match side {
        Side::Base if !error.is::<NotComparable>() && !error.is::<Interrupted>() => {
            let remedy = "build base from a revision whose bench target calls infergate::bench::main";
            NotComparable(format!("base does not speak the worker protocol ({error:#}); {remedy}")).into()
        }
        _ => error.context(side.name()),
    })?;
    let loaded = client.load(&request.load, request.prompt_text.as_deref()).map_err(|error| match side {
        Side::Base => not_in_base(error, &format!("load {}", request.load.model)),
        Side::Head => error.context("head"),
    })?;
    let mut build = hello.build;
    (build.commit, build.dirty) = (program.commit.clone(), program.dirty);
    let record = SideRecord { tool: hello.tool, build, engine: loaded.engine, counted: Vec::new() };
    Ok((
        Started { client, record, load_ns: loaded.load_ns, outputs: Vec::new() },
        hello.machine.with_devices(loaded.devices),
    ))
}

/// Another model is another question, however fast it is answered.
fn ensure_same_model(base: &SideRecord, head: &SideRecord) -> Result<()> {
    let (was, is) = (&base.engine, &head.engine);
    let weights = was.weights_sha256.as_ref().zip(is.weights_sha256.as_ref());
    let reason = if was.model != is.model {
        format!("base loads the model '{}' and head '{}'", was.model, is.model)
    } else if weights.is_some_and(|(was, is)| was != is) {
        format!("base and head load other weights of {}", is.model)
    } else {
        return Ok(());
    };
    Err(NotComparable(format!("{reason}; compare like with like, or name one model with --model")).into())
}

/// What only base refuses cannot be compared; what breaks is a failed run on either side.
fn not_in_base(error: anyhow::Error, what: &str) -> anyhow::Error {
    if error.is::<Refused>() {
        return NotComparable(format!("base cannot {what}: {error:#}; choose what both can run, or another base"))
            .into();
    }
    error.context("base")
}

/// A few pairs, by which the rest is decided.
fn sample(pair: &mut Pair, plan: &PairedCase, limits: &mut Limits, cancelled: &AtomicBool) -> Result<BlockCase> {
    let case = plan.id;
    if case.phase() == Phase::Generate {
        // How long a token takes, from one whole generation.
        let whole = pair.head.sample(case, 1).context("head")?.times_ns();
        let token_ns = whole.first().copied().unwrap_or(0).max(1) as f64 / case.output_tokens() as f64;
        let tokens = ((TURN_NS / token_ns) as usize).clamp(1, case.output_tokens());
        limits.turn_tokens.insert(case, tokens);
    }
    let mut one = plan.clone();
    one.pairs = 2;
    let mut seen = pair.measure(&one, Side::Base, limits, cancelled)?;
    let pair_ns = median(&pair_times_ns(&seen)).unwrap_or(1.0).max(1.0);
    one.pairs = ((PILOT_NS / pair_ns) as usize).min(PILOT_PAIRS).saturating_sub(seen.base_ns.len());
    if one.pairs > 0 {
        let more = pair.measure(&one, Side::Base, limits, cancelled)?;
        seen.base_ns.extend(more.base_ns);
        seen.head_ns.extend(more.head_ns);
    }
    Ok(seen)
}

fn pair_times_ns(seen: &BlockCase) -> Vec<f64> {
    seen.base_ns.iter().zip(&seen.head_ns).map(|(base, head)| (base + head) as f64).collect()
}

/// Pairs a block and, where it was not given, the threshold. Gives the time the case will take of a block, nanoseconds.
fn decide(plan: &mut PairedCase, seen: &BlockCase, request: &PairedRequest) -> f64 {
    let pair_ns = median(&pair_times_ns(seen)).unwrap_or(1.0).max(1.0);
    let ratios = seen.log_ratios().unwrap_or_default();
    // The median of k normal values has a standard error of 1.2533 std / sqrt(k).
    let single_std = median_absolute_deviation(&ratios).map_or(AIM, |mad| 1.4826 * mad);
    let error = |pairs: usize| 1.2533 * single_std / (pairs as f64).sqrt();
    let wanted = (1.2533 * single_std / AIM).powi(2).ceil() as usize;
    let within = |ns: f64| ((ns / pair_ns) as usize).clamp(2, MOST_PAIRS);
    // An even number: each side runs first equally often.
    let least = within(LEAST_BLOCK_NS).max(LEAST_PAIRS);
    plan.pairs = wanted.max(least).min(within(BLOCK_NS)).next_multiple_of(2);
    expect(plan, PROCESS_STD.hypot(error(plan.pairs)), request.threshold);
    plan.pairs as f64 * pair_ns
}

/// Notes the noise to expect, and chooses the threshold by it where none was given.
pub fn expect(plan: &mut PairedCase, std: f64, threshold: Option<f64>) {
    plan.expected_std = Some(std);
    plan.threshold = threshold.unwrap_or(if std > QUIET_STD { NOISY_THRESHOLD } else { QUIET_THRESHOLD });
}
