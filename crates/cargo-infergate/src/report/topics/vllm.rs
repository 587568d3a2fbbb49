//! Results of `vllm bench serve` beside the levels of a load run here that put on the same load.

use crate::receipt::{LevelRecord, VllmResult};
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Cell, Chart, Column, Missing, Section, Table, Unit};
use infergate_core::load::Arrivals;
use infergate_load::summary::{LevelSummary, summarise};

/// Lines of more runs than this cannot be read.
const MOST: usize = 40;

struct Figure {
    name: &'static str,
    unit: Unit,
    theirs: Option<f64>,
    here: Option<f64>,
}

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let columns = vec![
        Column::words("load", "load"),
        Column::words("model", "model"),
        Column::words("figure", "figure"),
        Column::numbers("vllm", "vLLM").about("as its file says; latencies are of all requests of its run"),
        Column::numbers("here", "here")
            .about("of the level with as many users or the same rate; latencies are of measured requests"),
        Column::numbers("ratio", "here / vLLM"),
    ];
    let mut table = Table::new("vllm", "", columns).noted(
        "Two clients, each at its own time: on a shared machine the times of two hours differ by tens of percent.",
    );
    for result in &inputs.vllm {
        for figure in figures(result, same(result, inputs)) {
            let ratio = figure.here.zip(figure.theirs).filter(|(_, theirs)| *theirs > 0.0);
            table.row(vec![
                Cell::text(name(result)),
                Cell::foreign(&result.model_id),
                Cell::text(figure.name),
                Cell::number(figure.theirs, figure.unit, Missing::NotMeasured),
                Cell::number(figure.here, figure.unit, Missing::NotMeasured),
                Cell::number(ratio.map(|(here, theirs)| here / theirs), Unit::Times, Missing::NoBase),
            ]);
        }
    }
    Some(Section::new("vllm", "vLLM bench serve").with([table]).with(chart(inputs)))
}

/// How a load of vLLM's is named: `8 users`, `2.5 requests/s`.
fn name(result: &VllmResult) -> String {
    match (result.requests_per_s(), result.max_concurrency) {
        (Some(rate), None) => format!("{rate} requests/s"),
        (Some(rate), Some(users)) => format!("{rate} requests/s, at most {users} in flight"),
        (None, Some(users)) => Arrivals::Closed { users }.name(),
        (None, None) => "all at once".into(),
    }
}

/// The level that put on the same load, where there is one alone. vLLM's flags do not say which scenario a run is.
fn same(result: &VllmResult, inputs: &Inputs) -> Option<LevelSummary> {
    let is_same = |level: &&LevelRecord| match (level.arrivals, result.requests_per_s(), result.max_concurrency) {
        (Arrivals::Closed { users }, None, Some(theirs)) => users == theirs,
        (Arrivals::Open { requests_per_s, .. }, Some(theirs), None) => requests_per_s == theirs,
        _ => false,
    };
    let mut levels = inputs.load.as_ref()?.levels.iter().filter(is_same);
    let level = levels.next()?;
    levels.next().is_none().then(|| summarise(level))
}

fn figures(result: &VllmResult, here: Option<LevelSummary>) -> Vec<Figure> {
    let here = here.as_ref();
    let time = |name, theirs_ms: Option<f64>, here: Option<f64>| {
        let theirs = theirs_ms.map(|ms| ms * 1e6);
        Figure { name, unit: Unit::Ns, theirs, here }
    };
    let rate = here.and_then(|summary| summary.system_tokens_per_s);
    let at = |p: f64, of: fn(&LevelSummary) -> &infergate_load::summary::values::Values| {
        here.and_then(|summary| of(summary).at(p))
    };
    let all = [
        Figure { name: "output throughput", unit: Unit::TokensPerS, theirs: result.output_throughput, here: rate },
        time("TTFT P50", result.median_ttft_ms, at(0.5, |summary| &summary.ttft_ns)),
        time("TTFT P99", result.p99_ttft_ms, at(0.99, |summary| &summary.ttft_ns)),
        time("TPOT P50", result.median_tpot_ms, at(0.5, |summary| &summary.tpot_ns)),
        time("TPOT P99", result.p99_tpot_ms, at(0.99, |summary| &summary.tpot_ns)),
        time("ITL P50", result.median_itl_ms, at(0.5, |summary| &summary.itl_ns)),
        time("ITL P99", result.p99_itl_ms, at(0.99, |summary| &summary.itl_ns)),
        time("E2E P50", result.median_e2el_ms, at(0.5, |summary| &summary.e2e_ns)),
        time("E2E P99", result.p99_e2el_ms, at(0.99, |summary| &summary.e2e_ns)),
    ];
    all.into_iter().filter(|figure| figure.theirs.is_some()).collect()
}

/// One chart, where some run has a level here.
fn chart(inputs: &Inputs) -> Option<Chart> {
    let both = |result| Some((name(result), result.output_throughput?, same(result, inputs)?.system_tokens_per_s?));
    let known: Vec<(String, f64, f64)> = inputs.vllm.iter().filter_map(both).take(MOST).collect();
    let chart = Chart {
        id: "vllm".into(),
        title: "Throughput beside vLLM bench serve".into(),
        caption: "Output tokens a second, of each run that has a level of the same load here. Farther right is faster."
            .into(),
        x: Axis::new("output throughput", Unit::TokensPerS).zero(),
        y: Axis::named("load", Vec::new()),
        layers: Vec::new(),
    };
    chart.beside("vLLM bench serve", &known)
}
