//! llama-bench's tests beside the cases of this run that do the same.

use crate::receipt::{CaseRecord, LlamaBenchTest};
use crate::report::figures::token_rates;
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Cell, Chart, Column, Missing, Section, Table, Unit};
use infergate_core::case::Case;
use infergate_core::stats::mean;

/// Lines of more tests than this cannot be read.
const MOST: usize = 40;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let columns = vec![
        Column::words("test", "test").about("pp: prompt tokens, tg: output tokens, @ d: tokens in the cache before"),
        Column::words("model", "model"),
        Column::numbers("llama_bench", "llama-bench").about("mean rate of prompt and output tokens together"),
        Column::numbers("deviation", "std dev").about("sample standard deviation, n - 1"),
        Column::words("case", "case here").about("the case of this run that does the same"),
        Column::numbers("here", "here").about("mean rate, counted in the same way"),
        Column::numbers("ratio", "here / llama-bench"),
    ];
    let mut table = Table::new("llama_bench", "", columns)
    .noted("Two programs, each measured at its own time: on a shared machine the times of two hours differ by tens of percent.");
    for test in &inputs.llama_bench {
        let case = same(test, inputs);
        let here = case.and_then(rate);
        let ratio = here.filter(|_| test.avg_ts > 0.0).map(|here| here / test.avg_ts);
        table.row(vec![
            Cell::text(test.name()),
            Cell::foreign(if test.model().is_empty() { &test.model_type } else { test.model() }),
            Cell::number(Some(test.avg_ts), Unit::TokensPerS, Missing::NotMeasured),
            Cell::number(test.stddev_ts, Unit::TokensPerS, Missing::NotMeasured),
            case.map_or(Cell::text("none"), |case| Cell::text(case.id.to_string())),
            Cell::number(here, Unit::TokensPerS, Missing::NotMeasured),
            Cell::number(ratio, Unit::Times, Missing::NoBase),
        ]);
    }
    Some(Section::new("llama_bench", "llama-bench").with([table]).with(chart(inputs)))
}

/// The mean rate of a case's samples, tokens a second.
fn rate(case: &CaseRecord) -> Option<f64> {
    mean(&token_rates(case))
}

/// The case that does what a test does. A test of output tokens alone begins at the depth a decode case stands at.
fn same<'a>(test: &LlamaBenchTest, inputs: &'a Inputs) -> Option<&'a CaseRecord> {
    let cases = &inputs.head.as_ref()?.cases;
    let count = |tokens: u64| usize::try_from(tokens).ok();
    let wanted = match (test.n_prompt, test.n_gen, test.n_depth) {
        (prompt, 0, 0) => Case::Prefill { prompt_tokens: count(prompt)? },
        (0, _, depth) => Case::Decode { prompt_tokens: count(depth)? },
        (prompt, output, 0) => Case::Generate { prompt_tokens: count(prompt)?, output_tokens: count(output)? },
        _ => return None,
    };
    cases.iter().find(|case| case.id == wanted)
}

/// One chart, where some test has a case here.
fn chart(inputs: &Inputs) -> Option<Chart> {
    let both = |test: &LlamaBenchTest| Some((test.name(), test.avg_ts, rate(same(test, inputs)?)?));
    let known: Vec<(String, f64, f64)> = inputs.llama_bench.iter().filter_map(both).take(MOST).collect();
    let chart = Chart {
        id: "llama-bench".into(),
        title: "Rates beside llama-bench's".into(),
        caption: "Mean rate of prompt and output tokens together, of each test that has a case here. Farther right is faster.".into(),
        x: Axis::new("rate", Unit::TokensPerS).zero(),
        y: Axis::named("test", Vec::new()),
        layers: Vec::new(),
    };
    chart.beside("llama-bench", &known)
}
