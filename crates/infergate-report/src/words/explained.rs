//! Which functions took the time, in lines.

use infergate_core::case::Case;
use infergate_core::printable::printable_within;

use crate::{units, words};
use infergate_receipts::{Explained, ExplainedFunction, Moved};

/// Functions that are named.
const MOST_NAMED: usize = 4;
/// Characters of a function's name.
const MOST_CHARACTERS: usize = 100;
/// The least part of the whole change for which a sentence says that it waits, or is left over.
const LEAST_SHARE: f64 = 0.1;

/// `where fib takes its time (8 more blocks with a profiler: +28.6 µs an iteration (+24.5 to +32.6 µs))`.
pub fn title(explained: &Explained) -> String {
    let Explained { id, blocks, total, .. } = explained;
    let seen = total
        .map_or_else(String::new, |total| format!(" ({blocks} more blocks with a profiler: {})", change(&total, *id)));
    format!("where {id} takes its time{seen}")
}

/// A line for what is to be said of a case, the largest change first.
pub fn lines(explained: &Explained) -> Vec<String> {
    if let Some(why) = &explained.why_not {
        return vec![format!("no function was named: {why}")];
    }
    let Explained { total: Some(total), functions, .. } = explained else { return Vec::new() };
    let is_with_it = |time: &Moved| (time.change_ns() >= 0.0) == (total.change_ns() >= 0.0);
    let is_worth_it = |ns: f64| ns.abs() >= LEAST_SHARE * total.change_ns().abs();
    let mut lines = Vec::new();
    if !total.is_sure() {
        lines.push("these blocks show no difference in its time".to_owned());
    }
    if explained.runs_changed == Some(false) {
        lines.push("no function that changed was sampled: it runs too briefly, or before the timed part".to_owned());
    }
    let waiting = explained.waiting.filter(|time| time.is_sure() && is_with_it(time) && is_worth_it(time.change_ns()));
    lines.extend(waiting.map(|waiting| {
        format!("{} in which no thread works: it waits, sleeps, or reads a file", part(&waiting, explained))
    }));
    let named: Vec<&ExplainedFunction> = functions.iter().filter(|function| is_with_it(&function.time)).collect();
    // Where threads work at the same time, their time together grows by more than the iteration's: each has its part of that.
    let both = explained.processor.filter(|time| explained.waiting.is_none() && time.head_ns > 0.0);
    let by_clock = both.map_or(1.0, |processor| total.head_ns / processor.head_ns);
    lines.extend(named.iter().take(MOST_NAMED).map(|named| function(named, by_clock, explained)));
    if named.len() > MOST_NAMED {
        lines.push(format!("and {} more functions", named.len() - MOST_NAMED));
    }
    if named.is_empty() && waiting.is_none() && total.is_sure() {
        let samples = explained.base_samples + explained.head_samples;
        lines.push(format!("no function stands out of the noise of {samples} samples"));
    } else if explained.waiting.is_some() {
        let known = functions.iter().map(|function| &function.time).chain(&waiting).map(Moved::change_ns).sum::<f64>();
        let left = total.change_ns() - known;
        lines.extend(
            is_worth_it(left).then(|| format!("{} {} not attributed", signed(left), words::each(explained.id))),
        );
    }
    lines
}

/// `92 % of the slowdown (84 to 100 %) in `engine::attend`, `src/step.rs:131`, whose code changed; mostly its calls of `memcpy``.
/// Times of the processor times `by_clock`.
fn function(function: &ExplainedFunction, by_clock: f64, explained: &Explained) -> String {
    let place = function.place.as_ref().map_or_else(String::new, |place| format!(", `{}`", name(place)));
    let code = match (function.edited, function.changed) {
        (Some(true), _) => ", which this change edits",
        (Some(false), Some(true)) => ", whose machine code changed, but not its source",
        (None, Some(true)) => ", whose machine code changed",
        (_, Some(false)) => ", whose code did not change",
        (_, None) => "",
    };
    let caller = function.caller.as_ref().filter(|_| function.edited != Some(true));
    let caller = caller.map_or_else(String::new, |caller| format!("; called by `{}`", short(caller)));
    // Its own time is measured as finely as the function's, so that a part can seem larger than the whole.
    let below = units::listed(function.called.iter().map(|called| format!("`{}`", short(&called.name))));
    let below = if below.is_empty() { below } else { format!("; mostly its calls of {below}") };
    let Moved { base_ns, head_ns, low_ns, high_ns } = function.time;
    let [base_ns, head_ns, low_ns, high_ns] = [base_ns, head_ns, low_ns, high_ns].map(|ns| ns * by_clock);
    let time = part(&Moved { base_ns, head_ns, low_ns, high_ns }, explained);
    format!("{time} in `{}`{place}{code}{caller}{below}", short(&function.name))
}

