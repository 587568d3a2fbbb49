//! One request, taken apart: cold and warm TTFT, E2E, generation time, TPOT, the gaps, and the tokens.

use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Column, Layer, Look, Missing, Place, Section, Table, Unit};
use crate::units;
use infergate_core::case::{Case, Phase};
use infergate_core::trace::Trace;
use infergate_receipts::{PairedReceipt, Receipt, TtftParts};

/// Lanes, from the lowest.
const LANES: [&str; 5] = ["E2E", "generation", "ITL", "TTFT", "tokens"];

/// Gaps and tokens that are drawn, the first of them; more run into each other.
const MOST_TOKENS: usize = 400;
/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 600;

/// A real request: the one whose E2E is the middle one of its case.
struct Request {
    case: Case,
    trace: Trace,
    others: Vec<Trace>,
    /// What it said, where that was kept.
    text: Option<String>,
}

/// The request that stands for a run, head's where two sides ran; `None` where nothing was generated.
fn typical(inputs: &Inputs) -> Option<Request> {
    let (case, mut traces) = inputs.head.as_ref().map_or_else(|| of_pair(inputs.paired.as_ref()?), longest_of)?;
    let mut records = inputs.head.iter().flat_map(|receipt| &receipt.cases);
    let text = records.find(|record| record.id == case).and_then(|record| record.text.clone());
    traces.retain(|trace| trace.e2e_ns().is_some());
    traces.sort_by_key(|trace| trace.e2e_ns());
    let middle = traces.len().checked_sub(1)? / 2;
    let trace = traces.remove(middle);
    Some(Request { case, trace, others: traces, text })
}

/// By output tokens, then by prompt.
fn longest<T>(cases: impl Iterator<Item = T>, id: impl Fn(&T) -> Case) -> Option<T> {
    let generated = cases.filter(|case| id(case).phase() == Phase::Generate);
    generated.max_by_key(|case| (id(case).output_tokens(), id(case).prompt_tokens()))
}

fn longest_of(receipt: &Receipt) -> Option<(Case, Vec<Trace>)> {
    let case = longest(receipt.cases.iter(), |case| case.id)?;
    Some((case.id, case.processes.iter().flat_map(|process| process.traces()).collect()))
}

fn of_pair(paired: &PairedReceipt) -> Option<(Case, Vec<Trace>)> {
    // The tokens of samples of several iterations are sums.
    let case = longest(paired.cases.iter().filter(|case| case.iterations_per_sample == 1), |case| case.id)?;
    let blocks = paired.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
    let traces = blocks.flat_map(|block| &block.head_tokens_ns).filter_map(|tokens| Trace::new(tokens.clone()).ok());
    Some((case.id, traces.collect()))
}

/// The start whose TTFT is the middle one, so that its parts add up.
pub fn middle_start(starts: &[TtftParts]) -> Option<&TtftParts> {
    let mut sorted: Vec<&TtftParts> = starts.iter().collect();
    sorted.sort_by_key(|parts| parts.ttft_ns());
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// The tables of one request, and its pictures where one side ran.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let mut section = Section::new("request", "A single request");
    if let Some(request) = typical(inputs) {
        let chosen = format!(
            "One real request of {}: of {} requests the one whose E2E is the middle one.",
            request.case,
            request.others.len() + 1
        );
        section = section.with([chosen]).with([one(&request), tokens(&request)]);
        if inputs.head.is_some() {
            section = section.with(timeline(&request)).with(gaps_chart(&request));
        }
    }
    Some(section.with([starts(inputs)]))
}

