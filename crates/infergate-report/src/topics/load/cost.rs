//! What requests and tokens cost, where prices were given.

use crate::inputs::Inputs;
use crate::load::{Point, View};
use crate::model::{Cell, Column, Missing, Section, Unit};

const ABOUT: &str = "By the given prices of a million tokens, in their currency, and the server's own counts, over the requests that were \
                     measured. Failed requests are not in it.";

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(|view| view.receipt.targets.iter().any(|target| target.price().is_some()))?;
    let own = vec![
        Column::numbers("input_tokens", "tokens in").about("of a request, in the mean, as the server counted them"),
        Column::numbers("output_tokens", "out"),
        Column::numbers("request", "a request").about("tokens in x price in + tokens out x price out"),
        Column::numbers("million", "a million output tokens").about("their prompts included"),
    ];
    let table = view.table("cost", "", own, |point| {
        let why = why_missing(&view, point);
        let number = |value: Option<f64>, unit| Cell::number(value, unit, why);
        vec![
            number(point.cost.map(|cost| cost.input_tokens), Unit::Plain),
            number(point.cost.map(|cost| cost.output_tokens), Unit::Plain),
            number(point.cost.map(|cost| cost.request), Unit::Price),
            number(point.cost.and_then(|cost| cost.per_million_output_tokens), Unit::Price),
        ]
    });
    let table = table.on_terminal();
    Some(Section::new("load_cost", "Cost").with([ABOUT]).with([table]))
}

fn why_missing(view: &View<'_>, point: &Point) -> Missing {
    match view.price(point) {
        None => Missing::NoPrice,
        Some(_) if point.window.is_none() => Missing::NoWindow,
        Some(_) if point.measured == 0 => Missing::NotMeasured,
        Some(_) => Missing::NoUsage,
    }
}
