//! Whether targets say the same to the same prompts: a part of quality that a load run can see.

use crate::inputs::Inputs;
use crate::load::View;
use crate::model::{Cell, Column, Missing, Section, Table, Unit};
use infergate_core::stats::clopper_pearson;

const ABOUT: &str = "How many of the dataset's prompts two targets answered with the same text. Two that serve one model can differ by a coarser \
                     quantization, another order of sums, or a special token before the prompt. Which answer is better is not said.";

/// A line each two targets; nothing where no prompt went to two of them.
pub fn topic(inputs: &Inputs) -> Option<Section> {
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
        let share = Cell::number(Some(same as f64 / prompts as f64), Unit::Fraction, Missing::Undefined);
        table.row(vec![
            Cell::foreign(&view.scenario(agreement.scenario)),
            Cell::foreign(&view.target(agreement.targets.0)),
            Cell::foreign(&view.target(agreement.targets.1)),
            Cell::of(prompts as f64, Unit::Count),
            Cell::of(same as f64, Unit::Count),
            share.within(clopper_pearson(same, prompts, 0.95)),
        ]);
    }
    Some(Section::new("load_agreement", "Agreement of outputs").with([ABOUT]).with([table]))
}
