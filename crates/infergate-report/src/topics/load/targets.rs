//! Several targets: side by side, each median with the interval it lies in; the best one for each use; and whether they answer alike.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use infergate_core::printable::first_of;
use infergate_core::stats::{clopper_pearson, mean};
use infergate_load::summary::measured;
use infergate_receipts::{LoadReceipt, TargetRecord};

use super::ends;
use crate::load::{Metric, Point, View, median_cell};
use crate::model::{Cell, Finding, Missing, Rows, Section, Tone, Unit};

const ABOUT: &str =
    "Requests went to the targets in turn, in the same minutes. Each median stands with its 95 % interval.";
const ABOUT_USES: &str = "Who waits for the first word feels TTFT, who reads nothing along feels tokens a second, who needs the whole answer feels \
                          E2E. A target is named the best only where its interval lies apart from all the others'.";
const ABOUT_AGREEMENT: &str = "How many of the dataset's prompts two targets answered with the same text. Two that serve one model can differ by a coarser \
                               quantization, another order of sums, or a special token before the prompt. Which answer is better is not said.";
/// Answers whose mean lengths differ by more than this part are not compared by E2E without a word.
const SAME_LENGTH: f64 = 0.05;
/// Models in a sentence.
const MOST_NAMED: usize = 4;
/// Uses and the figure that decides for each.
const USES: [(&str, &str, Metric); 3] = [
    ("search, autocomplete", "TTFT", Metric::Ttft),
    ("agents, whose output nobody reads along", "tokens a second (decode speed)", Metric::DecodeSpeed),
    ("voice, translation", "E2E", Metric::E2e),
];

pub fn topic(view: &View<'_>) -> Option<Section> {
    if !view.has_targets() {
        return None;
    }
    let table = view
        .rows("targets", "")
        .numbers("measured", "requests", |point| point.summary.measured)
        .numbers("failed", "failed", |point| {
            Cell::of(point.failed_share(), Unit::Fraction).toned(Tone::bad_if(point.failed() > 0))
        })
        .about("of the requests that were not given up when the run ended")
        .numbers("output_tokens", "answer", |point| {
            let why = if point.summary.window.is_none() { Missing::NoWindow } else { Missing::NotMeasured };
            Cell::number(output_tokens(view, point), Unit::Plain, why)
        })
        .about("output tokens, in the mean")
        .numbers("ttft", "TTFT P50", |point| median_cell(point, Metric::Ttft))
        .about("with the 95 % interval of the median")
        .numbers("decode_speed", "decode speed P50", |point| median_cell(point, Metric::DecodeSpeed))
        .about("1 / TPOT of each request")
        .numbers("e2e", "E2E P50", |point| median_cell(point, Metric::E2e))
        .table();
    let findings: Vec<Finding> = view.scenarios().into_iter().filter_map(|scenario| lengths(view, scenario)).collect();
    Some(Section::new("load_targets", "Targets side by side").with([ABOUT]).with([table]).with([findings]))
}

fn output_tokens(view: &View<'_>, point: &Point) -> Option<f64> {
    let measured = measured(view.record(point)?, point.series.target.map(|target| target as u32));
    mean(&measured.iter().map(|record| record.tokens() as f64).collect::<Vec<f64>>())
}

/// Targets whose answers have different lengths, in the first level where they do.
fn lengths(view: &View<'_>, scenario: usize) -> Option<Finding> {
    let levels = view.levels().filter(|points| points.iter().all(|point| point.series.scenario == scenario));
    let ranges = levels.filter_map(|points| ends(points, |point| output_tokens(view, point)));
    let [(short, least), (long, most)] =
        ranges.into_iter().find(|[least, most]| most.1 > least.1 * (1.0 + SAME_LENGTH))?;
    Some(Finding::warn(format!(
        "Answers differ in length: {} tokens ({}) and {} ({}), so compare E2E by the crossing points and not by itself",
        Unit::Plain.show(most),
        view.place_name(long),
        Unit::Plain.show(least),
        view.place_name(short)
    )))
}

/// What has to be known before targets are compared.
pub fn caveats(view: &View<'_>) -> Vec<Finding> {
    if view.has_targets() { unequal(view).into_iter().chain(shared(view)).collect() } else { Vec::new() }
}

/// Targets that serve models of different names: their weights can be others, or of another format.
fn unequal(view: &View<'_>) -> Option<Finding> {
    let models = view.receipt.targets.iter().map(|target| match target {
        TargetRecord::Endpoint { model, .. } => model.as_str(),
        TargetRecord::Local { engine, .. } => engine.model.as_str(),
    });
    let models = Vec::from_iter(BTreeSet::from_iter(models));
    let named = first_of(&models, MOST_NAMED, ", ");
    let said =
        format!("Not the same model everywhere, or not in one format: {named}. Part of each difference is the model's");
    (models.len() > 1).then(|| Finding::warn(said))
}

/// Targets on the client's machine: they slow each other.
fn shared(view: &View<'_>) -> Option<Finding> {
    let is_here = |target: &&TargetRecord| match target {
        TargetRecord::Endpoint { url, .. } => is_of_this_machine(url),
        TargetRecord::Local { .. } => true,
    };
    let (here, cores) = (view.receipt.targets.iter().filter(is_here).count(), view.receipt.machine.logical_cores);
    let said = format!(
        "{here} targets and the client shared the {cores} cores of one machine: with more than one user each slowed the others"
    );
    (here >= 2 && cores > 0).then(|| Finding::warn(said))
}

