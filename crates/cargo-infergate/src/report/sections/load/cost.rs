//! What requests and tokens cost, where prices were given.

use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::View;
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Unit};
use crate::report::words::load as words;

/// A line a level and target; nothing without a price.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    if view.receipt.targets.iter().all(|target| target.price().is_none()) || view.digest.points.is_empty() {
        return None;
    }
    let own = vec![
        Column::numbers("input_tokens", "tokens in").about("of a request, in the mean, as the server counted them"),
        Column::numbers("output_tokens", "out"),
        Column::numbers("request", "a request").about("tokens in x price in + tokens out x price out"),
        Column::numbers("million", "a million output tokens").about("their prompts included"),
    ];
    let mut table = Table::new("cost", "", [view.columns(), own].concat());
    for point in &view.digest.points {
        let why = why_missing(&view, point);
        let number = |value: Option<f64>, unit| Cell::number(value, unit, why);
        let mut cells = view.cells(point);
        cells.extend([
            number(point.cost.map(|cost| cost.input_tokens), Unit::Plain),
            number(point.cost.map(|cost| cost.output_tokens), Unit::Plain),
            number(point.cost.map(|cost| cost.request), Unit::Price),
            number(point.cost.and_then(|cost| cost.per_million_output_tokens), Unit::Price),
        ]);
        table.row(cells);
    }
    Some(Section::new("load_cost", "Cost").with(Block::Said(words::ABOUT_COST.into())).with(table))
}

fn why_missing(view: &View<'_>, point: &Point) -> Missing {
    let target = view.receipt.targets.get(point.target.unwrap_or(0));
    match target.and_then(|target| target.price()) {
        None => Missing::NoPrice,
        Some(_) if point.window.is_none() => Missing::NoWindow,
        Some(_) if point.measured == 0 => Missing::NotMeasured,
        Some(_) => Missing::NoUsage,
    }
}
