//! The verdict: a line a time, a line an exact number that moved or failed, and what else there is to say.

use std::collections::HashSet;

use super::blocks::{MOST_SUBJECTS, changes};
use crate::inputs::Inputs;
use crate::model::{Cell, Column, Missing, Row, Section, Table, Tone, Unit};
use crate::words::look;
use crate::{units, words};
use infergate_receipts::{
    Against, Counter, CounterEvidence, Evidence, MemoryEvidence, Metric, Outcome, OutputComparison, OutputEvidence,
    Statistic, TimeEvidence, Unit as Counts, Verdict, VerdictRow, Witness,
};

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    // Targets have a section of their own.
    let is_target = |row: &&VerdictRow| matches!(row.evidence, Evidence::Target(_));
    let mut said = words::remarks(verdict.rows.iter().filter(|row| !is_target(row)));
    // How often the gate is wrong stands with what was compared.
    let is_sure = look::how_sure(inputs).is_some();
    let notes = verdict.notes.iter().filter(|note| !(is_sure && look::is_of_errors(note)));
    said.extend(notes.map(words::note));
    let tables = [times(verdict, |_| true), exact(verdict), trends(verdict)];
    Some(Section::new("verdict", "Verdict").with(tables).with([said]).with(changes(inputs)))
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

fn timed(verdict: &Verdict) -> Vec<(&VerdictRow, &TimeEvidence)> {
    verdict.rows.iter().filter_map(|row| Some((row, row.time()?))).collect()
}

/// The rows of times in the order of the verdict; of many subjects, what fails first, then what moved.
fn sorted(verdict: &Verdict) -> (Vec<(&VerdictRow, &TimeEvidence)>, bool) {
    let mut rows = timed(verdict);
    let are_many = rows.iter().map(|(row, _)| &row.subject).collect::<HashSet<_>>().len() > MOST_SUBJECTS;
    if are_many {
        let moved = |time: &TimeEvidence| time.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let is_quiet = |row: &VerdictRow| (row.outcome.exit_code() == 0, !notable(row));
        rows.sort_by(|(one, a), (other, b)| {
            is_quiet(one).cmp(&is_quiet(other)).then_with(|| moved(b).total_cmp(&moved(a)))
        });
    }
    (rows, are_many)
}

/// Every row of a run has an interval of the same level.
fn change_heading(rows: &[(&VerdictRow, &TimeEvidence)]) -> String {
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::level(interval.level));
    level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"))
}

