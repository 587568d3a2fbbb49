//! What a report says, as data: sections of tables, findings and charts. Exporters turn it into files; it knows none of them.

pub mod chart;
pub mod quantity;
pub mod table;

pub use chart::{Axis, Chart, Layer, Look, Marks, Place, Shape, Stretch};
pub use quantity::{Amount, Quantity, Unit};
pub use table::{Cell, Column, MAX_WORD_CHARS, Missing, Row, Rows, Table, not_shown};

use infergate_receipts::Outcome;
use serde::Serialize;

/// How something ended, for colours and shapes; never the only sign of it.
/// What a reader has to see first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    Bad,
    Warn,
    Good,
    Plain,
    /// Of less interest, where there are colours.
    Dim,
}

impl Tone {
    pub fn of(outcome: Outcome) -> Self {
        match (outcome, outcome.exit_code()) {
            (Outcome::Advisory, _) => Self::Dim,
            (Outcome::Accepted, _) | (_, 3) => Self::Warn,
            (_, 0) => Self::Good,
            _ => Self::Bad,
        }
    }

    /// Bad news where `is_bad`.
    pub fn bad_if(is_bad: bool) -> Self {
        if is_bad { Self::Bad } else { Self::Plain }
    }
}

#[derive(Clone, Serialize)]
pub struct Report {
    pub title: String,
    /// What was measured, in one line; empty where the files do not say.
    pub subject: String,
    pub headline: Option<Headline>,
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headline {
    pub outcome: Outcome,
    pub exit_code: i32,
    /// How it ended, and of how many cases.
    pub ended: String,
    pub said: String,
}

#[derive(Clone, Serialize)]
pub struct Section {
    pub id: &'static str,
    pub title: &'static str,
    pub folded: bool,
    /// Whether a terminal shows its sentences; which of its tables, they say themselves.
    #[serde(skip)]
    pub on_terminal: bool,
    pub blocks: Vec<Block>,
}

impl Section {
    pub fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, folded: false, on_terminal: false, blocks: Vec::new() }
    }

    /// The same with these at its end, but for those that are empty.
    pub fn with<B: Into<Block>>(mut self, blocks: impl IntoIterator<Item = B>) -> Self {
        self.blocks.extend(blocks.into_iter().map(Into::into).filter(|block| !block.is_empty()));
        self
    }

    /// Whether there is more in it than what it is about.
    pub fn says_something(&self) -> bool {
        self.blocks.iter().any(|block| !matches!(block, Block::Said(_) | Block::Chart(_)))
    }

    /// The same, for those alone who ask for it.
    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// The same, with its sentences on a terminal, too.
    pub fn on_terminal(self) -> Self {
        Self { on_terminal: true, ..self }
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
    }
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    Said(String),
    List(Vec<String>),
    Table(Table),
    Findings(Vec<Finding>),
    Chart(Chart),
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Self::Said(said) => said.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Findings(findings) => findings.is_empty(),
            Self::Chart(chart) => chart.layers.is_empty(),
        }
    }
}

/// What becomes a block as it is.
macro_rules! blocks {
    ($($from:ty, $into:expr;)*) => {
        $(impl From<$from> for Block {
            fn from(from: $from) -> Self {
                $into(from)
            }
        })*
    };
}

blocks! {
    String, Block::Said;
    &str, |said: &str| Block::Said(said.into());
    Vec<String>, Block::List;
    Table, Block::Table;
    Vec<Finding>, Block::Findings;
    Finding, |finding| Block::Findings(vec![finding]);
    Chart, Block::Chart;
}

#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub tone: Tone,
    /// One sentence, with its figures.
    pub said: String,
}

impl Finding {
    pub fn new(tone: Tone, said: impl Into<String>) -> Self {
        Self { tone, said: said.into() }
    }

    pub fn plain(said: impl Into<String>) -> Self {
        Self::new(Tone::Plain, said)
    }

    pub fn warn(said: impl Into<String>) -> Self {
        Self::new(Tone::Warn, said)
    }
}

impl Report {
    /// As pages show it: tables without the columns that say nothing, and once a section what is missing in them.
    pub fn for_pages(&self) -> Self {
        let mut report = self.clone();
        for section in &mut report.sections {
            let missing = not_shown(section.tables());
            for block in &mut section.blocks {
                if let Block::Table(table) = block {
                    *table = table.filled();
                }
            }
            section.blocks.extend(missing.map(Block::Said));
        }
        report
    }

    pub fn tables(&self) -> impl Iterator<Item = (&Section, &Table)> {
        self.sections.iter().flat_map(|section| section.tables().map(move |table| (section, table)))
    }

    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None })
    }

    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}
