//! Tables: columns that say what they hold, rows of cells, and a reason in each cell that has no number.

use std::collections::{BTreeMap, BTreeSet};

use super::{Amount, Quantity, Tone, Unit};
use crate::units::{self, MISSING};
use serde::{Serialize, Serializer};
use serde_json::json;

/// Characters of a word of someone else's: the other rows of its column are padded to them.
pub const MAX_WORD_CHARS: usize = 200;

/// Why there is no number.
#[derive(Clone, Copy)]
pub enum Missing {
    TooFew {
        what: &'static str,
        needed: usize,
    },
    /// It is above the time-out: so many requests failed that it falls among them.
    AmongFailed,
    Undefined,
    NotMeasured,
    EngineSilent,
    SystemSilent,
    NoBase,
    NoProbes,
    BeyondHardware,
    NoTokenizer,
    NotKept,
    NoWindow,
    NoSingleUser,
    NoUsage,
    NoPrice,
}

impl Missing {
    /// One sentence each.
    pub fn reason(self) -> String {
        let reason = match self {
            Self::TooFew { what, needed } => return format!("takes {needed} {what}"),
            Self::AmongFailed => "too many requests failed",
            Self::Undefined => "not defined here",
            Self::NotMeasured => "not measured",
            Self::EngineSilent => "the engine does not say",
            Self::SystemSilent => "this operating system does not say",
            Self::NoBase => "nothing to compare with",
            Self::NoProbes => "the hardware was not probed, or the engine does not say what work it does",
            Self::BeyondHardware => "faster than the probes, which ran in a slower moment",
            Self::NoTokenizer => "the prompt was given as tokens, without a tokenizer",
            Self::NotKept => "not kept: `bench --keep-text` keeps it, of an engine with a tokenizer",
            Self::NoWindow => "no request ran at full load to its end; give a longer --duration",
            Self::NoSingleUser => "takes a level of one user, and there is none",
            Self::NoUsage => "the server sends no token counts",
            Self::NoPrice => "no price was given",
        };
        reason.into()
    }
}

#[derive(Clone)]
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
    pub fn known(value: impl Amount, unit: Unit) -> Self {
        value.amount().map_or(Self::text(""), |value| Self::of(value, unit))
    }

    pub fn of(value: impl Amount, unit: Unit) -> Self {
        Self::number(value, unit, Missing::NotMeasured)
    }

    pub fn count(count: impl Amount) -> Self {
        Self::of(count, Unit::Count)
    }

    /// The same with the interval it lies in.
    pub fn within(self, ends: Option<(f64, f64)>) -> Self {
        match self {
            Self::Number(quantity, tone) => Self::Number(quantity.within(ends), tone),
            other => other,
        }
    }

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
        if let Self::Missing(why) = self { Some(why.reason()) } else { None }
    }

    pub fn quantity(&self) -> Option<&Quantity> {
        if let Self::Number(quantity, _) = self { Some(quantity) } else { None }
    }

    pub fn value(&self) -> Option<f64> {
        self.quantity().map(|quantity| quantity.value)
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
            "value": self.value(),
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

#[derive(Clone, Serialize)]
pub struct Column {
    pub id: &'static str,
    pub title: String,
    /// What it means, in one sentence; empty where the heading says it.
    pub about: String,
    pub numeric: bool,
    /// Whether a terminal leaves it out.
    #[serde(skip)]
    pub detail: bool,
}

#[derive(Clone, Serialize)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Whether it is shown where there is room for what changed only.
    pub notable: bool,
}

#[derive(Clone, Serialize)]
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
    /// Two columns: what, and its value.
    pub fn facts(id: &str, title: &str, facts: Vec<(&'static str, Cell)>) -> Self {
        Rows::of(id, title, facts)
            .words("what", |(what, _)| *what)
            .words("value", |(_, value)| match value {
                Cell::Missing(why) => Cell::text(why.reason()).toned(Tone::Dim),
                known => known.clone(),
            })
            .table()
    }

    /// The same, for a terminal, too.
    pub fn on_terminal(self) -> Self {
        Self { on_terminal: true, ..self }
    }

    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The same with the notable rows first, the worst of them before others, and the rest folded.
    pub fn folding(mut self) -> Self {
        self.rows.sort_by_key(|row| (!row.notable, row.cells.last().map(Cell::tone)));
        Self { folds: true, ..self }
    }

    /// The rows that everybody sees, and those behind them that are folded.
    pub fn parts(&self) -> (&[Row], &[Row]) {
        let shown = if self.folds { self.rows.iter().take_while(|row| row.notable).count() } else { self.rows.len() };
        self.rows.split_at(shown)
    }

    /// Without its details.
    pub fn brief(&self) -> Self {
        self.of_columns(|at| !self.columns[at].detail)
    }

    /// As a terminal shows it: without details, and with one line of all rows that fold.
    pub fn for_terminal(&self) -> Self {
        let mut table = self.brief().filled();
        let folded = table.rows.split_off(table.parts().0.len());
        if !folded.is_empty() {
            let mut cells: Vec<Cell> = (0..table.columns.len()).map(|at| together(&folded, at).into()).collect();
            let many = folded.len();
            cells[0] = if table.rows.is_empty() { format!("all {many}") } else { units::many(many, "other") }.into();
            table.rows.push(Row { cells, notable: false });
        }
        table
    }

    /// Without the columns that say nothing in any row.
    pub fn filled(&self) -> Self {
        self.of_columns(|at| self.rows.iter().any(|row| !row.cells[at].is_empty()))
    }

    fn of_columns(&self, is_wanted: impl Fn(usize) -> bool) -> Self {
        let wanted: Vec<usize> = (0..self.columns.len()).filter(|at| is_wanted(*at)).collect();
        let cells = |row: &Row| wanted.iter().map(|at| row.cells[*at].clone()).collect();
        Self {
            columns: wanted.iter().map(|at| self.columns[*at].clone()).collect(),
            rows: self.rows.iter().map(|row| Row { cells: cells(row), ..*row }).collect(),
            ..self.clone()
        }
    }
}

