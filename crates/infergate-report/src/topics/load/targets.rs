//! Several targets: side by side, each median with the interval it lies in, what they cost, and whether they answer alike.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use infergate_core::stats::{clopper_pearson, mean};
use infergate_load::summary::measured;
use infergate_receipts::LoadReceipt;

use super::cost;
use crate::load::{Metric, Point, Series, View, median_cell, percentile_cell};
use crate::model::{Cell, Missing, Rows, Section, Tone, Unit};
use crate::topics::ends;
use crate::units;

const ABOUT: &str = "Targets took turns, request by request. A median has its 95 % interval if enough requests are \
                     independent. Targets on one machine slow each other. Columns with tokens are computed: TTFT + (tokens - 1) x TPOT.";
const ABOUT_SAME: &str = "Same answers: the share of the dataset's prompts to which a target always gave the first one's \
                          answer, to the letter, over all levels, with its 95 % interval.";
/// The figure that decides for a use.
const USES: [&str; 3] = [
    "TTFT matters where somebody waits for the first word: search, autocomplete.",
    "Decode speed matters in long answers, and where nobody reads along: documents, agents, code that is skimmed.",
    "E2E matters where the whole answer is needed: voice, translation.",
];

/// Kinds of use, and the tokens of an answer that each wants.
const KINDS: [(&str, usize); 4] = [("chat", 128), ("documents", 256), ("code", 384), ("agent", 64)];

pub fn topic(view: &View) -> Option<Section> {
    if !view.has_targets() {
        return None;
    }
    let table = view
        .rows("targets", "")
        .titled_numbers("measured", "requests", |point| point.summary.measured)
        .numbers("failed", |point| {
            Cell::of(point.summary.failed_share(), Unit::Fraction).toned(Tone::bad_if(point.summary.failed() > 0))
        })
        .about("of the requests that were not given up when the run ended")
        .titled_numbers("output_tokens", "answer", |point| {
            let why = if point.summary.window.is_none() { Missing::NoWindow } else { Missing::NotMeasured };
            let tokens: Vec<f64> = counted_tokens(view, point).map(|tokens| tokens as f64).collect();
            Cell::number(mean(&tokens), Unit::Plain, why)
        })
        .about("tokens, in the mean")
        .titled_numbers("ttft", "TTFT P50", |point| median_cell(point, Metric::Ttft))
        .about("with the 95 % interval of the median")
        .titled_numbers("decode_speed", "decode speed P50", |point| median_cell(point, Metric::DecodeSpeed))
        .about("1 / TPOT of each request")
        .titled_numbers("e2e", "E2E P50", |point| median_cell(point, Metric::E2e));
    let of_kind = |rows: Rows<_>, (kind, tokens): (&'static str, usize)| {
        let answer = move |point: &&Point| match median_cell(point, Metric::Tpot) {
            Cell::Number(tpot, _) => {
                let ttft_ns = point.p50(Metric::Ttft);
                Cell::of(ttft_ns.map(|ttft_ns| ttft_ns + (tokens - 1) as f64 * tpot.value), Unit::Ns)
            }
            missing => missing,
        };
        rows.titled_numbers(kind, format!("{kind}, {tokens} tokens"), answer)
            .about("TTFT + (tokens - 1) x TPOT of the medians")
    };
    let answers = answers(&view.receipt);
    let same = |point: &&Point| same_answers(&answers, point.series).unwrap_or_else(|| "".into());
    let table = KINDS
        .into_iter()
        .fold(table, of_kind)
        .with_if(cost::is_priced(view), |rows| {
            rows.titled_numbers("cost", "cost of a thousand requests, by --price", |point| {
                cost::of_thousand(view, point)
            })
        })
        .with_if(!answers.is_empty(), |rows| rows.titled_numbers("same", "same answers", same))
        .table();
    let mut uses: Vec<String> = USES.map(str::to_owned).into();
    uses.extend((!answers.is_empty()).then(|| ABOUT_SAME.to_owned()));
    let lengths: BTreeSet<u64> = view.points.iter().flat_map(|point| counted_tokens(view, point)).collect();
    if let [tokens] = Vec::from_iter(lengths)[..] {
        uses.push(format!("Every answer has {tokens} tokens: which model writes more is not shown."));
    }
    Some(Section::new("load_targets", "Targets side by side").with([ABOUT]).with([uses]).with([table]))
}