fn times(verdict: &Verdict, is_shown: impl Fn(&VerdictRow) -> bool) -> Table {
    let (mut rows, are_many) = sorted(verdict);
    rows.retain(|(row, _)| is_shown(row));
    let paired = rows.iter().any(|(_, time)| time.against != Against::Baseline);
    let on_load = !paired && rows.iter().any(|(_, time)| time.metric == Metric::SystemToken);
    let mut columns = vec![
        Column::words("case", "case"),
        Column::words("metric", "metric"),
        Column::numbers("base", "base").about(if paired {
            "estimate over base's processes (Hodges and Lehmann's, as the change) of each one's median, or mean"
        } else {
            "mean over the days of the baseline's sessions since its last step, of the median of each day's newest"
        }),
        Column::numbers("head", "head").about(if on_load {
            "median over the level's requests, or of all its gaps"
        } else {
            "the same of head; judged by a baseline the median over its processes of each one's median"
        }),
        Column::words("throughput", "throughput"),
        Column::numbers("change", change_heading(&rows)).about(
            "how much longer head takes; in a paired run from pairs in the same block, so it is not head / base of \
             the columns before",
        ),
    ];
    let limit = |title: &str| Column::numbers("fails_from", title).about("the limit");
    if paired {
        let shows = "the smallest slowdown that a run this noisy finds 19 times out of 20";
        let blocks = "fresh processes of each side, or the next of the servers that ran already";
        columns.extend([
            limit("fails from").detail(),
            Column::numbers("shows_from", "shows from").about(shows).detail(),
            Column::numbers("blocks", "blocks").about(blocks).detail(),
        ]);
    } else {
        columns.push(limit("fails above"));
    }
    if on_load {
        columns.push(Column::numbers("sessions", "sessions").about("of the baseline, since its last step"));
        columns.push(Column::numbers("days", "days").about("that these are of"));
    } else if !paired {
        columns.push(
            Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / head"),
        );
    }
    columns.extend([Column::words("output", "output"), Column::words("verdict", "verdict")]);
    let mut table = Table::new("times", "Time", columns);
    for (row, time) in rows {
        let none = if row.outcome == Outcome::Advisory { Missing::NoLimit } else { Missing::NotGiven };
        let limit = |ratio: Option<f64>| Cell::number(ratio.map(|r| r - 1.0), Unit::Change, none);
        let mut cells = vec![
            Cell::text(row.subject.to_string()),
            Cell::text(words::measure(time)),
            Cell::number(time.base_ns, Unit::Ns, Missing::NoBase),
            Cell::number(time.head_ns, Unit::Ns, Missing::NotMeasured),
            throughput(time),
            changed(time),
            limit(time.threshold),
        ];
        if paired {
            cells.push(limit(time.smallest_slowdown));
            cells.push(Cell::number(time.blocks.map(|n| n as f64), Unit::Count, Missing::NotGiven));
        } else if on_load {
            for count in [time.sessions, time.days] {
                cells.push(Cell::number(count.map(|n| n as f64), Unit::Count, Missing::NoBase));
            }
        } else {
            cells.push(of_hardware(time.limit_fraction));
        }
        cells.extend([output_of(verdict, row, time), outcome(row)]);
        table.notable_row(cells, notable(row));
    }
    if are_many { table.folding() } else { table }
}

fn changed(time: &TimeEvidence) -> Cell {
    let ends = time.interval.map(|interval| (interval.low - 1.0, interval.high - 1.0));
    Cell::number(time.ratio.map(|ratio| ratio - 1.0), Unit::Change, Missing::NoBase).within(ends)
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
        let (what, base, head, change) = match &row.evidence {
            Evidence::Output(output) => {
                (Cell::text("output"), token(output, output.base_id), other(output), Cell::text(""))
            }
            Evidence::Counter(counter) => (
                counter_name(&counter.name),
                counted(counter, counter.base),
                counted(counter, counter.head),
                moved(counter),
            ),
            _ => continue,
        };
        let said = match &row.evidence {
            Evidence::Output(output) => said_of_output(row, output),
            _ => outcome(row),
        };
        table.notable_row(vec![Cell::text(row.subject.to_string()), what, base, head, change, said], notable(row));
    }
    table.folding()
}

/// The token at which outputs part, as words: an id is no quantity.
fn token(output: &OutputEvidence, id: Option<u32>) -> Cell {
    match (output.position, id) {
        (Some(position), Some(id)) => Cell::text(format!("token {} is {id}", position + 1)),
        (Some(position), None) => Cell::text(format!("no token {}", position + 1)),
        (None, _) => Cell::text(""),
    }
}

/// Head's token there, or by how much its numbers differ where the tokens are the same.
fn other(output: &OutputEvidence) -> Cell {
    let is_other = matches!(output.comparison, OutputComparison::Changed | OutputComparison::Drifted);
    match words::logits(output).filter(|_| is_other && output.position.is_none()) {
        Some(differ) => Cell::text(differ),
        None => token(output, output.head_id),
    }
}

fn counted(evidence: &CounterEvidence, counter: Option<Counter>) -> Cell {
    let unit = if evidence.unit == Counts::Bytes { Unit::Bytes } else { Unit::Count };
    counter.map_or(Cell::Missing(Missing::NotCounted), |counter| counter_cell(counter, unit))
}