/// Which columns of `tables` lack numbers, each reason once: `Not shown: P99 (takes 368 requests).`
pub fn not_shown<'a>(tables: impl IntoIterator<Item = &'a Table>) -> Option<String> {
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for table in tables {
        for (at, column) in table.columns.iter().enumerate() {
            for why in table.rows.iter().filter_map(|row| row.cells[at].why()) {
                missing.entry(why).or_default().insert(&column.title);
            }
        }
    }
    let part = |(why, titles): (String, BTreeSet<&str>)| format!("{} ({why})", units::listed(titles));
    let parts: Vec<String> = missing.into_iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("Not shown: {}.", parts.join("; ")))
}

/// What cells of one column say: from the least to the most of one unit, or each word once.
fn together(rows: &[Row], at: usize) -> String {
    let cells: Vec<&Cell> = rows.iter().map(|row| &row.cells[at]).collect();
    let mut numbers: Vec<&Quantity> = cells.iter().filter_map(|cell| cell.quantity()).collect();
    numbers.sort_by(|one, other| one.value.total_cmp(&other.value));
    if let [least, .., most] = numbers[..] {
        let is_one_unit = numbers.iter().all(|number| number.unit.name() == least.unit.name());
        return if is_one_unit {
            units::from_to(|number| number.unit.show(number.value), least, most)
        } else {
            String::new()
        };
    }
    let words: BTreeSet<String> = cells.iter().map(|cell| cell.shown()).filter(|word| !word.is_empty()).collect();
    words.into_iter().collect::<Vec<_>>().join("; ")
}

/// A table that is made column by column, each from the same rows.
pub struct Rows<R> {
    rows: Vec<R>,
    table: Table,
}

impl<R> Rows<R> {
    pub fn of(id: impl Into<String>, title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Self {
        let rows: Vec<R> = rows.into_iter().collect();
        let (id, title, columns) = (id.into(), title.into(), Vec::new());
        let cells = rows.iter().map(|_| Row { cells: Vec::new(), notable: false }).collect();
        Self { table: Table { id, title, note: None, columns, rows: cells, folds: false, on_terminal: false }, rows }
    }

    /// A column of words, and the cell that each row has in it. It is headed by its name.
    pub fn words<C: Into<Cell>>(self, id: &'static str, cell: impl Fn(&R) -> C) -> Self {
        self.column(id, id, false, cell)
    }

    /// The same with numbers.
    pub fn numbers<C: Into<Cell>>(self, id: &'static str, cell: impl Fn(&R) -> C) -> Self {
        self.column(id, id, true, cell)
    }

    /// A column of words with another heading than its name.
    pub fn titled_words<C: Into<Cell>>(
        self,
        id: &'static str,
        title: impl Into<String>,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        self.column(id, title, false, cell)
    }

    /// The same with numbers.
    pub fn titled_numbers<C: Into<Cell>>(
        self,
        id: &'static str,
        title: impl Into<String>,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        self.column(id, title, true, cell)
    }

    fn column<C: Into<Cell>>(
        mut self,
        id: &'static str,
        title: impl Into<String>,
        numeric: bool,
        cell: impl Fn(&R) -> C,
    ) -> Self {
        self.table.columns.push(Column { id, title: title.into(), about: String::new(), numeric, detail: false });
        for (row, from) in self.table.rows.iter_mut().zip(&self.rows) {
            row.cells.push(cell(from).into());
        }
        self
    }

    /// What the last column means.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        if let Some(last) = self.table.columns.last_mut() {
            last.about = about.into();
        }
        self
    }

    /// The last column stands where there is room for it.
    pub fn detail(mut self) -> Self {
        if let Some(last) = self.table.columns.last_mut() {
            last.detail = true;
        }
        self
    }

    /// Columns that only some tables have.
    pub fn with_if(self, is_wanted: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if is_wanted { more(self) } else { self }
    }

    /// Rows that are shown where there is room for little.
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
