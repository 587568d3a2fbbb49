//! What a report says, as data: sections of tables, findings and charts. Exporters turn it into files; it knows none of them.

pub mod chart;
pub mod quantity;
pub mod table;

pub use chart::{Axis, Chart, Layer, Look, Place, Shape, Stretch};
pub use quantity::{Quantity, Unit};
pub use table::{Cell, Column, Missing, Row, Table};

use crate::receipt::Outcome;

/// How something ended, for colours and shapes; never the only sign of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing to say.
    #[default]
    Plain,
    /// It passed.
    Good,
    /// It did not.
    Bad,
    /// It cannot be said.
    Warn,
}

impl Tone {
    /// The tone of an outcome.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Advisory => Self::Plain,
            Outcome::Accepted => Self::Warn,
            _ => match outcome.exit_code() {
                0 => Self::Good,
                3 => Self::Warn,
                _ => Self::Bad,
            },
        }
    }

    /// Its name in files and style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
        }
    }
}

/// Everything one report says.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What came out, in one sentence.
    pub title: String,
    /// What was measured, in one line; empty where the files do not say.
    pub subject: String,
    /// The decision, where there is a verdict.
    pub headline: Option<Headline>,
    /// In the order they are read.
    pub sections: Vec<Section>,
}

/// The decision in short.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// How it ended.
    pub outcome: Outcome,
    /// The process's exit code.
    pub exit_code: i32,
    /// What happened, in one sentence.
    pub said: String,
}

/// One part of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name in files: `latency`.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Whether it is shown to those alone who ask for it.
    pub folded: bool,
    /// In the order they are read.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section without anything in it.
    pub fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, folded: false, blocks: Vec::new() }
    }

    /// The same with `block` at its end.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }

    /// The same, for those alone who ask for it.
    #[must_use]
    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// Its tables.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
    }

    /// Its charts.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None })
    }
}

/// One thing in a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Said(String),
    /// Sentences that belong together.
    List(Vec<String>),
    /// Numbers.
    Table(Table),
    /// What follows from the numbers.
    Findings(Vec<Finding>),
    /// A picture, as data.
    Chart(Chart),
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// What a rule found, and the numbers it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Good or bad news, or neither.
    pub tone: Tone,
    /// One sentence, from [`words`](super::words).
    pub said: String,
    /// The figures, by name. There is no finding without one.
    pub rests_on: Vec<(String, Quantity)>,
}

impl Finding {
    /// The figures that its sentence does not say.
    pub fn figures(&self) -> Vec<String> {
        let shown = self.rests_on.iter().map(|(name, quantity)| (name, quantity.shown()));
        shown.filter(|(_, value)| !self.said.contains(value)).map(|(name, value)| format!("{name} {value}")).collect()
    }
}

impl Report {
    /// Every table with its section.
    pub fn tables(&self) -> impl Iterator<Item = (&Section, &Table)> {
        self.sections.iter().flat_map(|section| section.tables().map(move |table| (section, table)))
    }

    /// Every chart.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.sections.iter().flat_map(Section::charts)
    }

    /// The section named `id`.
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}