/// The file and the line of a place: of `dot at src/step.rs:131` `src/step.rs` and `131`. `None` for what leads out of a repository.
pub fn file_of(place: &str) -> Option<(&str, &str)> {
    let (file, line) = place.rsplit(" at ").next()?.rsplit_once(':')?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_inside = file.split('/').all(|folder| folder != "..");
    (is_inside && file.chars().all(is_path) && line.bytes().all(|digit| digit.is_ascii_digit())).then_some((file, line))
}

/// `92 % of the slowdown (84 to 100 %)`, where it is sure that there is one; else the change.
fn part(time: &Moved, explained: &Explained) -> String {
    let Some(total) = explained.total.filter(|total| total.low_ns > 0.0) else { return change(time, explained.id) };
    // Another function can be faster.
    let [part, low, high] =
        [time.change_ns(), time.low_ns, time.high_ns].map(|ns| (100.0 * ns / total.change_ns()).min(100.0));
    format!("{part:.0} % of the slowdown ({low:.0} to {high:.0} %)")
}

/// `+810 µs a token (+740 to +880 µs)`.
pub fn change(time: &Moved, case: Case) -> String {
    let interval = units::from_to(signed, time.low_ns, time.high_ns);
    format!("{} {} ({interval})", signed(time.change_ns()), words::each(case))
}

/// The parts of a function's path. Type arguments of their own, and closures, say little and are left out.
pub fn parts(function: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    let (mut depth, mut begin) = (0_i32, 0);
    for (at, c) in function.char_indices() {
        match c {
            '<' => depth += 1,
            // `->` of a function's type is no bracket.
            '>' if !function[..at].ends_with('-') => depth -= 1,
            ':' if depth == 0 && function[..at].ends_with(':') => {
                parts.push(&function[begin..at - 1]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&function[begin..]);
    parts.retain(|part| {
        !part.starts_with('{') && (!part.starts_with('<') || part.contains(" as ") || part.contains("impl "))
    });
    parts
}

/// A function as people call it, by its type or module: `Gpt2::attend` of `<engine::Gpt2 as infergate::Engine>::attend::<f32>`.
pub fn short(function: &str) -> String {
    let parts = parts(function);
    let last = parts.len().saturating_sub(2);
    let owner = |part: &&str| match part.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')) {
        Some(inner) => {
            let of = inner.split(" as ").next().unwrap_or(inner);
            short(of.rsplit(" for ").next().unwrap_or(of).trim_start_matches("impl "))
                .rsplit("::")
                .next()
                .unwrap_or(of)
                .to_owned()
        }
        None => name(part),
    };
    parts[last..].iter().map(owner).collect::<Vec<_>>().join("::")
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "" } else { "+" }, units::duration(ns))
}

fn name(name: &str) -> String {
    printable_within(name, MOST_CHARACTERS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{file_of, short};

    #[test]
    fn functions_are_known_by_their_type_or_module() {
        for (symbol, name) in [
            ("attend", "attend"),
            ("engine::step::attend", "step::attend"),
            ("engine::step::attend::{{closure}}", "step::attend"),
            ("<engine::Gpt2 as infergate::Engine<f32>>::next", "Gpt2::next"),
            ("engine::step::<impl engine::shard::Linear>::apply", "Linear::apply"),
            ("<impl core::ops::Add for engine::Sum<f32>>::add", "Sum<f32>::add"),
            ("engine::dot::<core::slice::Iter<'_, f32>, fn(u8) -> u8>", "engine::dot"),
        ] {
            assert_eq!(short(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn places_have_a_file_and_a_line() {
        assert_eq!(file_of("dot at src/step.rs:131"), Some(("src/step.rs", "131")));
        assert_eq!(file_of("a](http://x):1"), None);
        assert_eq!(file_of("../../../../other/repository/blob/main/a.rs:1"), None);
    }
}