fn one(request: &Request) -> Table {
    let trace = &request.trace;
    let columns = vec![
        Column::words("figure", "figure"),
        Column::numbers("value", "value"),
        Column::words("definition", "definition"),
    ];
    let mut table = Table::new("figures", "Latency", columns);
    let gaps: Vec<f64> = trace.itl_ns().into_iter().map(|ns| ns as f64).collect();
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let largest = gaps.iter().copied().reduce(f64::max);
    let smallest = gaps.iter().copied().reduce(f64::min);
    for (name, value, unit, definition) in [
        ("TTFT", ns(trace.ttft_ns()), Unit::Ns, "first token - request"),
        ("E2E", ns(trace.e2e_ns()), Unit::Ns, "last token - request"),
        ("generation time", ns(trace.generation_ns()), Unit::Ns, "E2E - TTFT"),
        ("TPOT", trace.tpot_ns(), Unit::Ns, "(E2E - TTFT) / (output tokens - 1), the mean of all ITL"),
        ("smallest ITL", smallest, Unit::Ns, "the shortest gap between two tokens"),
        ("largest ITL", largest, Unit::Ns, "the longest gap between two tokens"),
        ("decode speed", trace.decode_tokens_per_s(), Unit::TokensPerS, "1 / TPOT"),
        ("output throughput", trace.output_tokens_per_s(), Unit::TokensPerS, "output tokens / E2E"),
    ] {
        table.row(vec![Cell::text(name), Cell::number(value, unit, Missing::Undefined), Cell::text(definition)]);
    }
    table
}

/// One request at a time is measured, so nothing is padded: all three counts of input tokens are the same.
fn tokens(request: &Request) -> Table {
    let case = request.case;
    let mut table = Table::facts("tokens", "Tokens");
    let tokens = |count: usize| Cell::of(count as f64, Unit::Tokens);
    table.fact("batch size", Cell::count(1));
    table.fact("input tokens of the sequence", tokens(case.prompt_tokens()));
    table.fact("input tokens with padding", tokens(case.prompt_tokens()));
    table.fact("input tokens without padding", tokens(case.prompt_tokens()));
    table.fact("new tokens asked for, at most", tokens(case.output_tokens()));
    table.fact("output tokens", tokens(request.trace.token_ns().len()));
    let text = request.text.as_ref().map_or(Cell::Missing(Missing::NotKept), |text| Cell::foreign(text));
    table.fact("text produced", text);
    table
}

fn starts(inputs: &Inputs) -> Table {
    let columns = vec![
        Column::words("start", "start"),
        Column::numbers("prompt_tokens", "prompt").about("tokens"),
        Column::numbers("ttft", "TTFT"),
        Column::numbers("ttft_min", "shortest").about("TTFT of all starts"),
        Column::numbers("ttft_max", "longest"),
        Column::numbers("load", "load").about("reading the model"),
        Column::numbers("tokenize", "tokenize").about("text to tokens"),
        Column::numbers("prefill", "prefill").about("tokens to logits"),
        Column::numbers("first_sample", "first sample").about("logits to the first token"),
        Column::numbers("starts", "starts").about("fresh processes; TTFT and its parts are of the middle one"),
    ];
    let mut table = Table::new("starts", "Time to first token in parts", columns)
    .noted("Cold: the first token of a fresh process, the model's load in it. Warm: the next request. The parts add up to the TTFT.");
    let all = inputs.head.iter().flat_map(|receipt| [("cold", &receipt.cold), ("warm", &receipt.warm)]);
    for (name, starts) in all {
        let Some(parts) = middle_start(starts) else { continue };
        let ns = |value: Option<u64>, missing| Cell::number(value.map(|ns| ns as f64), Unit::Ns, missing);
        let all_ns = || starts.iter().map(TtftParts::ttft_ns);
        table.row(vec![
            Cell::text(name),
            Cell::of(parts.prompt_tokens as f64, Unit::Tokens),
            ns(Some(parts.ttft_ns()), Missing::NotMeasured),
            ns(all_ns().min(), Missing::NotMeasured),
            ns(all_ns().max(), Missing::NotMeasured),
            ns(parts.load_ns, Missing::AlreadyLoaded),
            ns(parts.tokenize_ns, Missing::NoTokenizer),
            ns(Some(parts.prefill_ns), Missing::NotMeasured),
            ns(parts.first_sample_ns, Missing::EngineSilent),
            Cell::count(starts.len()),
        ]);
    }
    table
}

/// For a terminal: the parts of the start whose TTFT is the middle one, so that they add up.
pub fn brief(name: &str, starts: &[TtftParts]) -> Option<String> {
    let parts = middle_start(starts)?;
    let part = |ns: Option<u64>| units::duration(ns.map(|ns| ns as f64));
    let load = if name == "cold" { format!("load {} + ", part(parts.load_ns)) } else { String::new() };
    Some(format!(
        "{name} TTFT at {} tokens: {} = {load}tokenize {} + prefill {} + first sample {}",
        parts.prompt_tokens,
        part(Some(parts.ttft_ns())),
        part(parts.tokenize_ns),
        part(Some(parts.prefill_ns)),
        part(parts.first_sample_ns)
    ))
}

