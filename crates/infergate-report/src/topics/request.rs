//! One request, taken apart: cold and warm TTFT, E2E, generation time, TPOT, the gaps, and the tokens.

use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Chart, Finding, Layer, Look, Marks, Missing, Place, Rows, Section, Table, Unit};
use crate::units;
use infergate_core::case::Phase;
use infergate_core::printable::printable_within;
use infergate_core::prompt::seeded_ids;
use infergate_core::receipt::output_sha256;
use infergate_core::stats::floats;
use infergate_core::trace::Times;
use infergate_receipts::{CaseRecord, Metric, Receipt, TtftParts};

/// Gaps that are drawn, the first of them; more run into each other, and make a file slow.
const MOST_GAPS: usize = 400;
/// Characters of a text for each token of a prompt; tokens have fewer in the mean, so the prompt ends before.
const MOST_TOKEN_CHARS: usize = 8;

/// A real request: the one whose E2E is the middle one of its case.
struct Request<'a> {
    record: &'a CaseRecord,
    token_ns: Vec<u64>,
    /// Requests of the case.
    requests: usize,
}

impl Request<'_> {
    fn times(&self) -> Times<'_> {
        Times::of_tokens(&self.token_ns)
    }
}

/// The request that stands for a run: of the longest generations the middle one; `None` where nothing was generated.
fn typical(receipt: &Receipt) -> Option<Request<'_>> {
    let generated = receipt.cases.iter().filter(|case| case.id.phase() == Phase::Generate);
    let record = generated.max_by_key(|case| (case.id.output_tokens(), case.id.prompt_tokens()))?;
    let mut all: Vec<Vec<u64>> = record.processes.iter().flat_map(|process| process.token_times_ns()).collect();
    all.retain(|token_ns| !token_ns.is_empty());
    all.sort_by_key(|token_ns| token_ns.last().copied());
    let requests = all.len();
    Some(Request { record, token_ns: all.swap_remove(requests.checked_sub(1)? / 2), requests })
}

/// The start whose TTFT is the middle one, so that its parts add up.
pub fn middle_start(starts: &[TtftParts]) -> Option<&TtftParts> {
    let mut sorted: Vec<&TtftParts> = starts.iter().collect();
    sorted.sort_by_key(|parts| parts.ttft_ns());
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut section = Section::new("request", "A single request");
    if let Some(request) = typical(receipt) {
        let chosen = format!(
            "One real request of {}: of {} requests the one whose E2E is the middle one.",
            request.record.id, request.requests
        );
        let share =
            request.times().ttft_ns().zip(request.times().e2e_ns()).map(|(ttft, e2e)| units::percent(ttft / e2e));
        section = section.with(share.map(|share| {
            Finding::plain(format!("The wait for the first token is {share} of the E2E of {}", request.record.id))
        }));
        let prompt = inputs.prompt_text.as_ref().map(|text| ("prompt", prompt(receipt, request.record, text)));
        section = section
            .with([chosen])
            .with([figures(&request), tokens(&request, prompt)])
            .with(timeline(&request.record.id.to_string(), &request.token_ns))
            .with([gaps_chart(&request)]);
    }
    Some(section.with([starts(receipt).on_terminal()]))
}

fn figures(request: &Request<'_>) -> Table {
    let times = request.times();
    let gaps: Vec<f64> = times.gaps_ns().collect();
    let ns = |value: Option<f64>| Cell::number(value, Unit::Ns, Missing::Undefined);
    let of = |metric: Metric| Cell::number(metric.value(times), Unit::of(metric), Missing::Undefined);
    let generation_ns = times.e2e_ns().zip(times.ttft_ns()).filter(|_| !gaps.is_empty()).map(|(e2e, ttft)| e2e - ttft);
    let figures = [
        ("TTFT", of(Metric::Ttft), "first token - request"),
        ("E2E", of(Metric::E2e), "last token - request"),
        ("generation time", ns(generation_ns), "E2E - TTFT"),
        ("TPOT", of(Metric::Tpot), "(E2E - TTFT) / (output tokens - 1), the mean of all ITL"),
        ("smallest ITL", ns(gaps.iter().copied().min_by(f64::total_cmp)), "the shortest gap between two tokens"),
        ("largest ITL", ns(gaps.iter().copied().max_by(f64::total_cmp)), "the longest gap between two tokens"),
        ("decode speed", of(Metric::DecodeSpeed), "1 / TPOT"),
        ("output throughput", of(Metric::OutputThroughput), "output tokens / E2E"),
    ];
    Rows::of("figures", "Latency", figures)
        .words("figure", |(name, ..)| *name)
        .numbers("value", |(_, value, _)| value.clone())
        .words("definition", |(.., definition)| *definition)
        .table()
}

/// One request at a time is measured, so nothing is padded.
fn tokens(request: &Request<'_>, prompt: Option<(&'static str, Cell)>) -> Table {
    let tokens = |count: usize| Cell::of(count, Unit::Tokens);
    let (input, output) = (tokens(request.record.id.prompt_tokens()), request.record.id.output_tokens());
    let text = request.record.text.as_ref().map_or(Cell::Missing(Missing::NotKept), Cell::text);
    let facts = [
        ("batch size", 1.into()),
        ("input tokens, one sequence without padding", input),
        ("output tokens requested, at most", tokens(output)),
        ("output tokens", tokens(request.token_ns.len())),
        ("text produced", text),
    ];
    Table::facts("tokens", "Tokens", prompt.into_iter().chain(facts).collect())
}

