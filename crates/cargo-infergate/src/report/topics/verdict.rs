//! The verdict: a line a time, a line an exact number that moved or failed, and what else there is to say.

use crate::receipt::{
    Against, Counter, CounterEvidence, Evidence, MemoryEvidence, Metric, Outcome, OutputComparison, OutputEvidence,
    Statistic, Subject, TimeEvidence, Unit as Counts, Verdict, VerdictRow, Witness,
};
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Missing, Section, Table, Tone, Unit};
use crate::report::words::look;
use crate::report::{terminal, units, words};

/// Of more subjects, those that failed come first, then those that moved, and the others are one line or folded.
pub const MOST_SUBJECTS: usize = 30;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    // Targets have a section of their own.
    let is_target = |row: &&VerdictRow| matches!(row.evidence, Evidence::Target(_));
    let rows: Vec<VerdictRow> = verdict.rows.iter().filter(|row| !is_target(row)).cloned().collect();
    let mut said = words::remarks(&rows);
    // How often the gate is wrong stands with what was compared.
    let is_sure = look::how_sure(inputs).is_some();
    let notes = verdict.notes.iter().filter(|note| !(is_sure && look::is_of_errors(note)));
    said.extend(notes.map(words::note));
    let tables = [times(verdict), exact(verdict), trends(verdict)];
    Some(Section::new("verdict", "Verdict").with(tables).with([said]).with(super::blocks::changes(inputs)))
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

/// A subject's rows of times, in the order of the verdict.
struct Measured<'a> {
    rows: Vec<(&'a VerdictRow, &'a TimeEvidence)>,
    /// Whether its rows are shown where there are many subjects.
    notable: bool,
}

/// The rows of times by subject; of many, the worst first.
fn by_subject(verdict: &Verdict) -> Vec<Measured<'_>> {
    let mut subjects: Vec<Measured<'_>> = Vec::new();
    for (row, time) in timed(verdict) {
        let shown = notable(row);
        match subjects.last_mut().filter(|last| last.rows[0].0.subject == row.subject) {
            Some(last) => {
                last.rows.push((row, time));
                last.notable |= shown;
            }
            None => subjects.push(Measured { rows: vec![(row, time)], notable: shown }),
        }
    }
    if subjects.len() > MOST_SUBJECTS {
        let quiet = |subject: &Measured<'_>| {
            let fails = subject.rows.iter().any(|(row, _)| row.outcome.exit_code() != 0);
            (!fails, !subject.notable)
        };
        let moved = |subject: &Measured<'_>| subject.rows[0].1.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        subjects.sort_by(|one, other| quiet(one).cmp(&quiet(other)).then_with(|| moved(other).total_cmp(&moved(one))));
    } else {
        subjects.iter_mut().for_each(|subject| subject.notable = true);
    }
    subjects
}

/// Every row of a run has an interval of the same level.
fn change_heading(rows: &[(&VerdictRow, &TimeEvidence)]) -> String {
    let level = rows.iter().find_map(|(_, time)| time.interval).map(|interval| units::level(interval.level));
    level.map_or_else(|| "change".into(), |level| format!("change ({level} interval)"))
}