/// Whether an address leads back to where it is asked from.
fn is_of_this_machine(url: &str) -> bool {
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|own| place.starts_with(own))
}

/// The best of several targets of a level by one figure, and the next.
struct Best<'a> {
    purpose: &'static str,
    figure: &'static str,
    metric: Metric,
    first: &'a Point,
    second: &'a Point,
    /// Whether the intervals of both medians lie apart, and those of all the others too.
    is_sure: bool,
}

pub fn uses(view: &View<'_>) -> Option<Section> {
    let uses = view.levels().flat_map(|points| USES.iter().filter_map(move |of_use| best(points, *of_use)));
    let table = view
        .lead(Rows::of("uses", "", uses), |best| best.first)
        .words("use", "use", |best| best.purpose)
        .words("figure", "figure that matters", |best| best.figure)
        .words("best", "best", |best| match best.is_sure {
            true => Cell::foreign(&view.target_name(best.first)),
            false => Cell::text("none: intervals overlap").toned(Tone::Warn),
        })
        .numbers("first", "P50 of the first", |best| median_cell(best.first, best.metric))
        .words("next", "next", |best| Cell::foreign(&view.target_name(best.second)))
        .numbers("second", "P50 of the next", |best| median_cell(best.second, best.metric))
        .table();
    Some(Section::new("load_uses", "Which figure matters for which use").with([ABOUT_USES]).with([table]))
}

/// Of the points that have a median; `None` with fewer than two.
fn best<'a>(points: &'a [Point], (purpose, figure, metric): (&'static str, &'static str, Metric)) -> Option<Best<'a>> {
    let mut known: Vec<(&Point, f64)> = points.iter().filter_map(|point| Some((point, point.p50(metric)?))).collect();
    known.sort_by(|a, b| if metric.is_rate() { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let [(first, _), (second, _), ..] = known[..] else { return None };
    let is_sure = known[1..].iter().all(|(other, _)| {
        let ends = first.spread(metric).p50_within.zip(other.spread(metric).p50_within);
        ends.is_some_and(|(one, other)| one.1 < other.0 || other.1 < one.0)
    });
    Some(Best { purpose, figure, metric, first, second, is_sure })
}

/// Two targets, by number, that answered prompts in common.
struct Agreement {
    scenario: u32,
    targets: (u32, u32),
    prompts: u64,
    /// Of these, those to which all answers of both were the same text.
    same: u64,
}

/// A line each two targets; nothing where no prompt went to two of them.
pub fn agreement(view: &View<'_>) -> Option<Section> {
    let target = |target: u32| Cell::foreign(&view.target(target as usize));
    let table = Rows::of("agreement", "", agreements(view.receipt))
        .words("scenario", "scenario", |pair| Cell::foreign(&view.scenario(pair.scenario as usize)))
        .words("first", "target", |pair| target(pair.targets.0))
        .words("second", "and target", |pair| target(pair.targets.1))
        .numbers("prompts", "prompts", |pair| pair.prompts)
        .about("of the dataset, that both answered")
        .numbers("same", "same answer", |pair| pair.same)
        .about("all answers of both, to the letter")
        .numbers("share", "share", |pair| {
            let share = Cell::of(pair.same as f64 / pair.prompts as f64, Unit::Fraction);
            share.within(clopper_pearson(pair.same, pair.prompts, 0.95))
        })
        .about("with its exact 95 % interval")
        .table();
    Some(Section::new("load_agreement", "Agreement of outputs").with([ABOUT_AGREEMENT]).with([table]))
}

/// What a target answered to a prompt: the hash of its answers; `None` where they differ among themselves.
type Answers<'a> = HashMap<u64, Option<&'a str>>;

/// Nothing without a dataset: made-up prompts are sent once.
fn agreements(receipt: &LoadReceipt) -> Vec<Agreement> {
    let Some(prompts) = receipt.dataset_prompts.filter(|prompts| *prompts > 0) else { return Vec::new() };
    let mut answers: BTreeMap<(u32, u32), Answers<'_>> = BTreeMap::new();
    for level in &receipt.levels {
        for record in level.requests.iter().filter(|record| record.failure.is_none()) {
            let Some(hash) = record.output_sha256.as_deref() else { continue };
            let of_target = answers.entry((level.scenario, record.target)).or_default();
            let known = of_target.entry(record.request % prompts).or_insert(Some(hash));
            *known = known.filter(|known| *known == hash);
        }
    }
    let mut found = Vec::new();
    for ((scenario, first), one) in &answers {
        let others = answers.range((*scenario, first + 1)..=(*scenario, u32::MAX));
        for ((_, second), other) in others {
            let both = || one.iter().filter_map(|(prompt, one)| Some((one, other.get(prompt)?)));
            let same = both().filter(|(one, other)| one.is_some() && one == other).count() as u64;
            let (targets, prompts) = ((*first, *second), both().count() as u64);
            found.push(Agreement { scenario: *scenario, targets, prompts, same });
        }
    }
    found.retain(|agreement| agreement.prompts > 0);
    found
}
