//! The search for the largest load that meets the limits. Pure.

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Run this many users.
    Run(u32),
    /// The most users that were shown to meet the limits twice; `None` where not even the fewest did.
    Found(Option<u32>),
}

/// How many users to run next, given which runs were shown to meet the limits, in the order in which they ran: doubled until one
/// was not, then the middle, down to a twentieth. The most that met them are run once more, because the largest of several levels
/// that met is also the luckiest. Where that run does not meet them, the next smaller one that did is confirmed in its place.
pub fn next_step(tried: &[(u32, bool)], most: u32) -> Step {
    let missed = tried.iter().filter(|(_, met)| !*met).map(|(users, _)| *users).min();
    let met = tried
        .iter()
        .filter(|(users, met)| *met && missed.is_none_or(|missed| *users < missed))
        .map(|(users, _)| *users)
        .max();
    let runs = |users: u32| tried.iter().filter(|(other, _)| *other == users).count();
    // After the first confirmation nothing larger is tried: searching on until luck confirms would undo it.
    let is_confirming = tried.iter().any(|(users, _)| runs(*users) > 1);
    let larger = if is_confirming { None } else { larger(met.unwrap_or(0), missed, most) };
    match (larger, met) {
        (Some(users), _) => Step::Run(users),
        (None, Some(users)) if runs(users) < 2 => Step::Run(users),
        (None, met) => Step::Found(met),
    }
}

/// More users than `met` that are worth a run.
fn larger(met: u32, missed: Option<u32>, most: u32) -> Option<u32> {
    match missed.map(|missed| missed - met) {
        None => (met < most).then(|| (2 * met).clamp(1, most)),
        Some(gap) => (gap > 1 && 20 * gap > met).then_some(met + gap / 2),
    }
}
