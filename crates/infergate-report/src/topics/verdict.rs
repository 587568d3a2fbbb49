//! The verdict: a line a time, a line an exact number that moved or failed, and what else there is to say.

use std::collections::{BTreeSet, HashSet};

use super::blocks::{MOST_SUBJECTS, changes};
use crate::inputs::Inputs;
use crate::model::{Cell, Column, Missing, Section, Table, Tone, Unit};
use crate::words::provenance;
use crate::{units, words};
use infergate_receipts::{
    Counter, Evidence, MemoryEvidence, MemoryMeasure, Metric, Outcome, OutputComparison, OutputEvidence, Statistic,
    TimeEvidence, Unit as Counts, Verdict, VerdictRow,
};

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    // How often the gate is wrong stands with what was compared.
    let is_sure = provenance::how_sure(inputs).is_some();
    let remarks = words::remarks(verdict, |note| !(is_sure && provenance::is_of_errors(note)));
    let tables = [times(verdict, |_| true), exact(verdict), trends(verdict)];
    Some(Section::new("verdict", "Verdict").with(tables).with([remarks]).with(changes(inputs)))
}

/// Whether a row is shown where there is room for little: it decides something, or something moved.
fn notable(row: &VerdictRow) -> bool {
    let shown = row.time().is_some_and(|time| time.shown.is_some() && time.counted);
    let moved = matches!(row.outcome, Outcome::Improved | Outcome::Drifted | Outcome::Accepted);
    shown || moved || row.outcome.exit_code() != 0
}

fn outcome(row: &VerdictRow) -> Cell {
    Cell::text(words::ending(row)).toned(Tone::of(row.outcome))
}

/// The rows of times that are shown; of many subjects, what fails first, then what moved, and the others fold.
fn times(verdict: &Verdict, is_shown: impl Fn(&VerdictRow) -> bool) -> Table {
    let rows = verdict.rows.iter().filter(|row| is_shown(row));
    let mut rows: Vec<(&VerdictRow, &TimeEvidence)> = rows.filter_map(|row| Some((row, row.time()?))).collect();
    let are_many = rows.iter().map(|(row, _)| &row.subject).collect::<HashSet<_>>().len() > MOST_SUBJECTS;
    if are_many {
        rows.sort_by_key(|(row, _)| row.outcome.exit_code() == 0);
    }
    // Every row of a run has an interval of the same level.
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::precise(interval.level));
    let change = level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"));
    let columns = vec![
        Column::words("case", "case"),
        Column::words("metric", "metric"),
        Column::numbers("base", "base").about(
            "paired: the estimate over base's processes (Hodges and Lehmann's, as the change) of each one's median, or mean; stored: the \
             mean over the days of the baseline's sessions since its last step, of the median of each day's newest",
        ),
        Column::numbers("head", "head").about("the same of head; under load the median over the level's requests"),
        Column::words("throughput", "throughput"),
        Column::numbers("change", change).about(
            "how much longer head takes; in a paired run from pairs in the same block, so it is not head / base of \
             the columns before",
        ),
        Column::numbers("fails_from", "fails from").about("the limit"),
        Column::numbers("shows_from", "shows from")
            .about("the smallest slowdown that a run this noisy finds 19 times out of 20")
            .detail(),
        Column::numbers("blocks", "blocks")
            .about("fresh processes of each side, or the next of the servers that ran already")
            .detail(),
        Column::numbers("sessions", "sessions").about("of the baseline, since its last step").detail(),
        Column::numbers("days", "days").about("that these are of").detail(),
        Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / head"),
        Column::words("output", "output"),
        Column::words("verdict", "verdict"),
    ];
    let mut table = Table::new("times", "Time", columns);
    for (row, time) in rows {
        let change = |ratio: Option<f64>| Cell::known(ratio.map(|ratio| ratio - 1.0), Unit::Change);
        let count = |count: Option<usize>| Cell::known(count.map(|count| count as f64), Unit::Count);
        let of_hardware = time.limit_fraction.map_or(Cell::text(""), |fraction| of_hardware(Some(fraction)));
        let cells = vec![
            Cell::text(row.subject.to_string()),
            Cell::text(words::measure(time)),
            Cell::number(time.base_ns, Unit::Ns, Missing::NoBase),
            Cell::number(time.head_ns, Unit::Ns, Missing::NotMeasured),
            throughput(time),
            words::change(time),
            change(time.threshold),
            change(time.smallest_slowdown),
            count(time.blocks),
            count(time.sessions),
            count(time.days),
            of_hardware,
            output_of(verdict, row, time),
            outcome(row),
        ];
        table.notable_row(cells, notable(row));
    }
    if are_many { table.folding() } else { table }
}

/// A share of the hardware's limit, unless a probe saw less than the hardware gives.
pub fn of_hardware(fraction: Option<f64>) -> Cell {
    if fraction.is_some_and(|fraction| fraction > 1.0) {
        return Cell::Missing(Missing::BeyondHardware);
    }
    Cell::number(fraction, Unit::Fraction, Missing::NoProbes)
}

