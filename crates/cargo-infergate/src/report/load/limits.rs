//! What a load run says of the limits it was given: goodput, and the most users that meet them.

use std::fmt::Write as _;

use crate::load::judge::load;
use crate::load::slo::{Limit, goodput, meets};
use crate::load::summary::LevelSummary;
use crate::receipt::LevelRecord;
use crate::report::table::Table;
use crate::report::units;

/// Both, as far as there are limits for them.
pub fn text(levels: &[(&LevelRecord, LevelSummary)], limits: &[Limit]) -> String {
    let (of_levels, of_requests): (Vec<Limit>, Vec<Limit>) =
        limits.iter().copied().partition(|limit| limit.percentile.is_some());
    let mut text = String::new();
    if !of_requests.is_empty() {
        text += &goodputs(levels, &of_requests);
    }
    if !of_levels.is_empty() {
        text += &most_users(levels, &of_levels);
    }
    text
}

fn spelt(limits: &[Limit]) -> String {
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn goodputs(levels: &[(&LevelRecord, LevelSummary)], limits: &[Limit]) -> String {
    let mut table = Table::new(&["goodput", "requests within limits", "share", "requests/s", "95 % interval"]);
    for (level, summary) in levels {
        let Some(found) = goodput(level, summary, limits) else {
            table.plain_row(&[&load(&level.arrivals), units::MISSING, units::MISSING, units::MISSING, units::MISSING]);
            continue;
        };
        table.plain_row(&[
            &load(&level.arrivals),
            &format!("{} of {}", found.good, found.all),
            &units::percent(Some(found.good as f64 / found.all as f64)),
            &units::number(found.requests_per_s),
            &found.within.map_or(units::MISSING.to_owned(), |(low, high)| {
                format!("{} to {}", units::number(low), units::number(high))
            }),
        ]);
    }
    format!("\n{}limits of each request: {}\n", table.render(), spelt(limits))
}

fn most_users(levels: &[(&LevelRecord, LevelSummary)], limits: &[Limit]) -> String {
    let judged: Vec<(u32, bool)> =
        levels.iter().filter_map(|(_, summary)| Some((summary.users?, meets(summary, limits)?))).collect();
    let met = judged.iter().filter(|(_, met)| *met).map(|(users, _)| users).max();
    let missed = judged.iter().filter(|(_, met)| !*met).map(|(users, _)| users).min();
    let mut text = String::from("\n");
    let _ = match (met, missed) {
        (Some(met), Some(missed)) => writeln!(text, "most users that meet {}: {met} ({missed} do not)", spelt(limits)),
        (Some(met), None) => writeln!(text, "{met} users meet {}, and more were not tried", spelt(limits)),
        (None, Some(missed)) => writeln!(text, "{} is not met by {missed} already", spelt(limits)),
        (None, None) => writeln!(text, "{}: no level has enough requests to say", spelt(limits)),
    };
    text
}