/// A case's prompt, drawn again: the ids of the seed where these are what was sent, else the text that it is the first tokens of.
fn prompt(receipt: &Receipt, record: &CaseRecord, text: &str) -> Cell {
    let tokens = record.id.prompt_tokens();
    let ids = seeded_ids(tokens, receipt.seed, receipt.engine.vocab_tokens);
    if record.output.prompt_sha256.as_ref() == Some(&output_sha256(&ids)) {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        return Cell::text(format!("token ids {}", ids.join(" ")));
    }
    if receipt.cold.iter().all(|start| start.tokenize_ns.is_none()) {
        return Cell::Missing(Missing::NoTokenizer);
    }
    Cell::text(format!("the first {tokens} tokens of: {}", printable_within(text, MOST_TOKEN_CHARS * tokens)))
}

/// A kind of start, and all of it.
struct Starts<'a> {
    name: &'static str,
    all: &'a [TtftParts],
    middle: &'a TtftParts,
}

/// Cold and warm starts in parts.
fn starts(receipt: &Receipt) -> Table {
    let kinds = [("cold", &receipt.cold), ("warm", &receipt.warm)];
    let kinds = kinds.into_iter().filter_map(|(name, all)| Some(Starts { name, all, middle: middle_start(all)? }));
    let ns = |value: Option<u64>, missing| Cell::number(value, Unit::Ns, missing);
    let of_all = |starts: &Starts, pick: fn(u64, u64) -> u64| {
        Cell::of(starts.all.iter().map(TtftParts::ttft_ns).reduce(pick), Unit::Ns)
    };
    Rows::of("starts", "Time to first token in parts", kinds)
        .words("start", |starts| starts.name)
        .titled_numbers("prompt_tokens", "prompt", |starts| Cell::of(starts.middle.prompt_tokens, Unit::Tokens))
        .titled_numbers("ttft", "TTFT", |starts| Cell::of(starts.middle.ttft_ns(), Unit::Ns))
        .titled_numbers("ttft_min", "shortest", |starts| of_all(starts, u64::min))
        .about("TTFT of all starts")
        .titled_numbers("ttft_max", "longest", |starts| of_all(starts, u64::max))
        .numbers("load", |starts| Cell::known(starts.middle.load_ns, Unit::Ns))
        .about("reading the model")
        .numbers("tokenize", |starts| ns(starts.middle.tokenize_ns, Missing::NoTokenizer))
        .about("text to tokens")
        .numbers("prefill", |starts| Cell::of(starts.middle.prefill_ns, Unit::Ns))
        .about("tokens to logits")
        .titled_numbers("prefill_part", "prefill / TTFT", |starts| {
            Cell::of(starts.middle.prefill_ns as f64 / starts.middle.ttft_ns() as f64, Unit::Fraction)
        })
        .titled_numbers("first_sample", "first sample", |starts| ns(starts.middle.first_sample_ns, Missing::EngineSilent))
        .about("logits to the first token")
        .numbers("starts", |starts| starts.all.len())
        .about("fresh processes; TTFT and its parts are of the middle one")
        .table()
        .noted(
            "Cold: the first token of a fresh process, with the model's load, as after a restart; its prefill also sets up memory and threads. \
                Warm: the next request, as \
                users mostly meet it. The parts add up to the TTFT.",
        )
}

/// The timeline of a request of `what`, by the times of its tokens since it was sent: what TTFT, ITL, generation time and E2E are.
pub fn timeline(what: &str, token_ns: &[u64]) -> Option<Chart> {
    let times = floats(token_ns);
    let (first, last) = (*times.first()?, *times.last()?);
    let span = |name: &str, (from, to): (f64, f64), y: f64, n: usize| {
        let hover = format!("{name}: {}", units::duration(to - from));
        Layer::new("", Look::nth(n), Marks::Span { from, to, y, label: String::new(), hover })
    };
    let mut layers = vec![
        span("E2E", (0.0, last), 0.0, 3),
        span("generation time", (first, last), 1.0, 1),
        span("TTFT", (0.0, first), 3.0, 0),
    ];
    for (at, gap) in times.windows(2).enumerate().take(MOST_GAPS) {
        // Two shades in turn, so that neighbours are told apart.
        layers.push(span(&format!("ITL of token {}", at + 2), (gap[0], gap[1]), 2.0, 2 * (at % 2)));
    }
    let lane = |name: &str, ns: f64| format!("{name} {}", units::duration(ns));
    let lanes = vec![lane("E2E", last), lane("generation", last - first), "ITL".into(), lane("TTFT", first)];
    Some(Chart {
        id: "timeline".into(),
        title: format!("One request of {what}"),
        caption: format!(
            "A real request, the one with the middle E2E: the first of {} tokens ends the TTFT, the last the E2E.",
            times.len()
        ),
        x: Axis::new("time since the request", Unit::Ns).zero(),
        y: Axis::named("figure", lanes),
        layers,
    })
}

/// Every gap between tokens over the number of the token: pauses, drift and growth with the context.
fn gaps_chart(request: &Request<'_>) -> Chart {
    let gaps = request.times().gaps_ns().enumerate().take(MOST_GAPS);
    let place = |(at, ns): (usize, f64)| {
        let token = at + 2;
        Place::new(token as f64, ns, format!("token {token}: {}", units::duration(ns)))
    };
    Chart {
        id: "itl".into(),
        title: format!("Inter-token latency of {}", request.record.id),
        caption: "The gap before each token: a slope is work that grows with the context, a single high point a pause."
            .into(),
        x: Axis::new("output token", Unit::Count),
        y: Axis::new("ITL", Unit::Ns).zero(),
        layers: vec![Layer::new("ITL", Look::head(), Marks::MarkedLine(gaps.map(place).collect()))],
    }
}