/// What has no noise: outputs, and counters.
fn exact(verdict: &Verdict) -> Table {
    let columns = vec![
        Column::words("case", "case"),
        Column::words("what", "what"),
        Column::numbers("base", "base"),
        Column::numbers("head", "head"),
        Column::numbers("change", "change"),
        Column::words("verdict", "verdict"),
    ];
    let mut table = Table::new("exact", "Output and counters", columns);
    for row in &verdict.rows {
        let case = Cell::text(row.subject.to_string());
        let cells = match &row.evidence {
            Evidence::Output(output) => {
                let differs = Cell::text(words::differs(row, output).unwrap_or_default());
                vec![case, Cell::text("output"), Cell::text(""), differs, Cell::text(""), said_of_output(row, output)]
            }
            Evidence::Counter(counter) => {
                let is_bytes = counter.unit == Counts::Bytes;
                let (unit, more) =
                    if is_bytes { (Unit::Bytes, Unit::BytesMore) } else { (Unit::Count, Unit::CountMore) };
                let counted = |side: Option<Counter>| {
                    side.map_or(Cell::Missing(Missing::NotCounted), |counter| counter_cell(counter, unit))
                };
                // Blank where head is neither above all that base had nor below all of it.
                let change = words::counter::apart(counter).map(|(from, to)| to as f64 - from as f64);
                let (base, head) = (counted(counter.base), counted(counter.head));
                vec![case, counter_name(&counter.name), base, head, Cell::known(change, more), outcome(row)]
            }
            _ => continue,
        };
        table.notable_row(cells, notable(row));
    }
    table.folding()
}

/// A counter's name, as people say it; of one that an engine counts itself, the engine's.
pub fn counter_name(name: &str) -> Cell {
    words::counter::known(name).map_or_else(|| Cell::foreign(name), Cell::text)
}

/// A counter: its largest value, and its range where it does not repeat.
pub fn counter_cell(counter: Counter, unit: Unit) -> Cell {
    let ends = (counter.min != counter.max).then_some((counter.min as f64, counter.max as f64));
    Cell::of(counter.max as f64, unit).within(ends)
}

pub fn trends(verdict: &Verdict) -> Table {
    let columns = vec![
        Column::words("case", "case"),
        Column::words("measure", "seen in"),
        Column::numbers("slope", "growth"),
        Column::numbers("counts_from", "counts from").about("growth below this is not told apart from noise"),
        Column::numbers("smallest_leak", "smallest leak to be seen"),
        Column::words("verdict", "verdict"),
    ];
    let mut table = Table::new("trends", "Memory over many runs", columns);
    for row in &verdict.rows {
        if let Evidence::Memory(memory) = &row.evidence {
            table.notable_row(trend(row, memory), notable(row));
        }
    }
    table
}

fn trend(row: &VerdictRow, memory: &MemoryEvidence) -> Vec<Cell> {
    let bytes = |value: Option<f64>, missing| Cell::number(value, Unit::BytesPerRun, missing);
    vec![
        Cell::text(row.subject.to_string()),
        Cell::text(words::memory_measure(memory.measure)),
        memory
            .count_per_run
            .map_or(bytes(memory.slope_bytes, Missing::NotMeasured), |count| Cell::of(count, Unit::Plain)),
        bytes(
            memory.floor_bytes,
            if memory.measure == MemoryMeasure::Heap { Missing::Exact } else { Missing::NotGiven },
        ),
        bytes(memory.smallest_leak_bytes, Missing::NotGiven),
        outcome(row),
    ]
}

/// As a terminal shows it: a line a case, but for means that say more; what folds is one line that says how many, between which changes,
/// and how they ended.
pub fn brief(verdict: &Verdict) -> Table {
    let is_shown =
        |row: &VerdictRow| notable(row) || row.time().is_some_and(|time| time.statistic == Statistic::Median);
    let mut table = Table { title: String::new(), note: None, ..times(verdict, is_shown).for_terminal() };
    let others = table.rows.split_off(table.parts().0.len());
    if others.is_empty() {
        return table;
    }
    let values = |id: &str| {
        let at = table.columns.iter().position(|column| column.id == id);
        others.iter().filter_map(move |row| row.cells.get(at?)).collect::<Vec<&Cell>>()
    };
    let mut changes: Vec<f64> = values("change").iter().filter_map(|cell| Some(cell.quantity()?.value)).collect();
    changes.sort_by(f64::total_cmp);
    let range = changes.first().zip(changes.last());
    let range = range.map(|(least, most)| format!("{} to {}", Unit::Change.show(*least), Unit::Change.show(*most)));
    let endings: BTreeSet<String> = values("verdict").iter().map(|cell| cell.shown()).collect();
    let cell = |column: &Column| match column.id {
        "case" => format!("{} others", others.len()),
        "change" => range.clone().unwrap_or_default(),
        "verdict" => endings.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    };
    let cells = table.columns.iter().map(|column| Cell::text(cell(column)).toned(Tone::Dim)).collect();
    table.row(cells);
    table
}

/// How the output of a row's case compares; what stands below the median that counts has none of its own.
fn output_of(verdict: &Verdict, row: &VerdictRow, time: &TimeEvidence) -> Cell {
    let output = verdict.rows.iter().find_map(|other| match &other.evidence {
        Evidence::Output(output) if other.subject == row.subject => Some((other, output)),
        _ => None,
    });
    let output = output.filter(|(_, output)| output.comparison != OutputComparison::NotGiven);
    let output = output.map(|(other, output)| said_of_output(other, output));
    let output = output.filter(|_| time.counted && time.statistic == Statistic::Median);
    output.unwrap_or(Cell::text(""))
}

/// What was got through in a second; of all users under load, base's and head's.
fn throughput(time: &TimeEvidence) -> Cell {
    let rate = |ns: f64| units::tokens_per_s(Some(1e9 / ns));
    match (time.metric, time.base_ns.zip(time.head_ns), time.throughput) {
        (Metric::SystemToken, Some((base, head)), _) => Cell::text(units::from_to(&rate(base), &rate(head))),
        (_, _, Some(_)) => Cell::text(units::throughput(time.throughput, time.head_ns)),
        _ => Cell::text(""),
    }
}

/// How the output compares, in a word.
fn said_of_output(row: &VerdictRow, output: &OutputEvidence) -> Cell {
    Cell::text(words::output(row, output)).toned(Tone::of(row.outcome))
}
