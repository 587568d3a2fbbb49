//! Sessions of one day share what that day was like: the neighbours of a virtual machine, its clock, its memory. Eight of one
//! hour say how much a session varies within that hour, and nothing of how far the next one will lie. So the spread comes from
//! days. The newest session of a day stands for it, as one session is what is judged: means over several of a day vary less than
//! a single one does, and a limit from them would call more of what did not change (simulated in tests/rules/gate/days.rs).

use std::collections::BTreeMap;

/// The newest of each UTC day's `sessions`, oldest day first; each is given as its time of creation and what it is. Where times of
/// creation name no day it cannot be known which were apart: together they count as one.
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

/// Values in segments, which steps end. Each is given with the number of its segment and its session's time of creation; of each
/// day of a segment the newest counts. Stretches without a value are left out.
pub fn newest_per_day_by_segment(sessions: &[(usize, &str, f64)]) -> Vec<Vec<f64>> {
    let mut segments: BTreeMap<usize, Vec<(&str, f64)>> = BTreeMap::new();
    for (segment, created, value) in sessions {
        segments.entry(*segment).or_default().push((*created, *value));
    }
    segments.into_values().map(newest_of_each_day).collect()
}

/// The number of the segment of each of a baseline's sessions, which say whether there is a step before them.
pub fn segments(steps: impl IntoIterator<Item = bool>) -> impl Iterator<Item = usize> {
    steps.into_iter().scan(0, |segment, is_step| {
        *segment += usize::from(is_step);
        Some(*segment)
    })
}

/// The day of `2026-11-21T08:56:17Z`; `None` for what is no time in UTC.
fn day(created: &str) -> Option<&str> {
    let (day, time) = created.split_once('T')?;
    time.ends_with('Z').then_some(day)
}