/// The timeline of a request: what TTFT, ITL, generation time and E2E are.
fn timeline(request: &Request) -> Option<Chart> {
    let trace = &request.trace;
    let (first, last) = (trace.ttft_ns()? as f64, trace.e2e_ns()? as f64);
    let times: Vec<f64> = trace.token_ns().iter().map(|ns| *ns as f64).collect();
    let span = |label: &str, from: f64, to: f64, y: f64, n: usize| Layer::Span {
        name: String::new(),
        label: label.into(),
        from,
        to,
        y,
        hover: format!("{label}: {}", Unit::Ns.show(to - from)),
        look: Look::nth(n),
    };
    let mut layers = vec![
        span(&format!("E2E {}", Unit::Ns.show(last)), 0.0, last, 0.0, 3),
        span(&format!("TTFT {}", Unit::Ns.show(first)), 0.0, first, 3.0, 0),
    ];
    if let Some(generation) = trace.generation_ns() {
        let label = format!("generation time {}", Unit::Ns.show(generation as f64));
        layers.push(span(&label, first, last, 1.0, 1));
    }
    for (at, gap) in times.windows(2).enumerate().take(MOST_TOKENS) {
        // Two shades in turn, so that neighbours are told apart.
        layers.push(span(&format!("ITL of token {}", at + 2), gap[0], gap[1], 2.0, 2 * (at % 2)));
    }
    let points = times.iter().enumerate().take(MOST_TOKENS).map(|(at, x)| {
        let hover = format!("token {} after {}", at + 1, Unit::Ns.show(*x));
        Place { x: *x, y: 4.0, hover }
    });
    layers.push(Layer::Points { name: String::new(), points: points.collect(), look: Look::head() });
    Some(Chart {
        id: "timeline".into(),
        title: format!("One request of {}", request.case),
        caption: format!(
            "A real request, from the moment it was handed over. The first of {} tokens ends the TTFT; each further one ends an \
             ITL; the last ends the generation time and the E2E.",
            times.len()
        ),
        x: Axis::new("time since the request", Unit::Ns).zero(),
        y: Axis::named("figure", LANES.map(String::from).to_vec()),
        layers,
    })
}

/// Every gap between tokens over the number of the token: pauses, drift and growth with the context.
fn gaps_chart(request: &Request) -> Option<Chart> {
    let middle = gaps(&request.trace);
    if middle.is_empty() {
        return None;
    }
    // A part of each, so that none goes without.
    let all: Vec<Place> = request.others.iter().flat_map(gaps).collect();
    let every = all.len().div_ceil(MOST_POINTS).max(1);
    let others = all.into_iter().step_by(every).map(|place| Place { hover: String::new(), ..place });
    let others: Vec<Place> = others.collect();
    let mut layers = Vec::new();
    if !others.is_empty() {
        layers.push(Layer::Points { name: "other requests".into(), points: others, look: Look::nth(2) });
    }
    let (name, look) = ("the request whose E2E is the middle one".into(), Look::head());
    layers.push(Layer::Line { name, points: middle, look, marked: true });
    Some(Chart {
        id: "itl".into(),
        title: format!("Inter-token latency of {}", request.case),
        caption: "The gap before each token. A flat line streams evenly; a slope is work that grows with the context; single \
                  high points are pauses."
            .into(),
        x: Axis::new("output token", Unit::Count),
        y: Axis::new("ITL", Unit::Ns).zero(),
        layers,
    })
}

fn gaps(trace: &Trace) -> Vec<Place> {
    let gaps = trace.itl_ns().into_iter().enumerate().take(MOST_POINTS);
    gaps.map(|(at, ns)| Place {
        x: (at + 2) as f64,
        y: ns as f64,
        hover: format!("token {}: {}", at + 2, Unit::Ns.show(ns as f64)),
    })
    .collect()
}
