//! What more users add: the throughput of all of them against so many times that of one alone.

use super::{at_most_users, ends, found};
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::View;
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line a level, and what follows. Nothing where several targets share the users, or where no scenario ran with one user.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    if view.digest.points.iter().all(|point| point.scaling.is_none()) {
        return None;
    }
    let own = vec![
        Column::numbers("system", "output of all").about("output tokens of all users a second"),
        Column::numbers("ideal", "ideal").about("users x the output of one alone"),
        Column::numbers("efficiency", "efficiency").about("output of all / ideal"),
    ];
    let mut table = Table::new("levels", "", [view.columns(), own].concat());
    for point in view.digest.points.iter().filter(|point| point.users().is_some()) {
        let why = match (point.window, alone(&view, point)) {
            (None, _) => Missing::NoWindow,
            (Some(_), None) => Missing::NoSingleUser,
            _ => Missing::Undefined,
        };
        let ideal = alone(&view, point).zip(point.users()).map(|(alone, users)| alone * f64::from(users));
        let mut cells = view.cells(point);
        cells.extend([
            Cell::number(point.system_tokens_per_s, Unit::TokensPerS, Missing::NoWindow),
            Cell::number(ideal, Unit::TokensPerS, Missing::NoSingleUser),
            Cell::number(point.scaling, Unit::Fraction, why),
        ]);
        table.row(cells);
    }
    let section =
        Section::new("load_scaling", "Scaling efficiency").with(Block::Said(words::ABOUT_SCALING.into())).with(table);
    Some(match finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

/// What all users of one get out of the same scenario.
fn alone(view: &View<'_>, point: &Point) -> Option<f64> {
    let points = view.digest.points.iter().filter(|other| other.scenario == point.scenario);
    points.filter(|other| other.users() == Some(1)).find_map(|other| other.system_tokens_per_s)
}

/// At the most users that all scenarios had.
fn finding(view: &View<'_>) -> Option<Finding> {
    let points = at_most_users(view);
    let [(poor, least), (good, most)] = ends(&points, |point| point.scaling)?;
    let users = poor.users().filter(|users| *users > 1)?;
    let name = |point: &Point| format!("scaling efficiency of {}", view.place_name(point));
    let mut figures = vec![(name(good), most, Unit::Fraction)];
    if poor.scenario != good.scenario {
        figures.push((name(poor), least, Unit::Fraction));
    }
    let said = words::scaling(users, (&view.scenario(good.scenario), most), (&view.scenario(poor.scenario), least));
    found(Tone::Plain, said, &figures)
}
