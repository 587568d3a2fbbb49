//! Sessions of one day share its conditions: the neighbours of a virtual machine, its clock, its memory. Eight sessions of one
//! hour show how much sessions vary within that hour, and not how far the next day will differ. So the spread comes from days.
//! The newest session of a day stands for it, since one session is what is judged: means over the sessions of a day vary less
//! than one session does, and a limit from them would fail more unchanged programs (simulated in tests/rules/gate/days.rs).

use std::collections::BTreeMap;

/// The newest of each UTC day's `sessions`, oldest day first; each is a time of creation and a value. Sessions whose time of
/// creation names no day count as one day, since nobody knows which were apart.
pub fn newest_of_each_day<'a, T>(sessions: impl IntoIterator<Item = (&'a str, T)>) -> Vec<T> {
    let mut days: BTreeMap<Option<&str>, (&str, T)> = BTreeMap::new();
    for (created, session) in sessions {
        let day = day(created);
        if days.get(&day).is_none_or(|(newest, _)| *newest <= created) {
            days.insert(day, (created, session));
        }
    }
    days.into_values().map(|(_, session)| session).collect()
}

/// The newest value of each day, by segment between steps. Each of `sessions` is the number of its segment, its time of creation
/// and its value. Segments without a value are skipped.
pub fn newest_per_day_by_segment(sessions: &[(usize, &str, f64)]) -> Vec<Vec<f64>> {
    let mut segments: BTreeMap<usize, Vec<(&str, f64)>> = BTreeMap::new();
    for (segment, created, value) in sessions {
        segments.entry(*segment).or_default().push((*created, *value));
    }
    segments.into_values().map(newest_of_each_day).collect()
}

/// The number of the segment of each of a baseline's sessions; `steps` tells which sessions follow a step.
pub fn segments(steps: impl IntoIterator<Item = bool>) -> impl Iterator<Item = usize> {
    steps.into_iter().scan(0, |segment, is_step| {
        *segment += usize::from(is_step);
        Some(*segment)
    })
}

/// The day of `2026-11-21T08:56:17Z`; `None` if it is no time in UTC.
fn day(created: &str) -> Option<&str> {
    let (day, time) = created.split_once('T')?;
    time.ends_with('Z').then_some(day)
}
