//! Whether targets say the same to the same prompts: a part of quality that a load run can see.

use crate::report::inputs::Inputs;
use crate::report::load::view::View;
use crate::report::model::{Block, Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};
use crate::report::words::load as words;
use crate::stats::clopper_pearson;

/// A line each two targets; nothing where no prompt went to two of them.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let columns = vec![
        Column::words("scenario", "scenario"),
        Column::words("first", "target"),
        Column::words("second", "and target"),
        Column::numbers("prompts", "prompts").about("of the dataset, that both answered"),
        Column::numbers("same", "same answer").about("all answers of both, to the letter"),
        Column::numbers("share", "share").about("with its exact 95 % interval"),
    ];
    let mut table = Table::new("agreement", "", columns);
    for agreement in &view.digest.agreements {
        let (prompts, same) = (agreement.prompts, agreement.same);
        let count = |count: u64| Cell::number(Some(count as f64), Unit::Count, Missing::NotMeasured);
        let share = Quantity::new(same as f64 / prompts as f64, Unit::Fraction)
            .map(|share| share.within(clopper_pearson(same, prompts, 0.95)));
        table.row(vec![
            Cell::foreign(&view.scenario(agreement.scenario)),
            Cell::foreign(&view.target(agreement.targets.0)),
            Cell::foreign(&view.target(agreement.targets.1)),
            count(prompts),
            count(same),
            share.map_or(Cell::Missing(Missing::Undefined), |share| Cell::Number(share, Tone::Plain)),
        ]);
    }
    (!table.rows.is_empty()).then(|| {
        Section::new("load_agreement", "Agreement of outputs")
            .with(Block::Said(words::ABOUT_AGREEMENT.into()))
            .with(table)
    })
}
