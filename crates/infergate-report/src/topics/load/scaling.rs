//! What more users add: the throughput of all of them against so many times that of one alone.

use super::{at_most_users, ends, left_out, lines};
use crate::inputs::Inputs;
use crate::load::{Point, View};
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Section, Table, Tone, Unit};

const ABOUT: &str =
    "Output of all N users / (N x output of one user alone). At 100 % every user is as fast as one alone.";

/// A line a level, and what follows. Nothing where several targets share the users, or where no scenario ran with one user.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    if view.digest.points.iter().all(|point| point.scaling.is_none()) {
        return None;
    }
    let own = vec![
        Column::numbers("system", "output of all").about("output tokens of all users a second").detail(),
        Column::numbers("ideal", "ideal").about("users x the output of one alone").detail(),
        Column::numbers("efficiency", "efficiency").about("output of all / ideal"),
    ];
    let mut table = Table::new("levels", "", [view.columns(), own].concat()).on_terminal();
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
    let section = Section::new("load_scaling", "Scaling efficiency").with([ABOUT]).with([table]);
    Some(section.with(finding(&view)).with(chart(&view)))
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
    let show = |value| Unit::Fraction.show(value);
    let (best, worst) = (view.scenario(good.scenario), view.scenario(poor.scenario));
    let said = if best == worst {
        let each = Unit::Times.show(f64::from(users) * most);
        format!("At {users} users scaling efficiency is {}: all of them get {each} the output of one", show(most))
    } else {
        let (most, least) = (show(most), show(least));
        format!("At {users} users scaling efficiency is from {most} ({best}) down to {least} ({worst})")
    };
    Some(Finding::new(Tone::Plain, said))
}

/// Efficiency over the number of users, where more than one number of users ran, one of them alone.
fn chart(view: &View<'_>) -> Option<Chart> {
    let lines = lines(view, Unit::Fraction, |point| point.scaling);
    let ideal = Layer::Zone { name: "ideal".into(), from: 1.0, to: 1.0, look: Look::ink() };
    (!lines.is_empty()).then(|| Chart {
        id: "load-scaling".into(),
        title: "Scaling efficiency".into(),
        caption: format!(
            "Output of all users / (users x output of one alone). At 100 % each user is as fast as one alone; at 100 % / users more \
             users add nothing.{}",
            left_out(view)
        ),
        x: view.axis(),
        y: Axis::new("scaling efficiency", Unit::Fraction).zero().including(1.0),
        layers: [ideal].into_iter().chain(lines).collect(),
    })
}
