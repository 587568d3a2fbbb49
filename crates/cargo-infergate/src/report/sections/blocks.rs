//! The blocks of a paired run: how many, and how noisy each case was expected to be.

use crate::receipt::PairedCase;
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Missing, Section, Table, Unit};

/// A line a case; nothing where nothing was timed.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let paired = inputs.paired.as_ref().filter(|paired| !paired.blocks.is_empty())?;
    let mut table = Table::new(
        "blocks",
        "",
        vec![
            Column::words("case", "case"),
            Column::numbers("blocks", "blocks")
                .about("fresh processes of each side, or the next of the servers that ran already"),
            Column::numbers("pairs", "pairs a block"),
            Column::numbers("expected", "expected noise")
                .about("standard deviation of a block's change, known beforehand"),
            Column::numbers("fails_from", "fails from").about("the limit"),
        ],
    );
    for case in &paired.cases {
        let blocks = paired.blocks.iter().filter(|block| block.cases.iter().any(|found| found.id == case.id)).count();
        table.row(row(case, blocks));
    }
    (!table.rows.is_empty()).then(|| Section::new("blocks", "Blocks of base and head").with(table))
}

fn row(case: &PairedCase, blocks: usize) -> Vec<Cell> {
    vec![
        Cell::text(case.id.to_string()),
        Cell::count(blocks),
        Cell::count(case.pairs),
        Cell::number(case.expected_std, Unit::Fraction, Missing::NotMeasured),
        Cell::number(Some(case.threshold - 1.0), Unit::Change, Missing::NotGiven),
    ]
}
