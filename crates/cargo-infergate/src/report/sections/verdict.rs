//! The verdict: a line a time, a line an exact number that moved or failed, and what else there is to say.

use crate::receipt::{
    Against, Counter, CounterEvidence, Evidence, MemoryEvidence, Metric, Outcome, OutputComparison, OutputEvidence,
    TimeEvidence, Unit as Counts, Verdict, VerdictRow, Witness,
};
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};
use crate::report::words::look;
use crate::report::{terminal, units, words};

/// What the gate decided, and on what.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    let mut section = Section::new("verdict", "Verdict");
    for table in [times(verdict), exact(verdict), trends(verdict)] {
        if !table.rows.is_empty() {
            section = section.with(table);
        }
    }
    // Targets have a section of their own.
    let is_target = |row: &&VerdictRow| matches!(row.evidence, Evidence::Target(_));
    let rows: Vec<VerdictRow> = verdict.rows.iter().filter(|row| !is_target(row)).cloned().collect();
    let mut said = terminal::remarks(&rows);
    // How often the gate is wrong stands with what was compared.
    let is_sure = look::how_sure(inputs).is_some();
    let notes = verdict.notes.iter().filter(|note| !(is_sure && look::is_of_errors(note)));
    said.extend(notes.map(words::note));
    if !said.is_empty() {
        section = section.with(Block::List(said));
    }
    (!section.blocks.is_empty()).then_some(section)
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

fn times(verdict: &Verdict) -> Table {
    let rows: Vec<(&VerdictRow, &TimeEvidence)> =
        verdict.rows.iter().filter_map(|row| Some((row, row.time()?))).collect();
    let paired = rows.iter().any(|(_, time)| time.against != Against::Baseline);
    let on_load = !paired && rows.iter().any(|(_, time)| time.metric == Metric::SystemToken);
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::level(interval.level));
    let change = level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"));
    let mut columns = vec![
        Column::words("case", "case"),
        Column::words("metric", "metric"),
        Column::numbers("base", "base").about(if paired {
            "median over base's processes of each one's median"
        } else {
            "mean over the days of the baseline's sessions, of the median of each day's newest"
        }),
        Column::numbers("head", "head").about(if on_load {
            "median over the level's requests, or of all its gaps"
        } else {
            "median over head's processes of each one's median"
        }),
        Column::numbers("change", change).about(
            "how much longer head takes; in a paired run from pairs in the same block, so it is not head / base of \
             the columns before",
        ),
        Column::numbers("fails_from", if paired { "fails from" } else { "fails above" }).about("the limit"),
    ];
    if paired {
        columns.push(
            Column::numbers("shows_from", "shows from")
                .about("the smallest slowdown this run calls 19 times out of 20"),
        );
        columns.push(
            Column::numbers("blocks", "blocks")
                .about("fresh processes of each side, or the next of the servers that ran already"),
        );
    } else if on_load {
        columns.push(Column::numbers("sessions", "sessions").about("of the baseline"));
        columns.push(Column::numbers("days", "days").about("that these are of; the limit is from their spread"));
    } else {
        columns.push(
            Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / head"),
        );
    }
    columns.push(Column::words("verdict", "verdict"));
    let mut table = Table::new("times", "Time", columns);
    for (row, time) in rows {
        let none = if row.outcome == Outcome::Advisory { Missing::NoLimit } else { Missing::NotGiven };
        let limit = |ratio: Option<f64>| Cell::number(ratio.map(|r| r - 1.0), Unit::Change, none);
        let mut cells = vec![
            Cell::text(words::compared(row, time)),
            Cell::text(words::measure(time)),
            Cell::number(time.base_ns, Unit::Ns, Missing::NoBase),
            Cell::number(time.head_ns, Unit::Ns, Missing::NotMeasured),
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
        cells.push(outcome(row));
        table.notable_row(cells, notable(row));
    }
    table
}

fn changed(time: &TimeEvidence) -> Cell {
    let change = time.ratio.and_then(|ratio| Quantity::new(ratio - 1.0, Unit::Change));
    let ends = time.interval.map(|interval| (interval.low - 1.0, interval.high - 1.0));
    change.map_or(Cell::Missing(Missing::NoBase), |change| Cell::Number(change.within(ends), Tone::Plain))
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
    let mut table = Table::new(
        "exact",
        "Output and counters",
        vec![
            Column::words("case", "case"),
            Column::words("what", "what"),
            Column::numbers("base", "base"),
            Column::numbers("head", "head"),
            Column::numbers("change", "change"),
            Column::words("verdict", "verdict"),
        ],
    );
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
            Evidence::Output(output) => Cell::text(words::output(row, output)).toned(Tone::of(row.outcome)),
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
    match output.max_abs_logit_delta.filter(|_| is_other && output.position.is_none()) {
        Some(delta) => Cell::text(format!("a logit differs by {delta:.1e}")),
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
    let change = words::counter::apart(counter).and_then(|(from, to)| Quantity::new(to as f64 - from as f64, unit));
    change.map_or_else(|| Cell::text(""), |change| Cell::Number(change, Tone::Plain))
}

/// A counter: its largest value, and its range where it does not repeat.
pub fn counter_cell(counter: Counter, unit: Unit) -> Cell {
    let ends = (counter.min != counter.max).then_some((counter.min as f64, counter.max as f64));
    Quantity::new(counter.max as f64, unit)
        .map_or(Cell::Missing(Missing::NotCounted), |count| Cell::Number(count.within(ends), Tone::Plain))
}

fn trends(verdict: &Verdict) -> Table {
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
        bytes(memory.slope_bytes, Missing::NotMeasured),
        bytes(memory.floor_bytes, if memory.witness == Witness::Heap { Missing::Exact } else { Missing::NotGiven }),
        bytes(memory.smallest_leak_bytes, Missing::NotGiven),
        outcome(row),
    ]
}
