//! Aligned columns without borders. Colour codes are added after the widths are known; who prints them may strip them.

use std::fmt::Write as _;

use infergate_core::printable::printable_within;

/// Characters of a cell that are shown: the other rows of its column are padded to them.
const MAX_CELL_CHARS: usize = 200;

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As is.
    Plain,
    /// A heading.
    Bold,
    /// Of less interest.
    Dim,
    /// It passed.
    Good,
    /// It did not.
    Bad,
    /// It cannot be said.
    Warn,
}

impl Style {
    /// `text` in this style, as ANSI codes.
    pub fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Good => 32,
            Self::Bad => 31,
            Self::Warn => 33,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Rows of cells; the first column is aligned left, the others right.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<(String, Style)>>,
    left: bool,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new(), left: false };
        table.row(headings.iter().map(|heading| ((*heading).to_owned(), Style::Bold)).collect());
        table
    }

    /// All columns aligned left, for words.
    #[must_use]
    pub fn left_aligned(self) -> Self {
        Self { left: true, ..self }
    }

    /// Adds a row. What a cell says may come from somebody's file: it is made one printable line.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        let clean = |(text, style): (String, Style)| (printable_within(&text, MAX_CELL_CHARS).into_owned(), style);
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Adds a row without styles.
    pub fn plain_row(&mut self, cells: &[&str]) {
        self.row(cells.iter().map(|cell| ((*cell).to_owned(), Style::Plain)).collect());
    }

    /// The lines, each ended.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, style)) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                let (before, after) = if self.left || column == 0 { ("", &*padding) } else { (&*padding, "") };
                let gap = if column == 0 { "" } else { "   " };
                let _ = write!(line, "{gap}{before}{}{after}", style.paint(cell));
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}
