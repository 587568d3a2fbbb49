//! The verdict: a line a time, a counter and a trend of memory, and what else there is to say.

use std::collections::HashSet;

use super::changes::{MOST_SUBJECTS, changes};
use crate::inputs::Inputs;
use crate::model::{Cell, Missing, Rows, Section, Table, Tone, Unit};
use crate::words::provenance;
use crate::{units, words};
use infergate_receipts::{
    Counter, Evidence, Metric, Outcome, OutputComparison, Statistic, Throughput, ThroughputUnit, TimeEvidence,
    Unit as Counts, Verdict, VerdictRow,
};

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    // How often the gate is wrong stands with what was compared.
    let is_sure = provenance::how_sure(inputs).is_some();
    let remarks = words::remarks(verdict, |note| !(is_sure && provenance::is_of_errors(note)));
    let tables = [times(verdict).on_terminal(), trends(verdict).on_terminal(), counters(verdict)];
    Some(Section::new("verdict", "Verdict").on_terminal().with(tables).with([remarks]).with(changes(inputs)))
}

/// Whether a row decides something, or something moved.
fn notable(row: &VerdictRow) -> bool {
    let shown = row.time().is_some_and(|time| time.shown.is_some() && time.counted);
    let moved = matches!(row.outcome, Outcome::Improved | Outcome::Drifted | Outcome::Accepted);
    shown || moved || row.outcome.exit_code() != 0
}

pub fn case<E>((row, _): &(&VerdictRow, E)) -> String {
    row.subject.to_string()
}

fn outcome<E>((row, _): &(&VerdictRow, E)) -> Cell {
    Cell::text(words::ending(row)).toned(Tone::of(row.outcome))
}

/// The table with how each of its rows ended.
pub fn ended<E>(rows: Rows<(&VerdictRow, E)>) -> Table {
    rows.words("verdict", outcome).notable(|(row, _)| notable(row)).table()
}

/// A line a case, and one a mean that says more. Of many cases those where nothing moved fold.
fn times(verdict: &Verdict) -> Table {
    let rows = verdict.rows.iter().filter_map(|row| Some((row, row.time()?)));
    let says_more = |(row, time): &(&VerdictRow, &TimeEvidence)| time.statistic == Statistic::Median || notable(row);
    let rows: Vec<(&VerdictRow, &TimeEvidence)> = rows.filter(says_more).collect();
    let are_many = rows.iter().map(|(row, _)| &row.subject).collect::<HashSet<_>>().len() > MOST_SUBJECTS;
    // Every row of a run has an interval of the same level.
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::percent(interval.level));
    let title = level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"));
    let change = |ratio: Option<f64>| Cell::known(ratio.map(|ratio| ratio - 1.0), Unit::Change);
    let ns =
        |time: &TimeEvidence, ns| Cell::known(ns, Unit::PreciseNs(units::digits_of_change(time.base_ns, time.head_ns)));
    Rows::of("times", "Time", rows)
        .words("case", case)
        .words("metric", |(_, time)| words::figure(time))
        .numbers("base", |(_, time)| ns(time, time.base_ns))
        .about("over processes; of a baseline, over each day's newest session since its last step")
        .numbers("head", |(_, time)| ns(time, time.head_ns))
        .about("over processes; under load, over the level's requests")
        .words("throughput", |(_, time)| throughput(time))
        .titled_numbers("change", title, |(_, time)| words::change(time))
        .titled_numbers("fails_from", "fails from", |(_, time)| change(time.threshold))
        .titled_numbers("shows_from", "detectable from", |(_, time)| change(time.smallest_slowdown))
        .about("the smallest slowdown that a run this noisy finds 19 times out of 20")
        .detail()
        .numbers("blocks", |(_, time)| Cell::known(time.blocks, Unit::Count))
        .about("fresh processes or servers of each side")
        .detail()
        .numbers("sessions", |(_, time)| Cell::known(time.sessions, Unit::Count))
        .about("of the baseline, since its last step")
        .detail()
        .numbers("days", |(_, time)| Cell::known(time.days, Unit::Count))
        .detail()
        .titled_numbers("of_hardware", "of hardware", |(_, time)| {
            time.limit_fraction.map_or("".into(), |share| of_hardware(Some(share)))
        })
        .about("the least possible time on this hardware / head")
        .words("output", |(row, time)| output_of(verdict, row, time))
        .words("verdict", outcome)
        .notable(|(row, _)| notable(row) || !are_many)
        .table()
        .folding()
}

