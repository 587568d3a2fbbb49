//! Tables: columns that say what they hold, rows of cells, and a reason in each cell that has no number.

use super::{Amount, Quantity, Tone, Unit};
use crate::units::MISSING;
use crate::words::missing;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Characters of a word of someone else's: the other rows of its column are padded to them.
pub const MAX_WORD_CHARS: usize = 200;

/// Why there is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    TooFewSamples {
        needed: usize,
        samples: usize,
    },
    /// As above, where the gaps of one request count once.
    TooFewRequests {
        needed: usize,
        requests: usize,
    },
    /// It is above the time-out: so many requests failed that it falls among them.
    AmongFailed {
        failed: usize,
        requests: usize,
    },
    TooFewProcesses {
        needed: usize,
        processes: usize,
    },
    Undefined,
    NotMeasured,
    NotGiven,
    NoLimit,
    EngineSilent,
    SystemSilent,
    NotCounted,
    NoBase,
    /// The hardware was not probed, or the engine does not say what work it does.
    NoProbes,
    BeyondHardware,
    NoTokenizer,
    AlreadyLoaded,
    NotKept,
    /// It is counted to the byte, so every byte counts.
    Exact,
    NoWindow,
    NoSingleUser,
    Shared,
    NoUsage,
    NoPrice,
    NoCrossing,
    NotAgreed,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String, Tone),
    /// A word from a file of someone else's: a model's name, a flag.
    Foreign(String),
    Number(Quantity, Tone),
    /// A number that does not exist, and why.
    Missing(Missing),
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into(), Tone::Plain)
    }

    /// A word of someone else's, which only those who write it make printable.
    pub fn foreign(text: &str) -> Self {
        Self::Foreign(text.to_owned())
    }

    /// A number, or why there is none.
    pub fn number(value: impl Amount, unit: Unit, missing: Missing) -> Self {
        let quantity = value.amount().and_then(|value| Quantity::new(value, unit));
        quantity.map_or(Self::Missing(missing), |quantity| Self::Number(quantity, Tone::Plain))
    }

    /// A number; blank where there is none and nobody would look for it.
    pub fn known(value: Option<f64>, unit: Unit) -> Self {
        value.map_or(Self::text(""), |value| Self::of(value, unit))
    }

    pub fn of(value: impl Amount, unit: Unit) -> Self {
        Self::number(value, unit, Missing::NotMeasured)
    }

    pub fn count(count: impl Amount) -> Self {
        Self::of(count, Unit::Count)
    }

    /// The same with the interval it lies in.
    #[must_use]
    pub fn within(self, ends: Option<(f64, f64)>) -> Self {
        match self {
            Self::Number(quantity, tone) => Self::Number(quantity.within(ends), tone),
            other => other,
        }
    }

    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        match self {
            Self::Text(text, _) => Self::Text(text, tone),
            Self::Number(quantity, _) => Self::Number(quantity, tone),
            other => other,
        }
    }

    pub fn shown(&self) -> String {
        match self {
            Self::Text(text, _) | Self::Foreign(text) => text.clone(),
            Self::Number(quantity, _) => quantity.shown(),
            Self::Missing(_) => MISSING.into(),
        }
    }

    /// Whether it says nothing but why it is empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Missing(_)) || self.shown().is_empty()
    }

    /// Why there is no number.
    pub fn why(&self) -> Option<String> {
        if let Self::Missing(why) = self { Some(missing::reason(*why)) } else { None }
    }

    pub fn quantity(&self) -> Option<&Quantity> {
        if let Self::Number(quantity, _) = self { Some(quantity) } else { None }
    }

    pub fn tone(&self) -> Tone {
        match self {
            Self::Text(_, tone) | Self::Number(_, tone) => *tone,
            Self::Foreign(_) => Tone::Plain,
            Self::Missing(_) => Tone::Dim,
        }
    }
}

/// The number to the last bit, and what a person reads.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let quantity = self.quantity();
        let interval = quantity.and_then(|quantity| quantity.interval);
        let cell = json!({
            "text": self.shown(),
            "value": quantity.map(|quantity| quantity.value),
            "low": interval.map(|(low, _)| low),
            "high": interval.map(|(_, high)| high),
            "unit": quantity.map(|quantity| quantity.unit.name()),
            "why_missing": self.why(),
            "tone": self.tone(),
            "is_code": matches!(self, Self::Foreign(_)),
        });
        cell.serialize(serializer)
    }
}

