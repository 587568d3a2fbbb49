//! What more users add: the throughput of all of them against so many times that of one alone.

use super::{at_most_users, ends, lines, threshold};
use crate::load::View;
use crate::model::{Axis, Cell, Chart, Finding, Missing, Rows, Section, Unit};

const ABOUT: &str = "Output of all N users / (N x output of one user alone). At 100 % every user is as fast as one alone; at 100 % / N \
                     more users add nothing.";

/// A line a level, and what follows. Nothing where several targets share the users, or where no scenario ran with one user.
pub fn topic(view: &View<'_>) -> Option<Section> {
    if view.digest.points.iter().all(|point| view.scaling(point).is_none()) {
        return None;
    }
    let closed = view.digest.points.iter().filter(|point| point.users().is_some());
    let table = view
        .lead_of_point(Rows::of("levels", "", closed), |point| point)
        .numbers("system", "output of all", |point| {
            Cell::number(point.summary.system_tokens_per_s, Unit::TokensPerS, Missing::NoWindow)
        })
        .about("output tokens of all users a second")
        .detail()
        .numbers("ideal", "ideal", |point| {
            let alone = view.alone(point).and_then(|alone| alone.summary.system_tokens_per_s);
            let ideal = alone.zip(point.users()).map(|(alone, users)| alone * f64::from(users));
            Cell::number(ideal, Unit::TokensPerS, Missing::NoSingleUser)
        })
        .about("users x the output of one alone")
        .detail()
        .numbers("efficiency", "efficiency", |point| {
            let has_window = point.summary.window.is_some();
            let why = if has_window { Missing::NoSingleUser } else { Missing::NoWindow };
            Cell::number(view.scaling(point), Unit::Fraction, why)
        })
        .about("output of all / ideal")
        .table()
        .on_terminal();
    let section = Section::new("load_scaling", "Scaling efficiency").with([ABOUT]).with([table]);
    Some(section.with(finding(view)).with(chart(view)))
}

/// At the most users that all scenarios had.
fn finding(view: &View<'_>) -> Option<Finding> {
    let [(poor, least), (good, most)] = ends(at_most_users(view), |point| view.scaling(point))?;
    let users = poor.users().filter(|users| *users > 1)?;
    let show = |value| Unit::Fraction.show(value);
    let (best, worst) = (view.scenario(good.series.scenario), view.scenario(poor.series.scenario));
    Some(Finding::plain(if best == worst {
        let each = Unit::Times.show(f64::from(users) * most);
        format!("At {users} users scaling efficiency is {}: all of them get {each} the output of one", show(most))
    } else {
        let (most, least) = (show(most), show(least));
        format!("At {users} users scaling efficiency is from {most} ({best}) down to {least} ({worst})")
    }))
}

/// Efficiency over the number of users, where more than one number of users ran, one of them alone.
fn chart(view: &View<'_>) -> Option<Chart> {
    let lines = lines(view, Unit::Fraction, |point| view.scaling(point));
    (!lines.is_empty()).then(|| Chart {
        id: "load-scaling".into(),
        title: "Scaling efficiency".into(),
        caption: ABOUT.into(),
        x: view.axis(),
        y: Axis::new("scaling efficiency", Unit::Fraction).zero(),
        layers: [vec![threshold(view, "ideal", 1.0)], lines].concat(),
    })
}
