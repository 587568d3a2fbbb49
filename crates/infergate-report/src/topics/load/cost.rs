//! What requests and tokens cost, where prices were given.

use infergate_load::summary::cost::{Cost, cost};
use infergate_load::summary::measured;

use crate::load::{Point, View};
use crate::model::{Cell, Missing, Section, Unit};

const ABOUT: &str = "Prices are per million tokens, in the currency of --price; a million output tokens is priced with its prompts. The server counted the \
                     tokens.";

pub fn topic(view: &View) -> Option<Section> {
    if !is_priced(view) {
        return None;
    }
    let number = |unit, value: fn(Cost) -> Option<f64>| move |point: &&Point| cell(view, point, unit, value);
    let table = view
        .rows("cost", "")
        .titled_numbers("input_tokens", "tokens in", number(Unit::Plain, |cost| Some(cost.input_tokens)))
        .about("of a request, in the mean, as the server counted them")
        .titled_numbers("output_tokens", "out", number(Unit::Plain, |cost| Some(cost.output_tokens)))
        .titled_numbers("thousand", "a thousand requests", |point| of_thousand(view, point))
        .about("1000 x (tokens in x price in + tokens out x price out)")
        .titled_numbers(
            "million",
            "a million output tokens",
            number(Unit::Price, |cost| cost.per_million_output_tokens),
        )
        .about("their prompts included")
        .table()
        .on_terminal();
    Some(Section::new("load_cost", "Cost").with([ABOUT]).with([table]))
}

pub fn is_priced(view: &View) -> bool {
    view.receipt.targets.iter().any(|target| target.price().is_some())
}

/// What a request costs, where that is known.
pub fn of_request(view: &View, point: &Point) -> Option<f64> {
    of(view, point).ok().map(|cost| cost.request)
}

/// What a thousand requests cost.
pub fn of_thousand(view: &View, point: &Point) -> Cell {
    cell(view, point, Unit::Price, |cost| Some(1e3 * cost.request))
}

fn cell(view: &View, point: &Point, unit: Unit, value: fn(Cost) -> Option<f64>) -> Cell {
    match of(view, point) {
        Ok(cost) => Cell::number(value(cost), unit, Missing::NoUsage),
        Err(why) => Cell::Missing(why),
    }
}

fn of(view: &View, point: &Point) -> Result<Cost, Missing> {
    let target = point.series.target;
    let price = view.receipt.targets[target.unwrap_or(0) as usize].price().ok_or(Missing::NoPrice)?;
    point.summary.window.ok_or(Missing::NoWindow)?;
    match &measured(view.record(point), target)[..] {
        [] => Err(Missing::NotMeasured),
        measured => cost(measured, price).ok_or(Missing::NoUsage),
    }
}