/// A counter's name, as people say it; of one that an engine counts itself, the engine's.
pub fn counter_name(name: &str) -> Cell {
    words::counter::known(name).map_or_else(|| Cell::foreign(name), Cell::text)
}

/// By how much head is above all that base had, or below all of it; blank where it is neither.
fn moved(counter: &CounterEvidence) -> Cell {
    let unit = if counter.unit == Counts::Bytes { Unit::BytesMore } else { Unit::CountMore };
    let change = words::counter::apart(counter).map(|(from, to)| to as f64 - from as f64);
    change.map_or_else(|| Cell::text(""), |change| Cell::of(change, unit))
}

/// A counter: its largest value, and its range where it does not repeat.
pub fn counter_cell(counter: Counter, unit: Unit) -> Cell {
    let ends = (counter.min != counter.max).then_some((counter.min as f64, counter.max as f64));
    Cell::of(counter.max as f64, unit).within(ends)
}

pub fn trends(verdict: &Verdict) -> Table {
    let columns = vec![
        Column::words("case", "case"),
        Column::words("witness", "seen in"),
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
        Cell::text(words::witness(memory.witness)),
        memory
            .count_per_run
            .map_or(bytes(memory.slope_bytes, Missing::NotMeasured), |count| Cell::of(count, Unit::Plain)),
        bytes(memory.floor_bytes, if memory.witness == Witness::Heap { Missing::Exact } else { Missing::NotGiven }),
        bytes(memory.smallest_leak_bytes, Missing::NotGiven),
        outcome(row),
    ]
}

/// As a terminal shows it: a line a case, but for means that say more; what folds is one line that says how many, between which changes, and how they ended.
pub fn brief(verdict: &Verdict) -> Table {
    let is_shown =
        |row: &VerdictRow| notable(row) || row.time().is_some_and(|time| time.statistic == Statistic::Median);
    let mut table = times(verdict, is_shown).for_terminal();
    let others = table.rows.split_off(table.parts().0.len());
    if !others.is_empty() {
        let at = table.columns.iter().position(|column| column.id == "change");
        let changed = |row: &Row| Some(row.cells.get(at?)?.quantity()?.value);
        let changes = || others.iter().filter_map(changed);
        let mut endings: Vec<String> = others.iter().filter_map(|row| Some(row.cells.last()?.shown())).collect();
        endings.sort_unstable();
        endings.dedup();
        let cell = |column: &Column| match column.id {
            "case" => Cell::text(format!("{} others", others.len())),
            "change" if changes().count() > 0 => {
                let (least, most) =
                    (changes().fold(f64::INFINITY, f64::min), changes().fold(f64::NEG_INFINITY, f64::max));
                Cell::text(format!("{} to {}", Unit::Change.show(least), Unit::Change.show(most)))
            }
            "verdict" => Cell::text(endings.join(", ")),
            _ => Cell::text(""),
        };
        let cells = table.columns.iter().map(|column| cell(column).toned(Tone::Dim)).collect();
        table.row(cells);
    }
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
    output.unwrap_or(Cell::Missing(Missing::NotGiven))
}

/// What was got through in a second; of all users under load, base's and head's.
fn throughput(time: &TimeEvidence) -> Cell {
    let rate = |ns: f64| units::tokens_per_s(Some(1e9 / ns));
    match (time.metric, time.base_ns.zip(time.head_ns), time.throughput) {
        (Metric::SystemToken, Some((base, head)), _) => Cell::text(units::from_to(&rate(base), &rate(head))),
        (_, _, Some(_)) => Cell::text(units::throughput(time.throughput, time.head_ns)),
        _ => Cell::Missing(Missing::NotGiven),
    }
}

/// How the output compares, in a word.
fn said_of_output(row: &VerdictRow, output: &OutputEvidence) -> Cell {
    Cell::text(words::output(row, output)).toned(Tone::of(row.outcome))
}
