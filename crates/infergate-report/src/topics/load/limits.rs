//! The limits that were asked for: which levels meet them, and how many requests a second do.

use crate::inputs::Inputs;
use crate::load::{Limited, View};
use crate::model::{Cell, Column, Missing, Section, Table, Tone, Unit};
use crate::units::capital;
use infergate_core::load::Arrivals;
use infergate_load::judge::search::{Step, next_step};
use infergate_receipts::Limit;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(|view| !view.digest.limited.is_empty())?;
    let mut section = Section::new("load_limits", "Limits").on_terminal();
    let (of_levels, of_requests) = limits(&view);
    if let Some(limits) = of_levels {
        let most = view.scenarios().map(|(scenario, _)| {
            let said = capital(&most_users(&view, scenario, &limits));
            if view.has_scenarios() { format!("{}: {said}.", view.scenario(scenario)) } else { format!("{said}.") }
        });
        let most: Vec<String> = most.collect();
        section = section.with([format!("Limits of a level: {limits}")]).with([most]).with([met(&view)]);
    }
    if let Some(limits) = of_requests {
        section = section.with([goodput(&view).noted(format!("Limits of each request: {limits}."))]);
    }
    Some(section)
}

/// The limits of percentiles and those of each request, as they were written.
fn limits(view: &View<'_>) -> (Option<String>, Option<String>) {
    let (of_levels, of_requests): (Vec<&Limit>, Vec<&Limit>) =
        view.receipt.limits.iter().partition(|limit| limit.percentile.is_some());
    let spelt = |limits: Vec<&Limit>| limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let spelt = |limits: Vec<&Limit>| (!limits.is_empty()).then(|| spelt(limits));
    (spelt(of_levels), spelt(of_requests))
}

fn lead(view: &View<'_>, level: &Limited) -> Vec<Cell> {
    view.level_cells(level.scenario, &level.arrivals)
}

fn met(view: &View<'_>) -> Table {
    let columns = [view.level_columns(), vec![Column::words("met", "limits")]].concat();
    let mut table = Table::new("met", "", columns);
    for level in &view.digest.limited {
        let met = match level.meets {
            Some(true) => Cell::text("met").toned(Tone::Good),
            Some(false) => Cell::text("missed").toned(Tone::Bad),
            None => Cell::text("not shown: too few requests").toned(Tone::Warn),
        };
        table.row([lead(view, level), vec![met]].concat());
    }
    table
}

fn goodput(view: &View<'_>) -> Table {
    let own = vec![
        Column::numbers("good", "within limits"),
        Column::numbers("all", "of").about("measured requests, failed ones too"),
        Column::numbers("share", "share"),
        Column::numbers("goodput", "goodput")
            .about("with the 95 % interval of the share by batch means, times the rate"),
    ];
    let mut table = Table::new("goodput", "Goodput", [view.level_columns(), own].concat()).on_terminal();
    for level in &view.digest.limited {
        let found = level.goodput;
        let count = |count: Option<u64>| Cell::number(count.map(|count| count as f64), Unit::Count, Missing::NoWindow);
        let rate = found.map(|found| found.requests_per_s);
        let own = vec![
            count(found.map(|found| found.good)),
            count(found.map(|found| found.all)),
            Cell::number(found.map(|found| found.good as f64 / found.all as f64), Unit::Fraction, Missing::NoWindow),
            Cell::number(rate, Unit::RequestsPerS, Missing::NoWindow).within(found.and_then(|found| found.within)),
        ];
        table.row([lead(view, level), own].concat());
    }
    table
}

/// The most users that meet the limits of percentiles. One run is not enough: of several levels that met them the largest is also
/// the luckiest.
fn most_users(view: &View<'_>, scenario: usize, limits: &str) -> String {
    let of_users = view.digest.limited.iter().filter(|level| level.scenario == scenario);
    let judged: Vec<(u32, Option<bool>)> = of_users.filter_map(|level| Some((users(level)?, level.meets))).collect();
    let tried: Vec<(u32, bool)> = judged.iter().map(|(users, met)| (*users, *met == Some(true))).collect();
    let most = tried.iter().map(|(users, _)| *users).max().unwrap_or_default();
    let met = tried.iter().filter(|(_, met)| *met).map(|(users, _)| *users).max();
    let missed = judged.iter().filter(|(_, met)| *met == Some(false)).map(|(users, _)| *users).min();
    let beyond =
        missed.map_or_else(|| ", and no more were shown to".to_owned(), |missed| format!(" ({missed} do not)"));
    match (next_step(&tried, most), met, missed) {
        (Step::Found(Some(found)), ..) => format!("most users that meet {limits}, shown in two runs: {found}{beyond}"),
        (_, Some(met), Some(missed)) if missed <= met => {
            format!("one run of {met} users meets {limits}, and one of {missed} does not: run it again")
        }
        (Step::Run(_), Some(met), _) => format!("one run of {met} users meets {limits}, and was not repeated{beyond}"),
        (_, _, Some(missed)) => format!("no number of users meets {limits}: {missed} do not"),
        (_, _, None) => format!("no level has enough requests to say whether it meets {limits}"),
    }
}

fn users(level: &Limited) -> Option<u32> {
    if let Arrivals::Closed { users } = level.arrivals { Some(users) } else { None }
}
