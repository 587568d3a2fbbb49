//! The limits that were asked for: which levels meet them, and how many requests a second do.

use infergate_load::plan::search::{Step, next_step};
use infergate_load::summary::slo::{Goodput, goodput, meets};
use infergate_load::summary::summarise;
use infergate_receipts::Limit;

use crate::load::{Point, View};
use crate::model::{Cell, Missing, Rows, Section, Table, Tone, Unit};
use crate::units::{capital, listed, many};

/// A level and how it keeps to the limits.
struct Judged<'a> {
    point: &'a Point,
    /// Whether it meets those of percentiles; `None` for too few requests.
    meets: Option<bool>,
    /// Requests that met the limits of each request; `None` without a steady window.
    goodput: Option<Goodput>,
}

pub fn topic(view: &View) -> Option<Section> {
    let (of_levels, of_requests): (Vec<Limit>, Vec<Limit>) =
        view.receipt.limits.iter().copied().partition(|limit| limit.percentile.is_some());
    let judged = view.levels().filter(|_| !view.receipt.limits.is_empty()).map(|points| {
        let point = &points[0];
        let level = view.record(point);
        let summary = summarise(level);
        let goodput = goodput(level, &summary, &of_requests);
        Judged { point, meets: meets(&summary, &of_levels), goodput }
    });
    let judged: Vec<Judged<'_>> = judged.collect();
    let mut section = Section::new("load_limits", "Limits").on_terminal();
    if !of_levels.is_empty() {
        let limits = listed(&of_levels);
        let most = view.scenarios().into_iter().map(|scenario| {
            let most = capital(&most_users(&judged, scenario, &limits));
            if view.has_scenarios() { format!("{}: {most}.", view.scenario(scenario)) } else { format!("{most}.") }
        });
        let most: Vec<String> = most.collect();
        section = section.with([most]).with([met(view, &judged)]);
    }
    if !of_requests.is_empty() {
        let note = format!("Limits of each request: {}.", listed(&of_requests));
        section = section.with([goodputs(view, &judged).noted(note)]);
    }
    Some(section)
}

fn met(view: &View, judged: &[Judged<'_>]) -> Table {
    view.lead(Rows::of("met", "", judged), |level| level.point)
        .titled_words("met", "limits", |level| match level.meets {
            Some(true) => Cell::text("met").toned(Tone::Good),
            Some(false) => Cell::text("missed").toned(Tone::Bad),
            None => Cell::text("not shown: too few requests").toned(Tone::Warn),
        })
        .table()
}

fn goodputs(view: &View, judged: &[Judged<'_>]) -> Table {
    let number = |unit, value: fn(Goodput) -> f64| {
        move |level: &&Judged<'_>| Cell::number(level.goodput.map(value), unit, Missing::NoWindow)
    };
    view.lead(Rows::of("goodput", "Goodput", judged), |level| level.point)
        .titled_numbers("good", "within limits", number(Unit::Count, |found| found.good as f64))
        .titled_numbers("all", "of", number(Unit::Count, |found| found.all as f64))
        .about("requests that ended in the steady window, failed ones too")
        .numbers("share", number(Unit::Fraction, |found| found.good as f64 / found.all as f64))
        .numbers("goodput", |level| {
            let rate = number(Unit::RequestsPerS, |found| found.requests_per_s)(level);
            rate.within(level.goodput.and_then(|found| found.within))
        })
        .about("within limits / the window's length, with the 95 % interval by batch means")
        .table()
        .on_terminal()
}

/// The most users that meet the limits of percentiles. One run is not enough: of several levels that met them the largest is also
/// the luckiest.
fn most_users(judged: &[Judged<'_>], scenario: usize, limits: &str) -> String {
    let own = judged.iter().filter(|level| level.point.series.scenario == scenario);
    let judged: Vec<(u32, Option<bool>)> = own.filter_map(|level| Some((level.point.users()?, level.meets))).collect();
    let tried: Vec<(u32, bool)> = judged.iter().map(|(users, met)| (*users, *met == Some(true))).collect();
    let ended = |wanted| judged.iter().filter(move |(_, met)| *met == Some(wanted)).map(|(users, _)| *users);
    let (met, missed) = (ended(true).max(), ended(false).min());
    let beyond =
        missed.map_or_else(|| "; no more were shown to".to_owned(), |missed| format!("; a run of {missed} does not"));
    // More users than ran are no answer.
    match (next_step(&tried, 0), met, missed) {
        (Step::Found(Some(found)), ..) => format!("most users that meet {limits}, shown in two runs: {found}{beyond}"),
        (_, Some(met), _) => format!("one run of {} meets {limits}{beyond}", many(met as usize, "user")),
        (_, None, Some(missed)) => format!("no number of users meets {limits}: a run of {missed} does not"),
        (_, None, None) => format!("no level has enough requests to say whether it meets {limits}"),
    }
}