fn times(verdict: &Verdict) -> Table {
    let rows = timed(verdict);
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
        Column::numbers("change", change_heading(&rows)).about(
            "how much longer head takes; in a paired run from pairs in the same block, so it is not head / base of \
             the columns before",
        ),
        Column::numbers("fails_from", if paired { "fails from" } else { "fails above" }).about("the limit"),
    ];
    if paired {
        columns.push(
            Column::numbers("shows_from", "shows from")
                .about("the smallest slowdown this run calls 19 times out of 20; the luck of layout is in it where it was measured"),
        );
        columns.push(
            Column::numbers("blocks", "blocks")
                .about("fresh processes of each side, or the next of the servers that ran already"),
        );
    } else if on_load {
        columns.push(Column::numbers("sessions", "sessions").about("of the baseline, since its last step"));
        columns.push(Column::numbers("days", "days").about("that these are of"));
    } else {
        columns.push(
            Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / head"),
        );
    }
    columns.push(Column::words("verdict", "verdict"));
    let mut table = Table::new("times", "Time", columns);
    let subjects = by_subject(verdict);
    for (row, time) in subjects.iter().flat_map(|subject| &subject.rows) {
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
    if subjects.len() > MOST_SUBJECTS { table.folding() } else { table }
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

/// For a terminal: a line a time, with the output of its case or, of a load run, with what it is compared with.
pub fn brief(verdict: &Verdict, of_load: bool) -> Table {
    let rows = timed(verdict);
    let paired = rows.iter().any(|(_, time)| time.against != Against::Baseline);
    let through = rows.iter().any(|(_, time)| time.throughput.is_some());
    let lead: &[&str] = if of_load { &["load", "time"] } else { &["case"] };
    let rate: &[&str] = if through { &["throughput"] } else { &[] };
    let own: &[&str] = match (of_load, paired) {
        (true, _) => &["fails above", "sessions", "days"],
        (false, true) => &["fails from", "shows from", "blocks", "output"],
        (false, false) => &["fails above", "of hardware", "output"],
    };
    let change = change_heading(&rows);
    let mut table = Table::brief(&[lead, &["base", "head"], rate, &[&*change], own, &["verdict"]].concat());
    let limit = |ratio: Option<f64>| terminal::change(ratio.map(|ratio| ratio - 1.0)).toned(Tone::Dim);
    let count = |count: Option<usize>| {
        Cell::number(count.map(|count| count as f64), Unit::Count, Missing::NotGiven).toned(Tone::Dim)
    };
    let subjects = by_subject(verdict);
    let (shown, others): (Vec<_>, Vec<_>) = subjects.iter().partition(|subject| subject.notable);
    for (row, time) in shown.iter().flat_map(|subject| &subject.rows) {
        let mut cells = if of_load { of_level(row, time) } else { vec![Cell::text(below(row, time))] };
        cells.extend([value(time.metric, time.base_ns), value(time.metric, time.head_ns)]);
        if through {
            cells.push(Cell::text(units::throughput(time.throughput, time.head_ns)).toned(Tone::Dim));
        }
        cells.extend([Cell::text(words::change(time)), limit(time.threshold)]);
        if of_load {
            cells.extend([count(time.sessions), count(time.days)]);
        } else if paired {
            cells.extend([limit(time.smallest_slowdown), count(time.blocks), output_of(verdict, row, time)]);
        } else {
            cells.extend([of_hardware(time.limit_fraction).toned(Tone::Dim), output_of(verdict, row, time)]);
        }
        cells.push(outcome(row));
        table.row(cells);
    }
    if !others.is_empty() {
        table.row(line_of(&others, lead.len() + 2 + rate.len(), table.columns.len()));
    }
    table
}

/// The case; the mean and a further metric stand below the median of the one that counts.
fn below(row: &VerdictRow, time: &TimeEvidence) -> String {
    match (time.counted, time.statistic) {
        (false, _) => format!("  {}", time.metric.short()),
        (true, Statistic::Mean) => "  mean".into(),
        (true, Statistic::Median) => words::compared(row, time),
    }
}

/// A level without the word that says where its name comes from, and its time.
fn of_level(row: &VerdictRow, time: &TimeEvidence) -> Vec<Cell> {
    let level = if let Subject::Named(name) = &row.subject { name.name().to_owned() } else { row.subject.to_string() };
    let p50 = if time.metric == Metric::SystemToken { "" } else { " P50" };
    vec![Cell::text(level), Cell::text(format!("{}{p50}", time.metric.short()))]
}

/// How the output of a row's case compares; what stands below the median that counts has none of its own.
fn output_of(verdict: &Verdict, row: &VerdictRow, time: &TimeEvidence) -> Cell {
    let output = verdict.rows.iter().find_map(|other| match &other.evidence {
        Evidence::Output(output) if other.subject == row.subject => Some(said_of_output(other, output)),
        _ => None,
    });
    let output = output.filter(|_| time.counted && time.statistic == Statistic::Median);
    output.unwrap_or(Cell::Missing(Missing::NotGiven))
}

/// A time, and the throughput that it is where it is one of all users.
pub fn value(metric: Metric, ns: Option<f64>) -> Cell {
    match (metric, ns) {
        (Metric::SystemToken, Some(ns)) => {
            Cell::text(format!("{} ({})", units::duration(Some(ns)), units::tokens_per_s(Some(1e9 / ns))))
        }
        _ => Cell::number(ns, Unit::Ns, Missing::NotMeasured),
    }
}

/// One line for subjects of which nothing failed or moved: how many, between which changes, and what is said of them.
fn line_of(others: &[&Measured<'_>], change_column: usize, columns: usize) -> Vec<Cell> {
    let (mut least, mut most, mut said) = (f64::INFINITY, f64::NEG_INFINITY, Vec::new());
    for (row, time) in others.iter().flat_map(|subject| &subject.rows) {
        if let Some(ratio) = time.ratio.filter(|_| time.statistic == Statistic::Median) {
            (least, most) = (least.min(ratio - 1.0), most.max(ratio - 1.0));
        }
        let ending = words::ending(row);
        if !said.contains(&ending) {
            said.push(ending);
        }
    }
    let mut cells = vec![Cell::text(""); columns];
    cells[0] = Cell::text(format!("{} others", others.len()));
    if least <= most {
        let change = format!("{} to {}", Unit::Change.show(least), Unit::Change.show(most));
        cells[change_column] = Cell::text(change).toned(Tone::Dim);
    }
    cells[columns - 1] = Cell::text(said.join(", ")).toned(Tone::Dim);
    cells
}

/// How the output compares, in a word.
fn said_of_output(row: &VerdictRow, output: &OutputEvidence) -> Cell {
    Cell::text(words::output(row, output)).toned(Tone::of(row.outcome))
}
