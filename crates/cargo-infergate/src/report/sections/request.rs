//! One request, taken apart: cold and warm TTFT, E2E, generation time, TPOT, the gaps, and the tokens.

use crate::receipt::{PairedReceipt, Receipt, TtftParts};
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Unit};
use infergate_core::case::{Case, Phase};
use infergate_core::trace::Trace;

/// A real request: the one whose E2E is the middle one of its case.
pub struct Request {
    /// Its case: the one with most output tokens.
    pub case: Case,
    /// When its tokens came.
    pub trace: Trace,
    /// The other requests of the case.
    pub others: Vec<Trace>,
    /// What it said, where that was kept.
    pub text: Option<String>,
}

/// The request that stands for a run of one side; of two sides what differs is shown, and no single request.
pub fn of_run(inputs: &Inputs) -> Option<Request> {
    typical(inputs).filter(|_| inputs.head.is_some())
}

/// The request that stands for a run, head's where two sides ran; `None` where nothing was generated.
pub fn typical(inputs: &Inputs) -> Option<Request> {
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

/// The tables of one request.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let starts = starts(inputs);
    let request = typical(inputs);
    if starts.rows.is_empty() && request.is_none() {
        return None;
    }
    let mut section = Section::new("request", "A single request");
    if let Some(request) = &request {
        let chosen = format!(
            "One real request of {}: of {} requests the one whose E2E is the middle one.",
            request.case,
            request.others.len() + 1
        );
        section = section.with(Block::Said(chosen)).with(one(request)).with(tokens(request));
    }
    Some(if starts.rows.is_empty() { section } else { section.with(starts) })
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
    let tokens = |count: usize| Cell::number(Some(count as f64), Unit::Tokens, Missing::NotMeasured);
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
    let mut table = Table::new(
        "starts",
        "Time to first token in parts",
        vec![
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
        ],
    )
    .noted("Cold: the first token of a fresh process, the model's load in it. Warm: the next request. The parts add up to the TTFT.");
    let all = inputs.head.iter().flat_map(|receipt| [("cold", &receipt.cold), ("warm", &receipt.warm)]);
    for (name, starts) in all {
        let Some(parts) = middle_start(starts) else { continue };
        let ns = |value: Option<u64>, missing| Cell::number(value.map(|ns| ns as f64), Unit::Ns, missing);
        let all_ns = || starts.iter().map(TtftParts::ttft_ns);
        table.row(vec![
            Cell::text(name),
            Cell::number(Some(parts.prompt_tokens as f64), Unit::Tokens, Missing::NotMeasured),
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