/// A share of the hardware's limit, unless a probe saw less than the hardware gives.
pub fn of_hardware(fraction: Option<f64>) -> Cell {
    if fraction.is_some_and(|fraction| fraction > 1.0) {
        return Cell::Missing(Missing::BeyondHardware);
    }
    Cell::number(fraction, Unit::Fraction, Missing::NoProbes)
}

/// What has no noise beside outputs.
fn counters(verdict: &Verdict) -> Table {
    let rows = verdict.rows.iter();
    let rows =
        rows.filter_map(|row| if let Evidence::Counter(found) = &row.evidence { Some((row, found)) } else { None });
    let value = |counter: Option<Counter>, unit| {
        counter.map_or(Cell::Missing(Missing::NotMeasured), |counter| counter_cell(counter, unit))
    };
    let rows = Rows::of("counters", "Counters", rows)
        .words("case", case)
        .words("counter", |(_, counter)| words::counter::name(&counter.name))
        .numbers("base", |(_, counter)| value(counter.base, counter.unit))
        .numbers("head", |(_, counter)| value(counter.head, counter.unit))
        .numbers("change", |(_, counter)| {
            // Blank where head is neither above all that base had nor below all of it.
            let change = words::counter::apart(counter).map(|(from, to)| to as f64 - from as f64);
            Cell::known(change, if counter.unit == Counts::Bytes { Unit::BytesMore } else { Unit::CountMore })
        });
    ended(rows).folding()
}

/// A counter: its largest value, and its range where it does not repeat.
pub fn counter_cell(counter: Counter, unit: Counts) -> Cell {
    let ends = (counter.min != counter.max).then_some((counter.min as f64, counter.max as f64));
    Cell::of(counter.max, if unit == Counts::Bytes { Unit::Bytes } else { Unit::Count }).within(ends)
}

fn trends(verdict: &Verdict) -> Table {
    let rows = verdict.rows.iter().filter_map(|row| Some((row, row.memory()?)));
    let bytes = |value: Option<f64>| Cell::known(value, Unit::BytesPerRun);
    let rows = Rows::of("trends", "Memory over many runs", rows)
        .words("case", case)
        .titled_words("measure", "seen in", |(_, memory)| memory.measure.words())
        .titled_numbers("slope", "growth", |(_, memory)| match memory.count_per_run {
            Some(count) => Cell::of(count, Unit::Plain),
            None => bytes(memory.slope_bytes),
        })
        .titled_numbers("counts_from", "noise floor", |(_, memory)| bytes(memory.floor_bytes))
        .about("growth below this is not distinguished from noise; what is counted has none")
        .titled_numbers("smallest_leak", "smallest detectable leak", |(_, memory)| bytes(memory.smallest_leak_bytes));
    ended(rows)
}

/// How the output of a row's case compares, in a word; what stands below the median that counts has none of its own.
fn output_of(verdict: &Verdict, row: &VerdictRow, time: &TimeEvidence) -> Cell {
    let is_main = time.counted && time.statistic == Statistic::Median;
    let mut rows = verdict.rows.iter().filter(|other| is_main && other.subject == row.subject);
    let found = rows.find_map(|row| match &row.evidence {
        Evidence::Output(output) if output.comparison != OutputComparison::NotGiven => {
            Some(Cell::text(words::output(row, output)).toned(Tone::of(row.outcome)))
        }
        _ => None,
    });
    found.unwrap_or("".into())
}

/// What was got through in a second; of all users under load, base's and head's.
fn throughput(time: &TimeEvidence) -> Cell {
    let rate = |ns: f64| units::tokens_per_s(1e9 / ns);
    match (time.metric, time.base_ns, time.head_ns, time.throughput) {
        (Metric::SystemToken, Some(base), Some(head), _) => Cell::text(units::base_to_head(rate, base, head)),
        (.., Some(head_ns), Some(Throughput { per_iteration, unit })) => {
            let unit = if unit == ThroughputUnit::Bytes { Unit::BytesPerS } else { Unit::PerS };
            Cell::of(per_iteration as f64 * 1e9 / head_ns, unit)
        }
        _ => Cell::text(""),
    }
}