/// A line each provider and level, with the range over its models; nothing where no provider has two. A target is named
/// `PROVIDER/MODEL`.
pub fn providers(view: &View) -> Option<Section> {
    let provider = |point: &Point| Some(view.target_name(point).split_once('/')?.0.to_owned());
    let mut rows: BTreeMap<(usize, String), Vec<&Point>> = BTreeMap::new();
    for point in &view.points {
        if let Some(provider) = provider(point) {
            rows.entry((point.level, provider)).or_default().push(point);
        }
    }
    if rows.values().all(|models| models.len() < 2) {
        return None;
    }
    let medians = |metric| move |models: &Vec<&Point>| range(models, |point| percentile_cell(point, metric, 0.5));
    let table = view
        .lead(Rows::of("providers", "", rows.into_values()), |models| models[0])
        .words("provider", |models| Cell::foreign(&provider(models[0]).unwrap_or_default()))
        .numbers("models", Vec::len)
        .numbers("failed", |models| range(models, |point| Cell::of(point.summary.failed_share(), Unit::Fraction)))
        .titled_numbers("ttft", "TTFT P50", medians(Metric::Ttft))
        .titled_numbers("decode_speed", "decode speed P50", medians(Metric::DecodeSpeed))
        .titled_numbers("e2e", "E2E P50", medians(Metric::E2e))
        .table();
    Some(Section::new("load_providers", "Providers over their models").with([table]))
}

/// From the least to the most that `cell` says of a provider's models.
fn range(models: &[&Point], cell: impl Fn(&Point) -> Cell) -> Cell {
    match ends(models.iter().copied(), |point| cell(point).value()) {
        Some([(least, _), (most, _)]) => units::from_to(|point| cell(point).shown(), least, most).into(),
        None => cell(models[0]),
    }
}

/// Tokens of each measured answer.
fn counted_tokens(view: &View, point: &Point) -> impl Iterator<Item = u64> {
    measured(view.record(point), point.series.target).into_iter().map(|record| record.tokens())
}

/// What a target answered to each prompt: the hash of its answers; `None` where they differ among themselves.
type Answers<'a> = HashMap<u64, Option<&'a str>>;

/// By scenario and target. Nothing without a dataset: made-up prompts are sent once.
fn answers(receipt: &LoadReceipt) -> HashMap<(usize, u32), Answers<'_>> {
    let mut answers: HashMap<(usize, u32), Answers<'_>> = HashMap::new();
    let Some(prompts) = receipt.dataset_prompts.filter(|prompts| *prompts > 0) else { return answers };
    for level in &receipt.levels {
        for record in level.requests.iter().filter(|record| record.failure.is_none()) {
            let Some(hash) = record.output_sha256.as_deref() else { continue };
            let of_target = answers.entry((level.scenario as usize, record.target)).or_default();
            let known = of_target.entry(record.request / receipt.targets.len() as u64 % prompts).or_insert(Some(hash));
            *known = known.filter(|known| *known == hash);
        }
    }
    answers
}

/// The part of the prompts that a target answered as the first one did; `None` for the first one, and without prompts that both answered.
fn same_answers(answers: &HashMap<(usize, u32), Answers<'_>>, series: Series) -> Option<Cell> {
    let target = series.target.filter(|target| *target > 0)?;
    let (first, own) = (answers.get(&(series.scenario, 0))?, answers.get(&(series.scenario, target))?);
    let both: Vec<_> = first.iter().filter_map(|(prompt, one)| Some((one, own.get(prompt)?))).collect();
    let same = both.iter().filter(|(one, other)| one.is_some() && one == other).count();
    let share = (!both.is_empty()).then(|| same as f64 / both.len() as f64)?;
    Some(Cell::of(share, Unit::Fraction).within(clopper_pearson(same as u64, both.len() as u64, 0.95)))
}