impl<A: Amount> From<A> for Cell {
    fn from(count: A) -> Self {
        Self::count(count)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub id: &'static str,
    pub title: String,
    /// What it means, in one sentence; empty where the heading says it.
    pub about: &'static str,
    pub numeric: bool,
    /// Whether a terminal leaves it out.
    #[serde(skip)]
    pub detail: bool,
}

impl Column {
    pub fn words(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), about: "", numeric: false, detail: false }
    }

    pub fn numbers(id: &'static str, title: impl Into<String>) -> Self {
        Self { numeric: true, ..Self::words(id, title) }
    }

    /// The same with what it means.
    #[must_use]
    pub fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// The same, where there is room for it.
    #[must_use]
    pub fn detail(self) -> Self {
        Self { detail: true, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Whether it is shown where there is room for what changed only.
    pub notable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Its name in files, one of a kind in its section: letters, digits, `_` and `-`.
    pub id: String,
    /// Its heading; empty where the section's says it.
    pub title: String,
    /// What a reader has to know beside the headings.
    pub note: Option<String>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Whether rows that are not notable are shown to those alone who ask for them. They stand last then.
    pub folds: bool,
    /// Whether a terminal shows it, without its details.
    #[serde(skip)]
    pub on_terminal: bool,
}

impl Table {
    pub fn new(id: impl Into<String>, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            note: None,
            columns,
            rows: Vec::new(),
            folds: false,
            on_terminal: false,
        }
    }

    /// What a terminal shows: the first column is of words, the others of numbers.
    pub fn brief(headings: &[&str]) -> Self {
        let columns =
            headings.iter().enumerate().map(|(at, title)| Column { numeric: at > 0, ..Column::words("", *title) });
        Self::new("", "", columns.collect())
    }

    /// The same with every column on the left, for words.
    #[must_use]
    pub fn left_aligned(mut self) -> Self {
        self.columns.iter_mut().for_each(|column| column.numeric = false);
        self
    }

    /// Two columns: what, and its value.
    pub fn facts(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self::new(id, title, vec![Column::words("what", "what"), Column::words("value", "value")])
    }

    /// The same, for a terminal, too.
    #[must_use]
    pub fn on_terminal(self) -> Self {
        Self { on_terminal: true, ..self }
    }

    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row { cells, notable: false });
    }

    /// Adds a row that is shown where there is room for little.
    pub fn notable_row(&mut self, cells: Vec<Cell>, notable: bool) {
        self.rows.push(Row { cells, notable });
    }

    pub fn fact(&mut self, what: &str, value: impl Into<Cell>) {
        self.row(vec![what.into(), value.into()]);
    }

    /// The same with the notable rows first and the others folded.
    #[must_use]
    pub fn folding(mut self) -> Self {
        self.rows.sort_by_key(|row| !row.notable);
        Self { folds: true, ..self }
    }

    /// The rows that everybody sees, and those behind them that are folded.
    pub fn parts(&self) -> (&[Row], &[Row]) {
        let shown = if self.folds { self.rows.iter().take_while(|row| row.notable).count() } else { self.rows.len() };
        self.rows.split_at(shown)
    }

    /// As pages show it: without the columns that say nothing in any row, whose reasons the note says.
    #[must_use]
    pub fn for_pages(&self) -> Self {
        let is_empty = |at: &usize| self.rows.iter().all(|row| row.cells.get(*at).is_none_or(Cell::is_empty));
        let (empty, said): (Vec<usize>, Vec<usize>) =
            (0..self.columns.len()).partition(|at| !self.rows.is_empty() && is_empty(at));
        let reasons = |at: usize| {
            let cells = self.rows.iter().filter_map(move |row| row.cells.get(at));
            cells.filter_map(|cell| if let Cell::Missing(why) = cell { Some(*why) } else { None }).collect::<Vec<_>>()
        };
        let named = empty.iter().filter_map(|at| Some((self.columns.get(*at)?.title.as_str(), reasons(*at))));
        let left_out = missing::left_out(&named.collect::<Vec<_>>());
        let note = [self.note.clone(), left_out].into_iter().flatten().reduce(|note, more| format!("{note} {more}"));
        Self { note, ..self.of_columns(&said) }
    }

    /// As a terminal shows it: the same without details.
    #[must_use]
    pub fn for_terminal(&self) -> Self {
        let shown = self.columns.iter().enumerate().filter(|(_, column)| !column.detail);
        self.of_columns(&shown.map(|(at, _)| at).collect::<Vec<_>>()).for_pages()
    }

    fn of_columns(&self, wanted: &[usize]) -> Self {
        let row = |row: &Row| Row {
            cells: wanted.iter().filter_map(|at| row.cells.get(*at).cloned()).collect(),
            ..row.clone()
        };
        Self {
            columns: wanted.iter().filter_map(|at| self.columns.get(*at).cloned()).collect(),
            rows: self.rows.iter().map(row).collect(),
            ..self.clone()
        }
    }
}

/// A table that is made column by column, each from the same rows.
pub struct Rows<R> {
    rows: Vec<R>,
    table: Table,
}

impl<R> Rows<R> {
    pub fn of(id: impl Into<String>, title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Self {
        let rows: Vec<R> = rows.into_iter().collect();
        let mut table = Table::new(id, title, Vec::new());
        rows.iter().for_each(|_| table.row(Vec::new()));
        Self { rows, table }
    }

    /// A column of words, and the cell that each row has in it.
    #[must_use]
    pub fn words<C: Into<Cell>>(self, id: &'static str, title: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        self.column(Column::words(id, title), cell)
    }

    /// The same with numbers.
    #[must_use]
    pub fn numbers<C: Into<Cell>>(self, id: &'static str, title: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        self.column(Column::numbers(id, title), cell)
    }

    #[must_use]
    pub fn column<C: Into<Cell>>(mut self, column: Column, cell: impl Fn(&R) -> C) -> Self {
        self.table.columns.push(column);
        for (row, from) in self.table.rows.iter_mut().zip(&self.rows) {
            row.cells.push(cell(from).into());
        }
        self
    }

    /// What the last column means.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.table.columns.last_mut().into_iter().for_each(|last| last.about = about);
        self
    }

    /// The last column stands where there is room for it.
    #[must_use]
    pub fn detail(mut self) -> Self {
        self.table.columns.last_mut().into_iter().for_each(|last| last.detail = true);
        self
    }

    /// Columns that only some tables have.
    #[must_use]
    pub fn with_if(self, is_wanted: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if is_wanted { more(self) } else { self }
    }

    /// Rows that are shown where there is room for little.
    #[must_use]
    pub fn notable(mut self, is_notable: impl Fn(&R) -> bool) -> Self {
        for (row, from) in self.table.rows.iter_mut().zip(&self.rows) {
            row.notable = is_notable(from);
        }
        self
    }

    pub fn table(self) -> Table {
        self.table
    }
}
