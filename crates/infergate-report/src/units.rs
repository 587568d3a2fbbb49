//! Numbers as a person reads them. What is missing is an em dash, never 0.

pub use infergate_core::memory::size as bytes;

/// Stands for a number that does not exist.
pub const MISSING: &str = "—";

/// Units of time, each a thousand of the one before.
const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];
/// Digits that a time beside a change has at most, in addition to three.
const MOST_MORE_DIGITS: usize = 5;

/// Nanoseconds in the unit that leaves three digits: `121 ms`, `1.48 s`.
pub fn duration(ns: f64) -> String {
    precise_duration(ns, 0)
}

/// The same with `more` digits: `121.4 ms`.
pub fn precise_duration(ns: f64, more: usize) -> String {
    scaled(ns, &TIMES, more)
}

/// How many more digits two times need, so that a reader who works out the change between them gets the one that is shown.
pub fn digits_of_change(base_ns: Option<f64>, head_ns: Option<f64>) -> usize {
    let read = |ns: Option<f64>, more| {
        let text = precise_duration(ns?, more);
        let (number, unit) = text.split_once(' ')?;
        let thousands = TIMES.iter().position(|known| *known == unit)?;
        Some(number.parse::<f64>().ok()? * 1e3_f64.powi(thousands as i32))
    };
    let seen = |more: usize| Some(change(read(head_ns, more)? / read(base_ns, more)? - 1.0));
    let exact = head_ns.zip(base_ns).map(|(head, base)| change(head / base - 1.0));
    (0..MOST_MORE_DIGITS).find(|more| seen(*more) == exact).unwrap_or(MOST_MORE_DIGITS)
}

/// In the unit that leaves three digits, each a thousand of the one before.
pub fn scaled(mut value: f64, units: &[&str], more: usize) -> String {
    let mut at = 0;
    // What rounds to a thousand of one unit is one of the next.
    while value.abs() >= 999.5 && at + 1 < units.len() {
        value /= 1e3;
        at += 1;
    }
    format!("{} {}", digits(value, more), units[at])
}

/// From one number to another, a unit that both have once; one number where a reader sees no other.
pub fn from_to<T>(show: impl Fn(T) -> String, from: T, to: T) -> String {
    let (from, to) = (show(from), show(to));
    match (from.rsplit_once(' '), to.rsplit_once(' ')) {
        _ if from == to => from,
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// The same of what base has and what head has: `13.14 → 13.98 ms`.
pub fn base_to_head<T>(show: impl Fn(T) -> String, base: T, head: T) -> String {
    from_to(show, base, head).replace(" to ", " → ")
}

pub fn tokens_per_s(rate: f64) -> String {
    format!("{} tok/s", digits(rate, 0))
}

/// A fraction as a percentage with its leading digits, however small, and none that are zero: `62 %`, `97.5 %`, `0.41 %`, `0.0001 %`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = if percent > 0.0 && percent < 1.0 { (1.0 - percent.log10().floor()) as usize } else { 1 };
    let text = format!("{percent:.digits$}");
    format!("{} %", trimmed(&text))
}

/// Without digits behind the point that say nothing.
pub fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Four digits, and all of those before the point; three of what is below 1.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        value => (2.0 - value.log10().floor()).clamp(3.0, 12.0) as usize,
    };
    trimmed(&format!("{value:.digits$}")).into()
}

/// A count of things: `1 day`, `2 days`.
pub fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `a, b, c`.
pub fn listed(items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// Money without a currency: three digits however small it is, and all of those before the point.
pub fn price(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    let digits = if magnitude.is_finite() { (2.0 - magnitude).clamp(2.0, 15.0) as usize } else { 2 };
    format!("{value:.digits$}")
}

/// A change with its sign, but for what rounds to nothing: `+1.7 %`, `+168 %`.
pub fn change(change: f64) -> String {
    let decimals = usize::from(change.abs() < 0.9995);
    let text = format!("{:+.decimals$} %", change * 100.0);
    if &text[1..] == "0.0 %" { text[1..].into() } else { text }
}

/// `12.3 times`.
pub fn times(factor: f64) -> String {
    format!("{} times", digits(factor, 0))
}

/// Three digits, and `more`.
fn digits(value: f64, more: usize) -> String {
    let decimals = match value.abs() {
        size if size < 9.995 => 2 + more,
        size if size < 99.95 => 1 + more,
        _ => more,
    };
    format!("{value:.decimals$}")
}

/// A name as a heading: `End-to-end latency`.
pub fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// A sentence as a title; one that begins with the name of a case stays as it is.
pub fn sentence(said: &str) -> String {
    let first = said.split(' ').next().unwrap_or_default();
    if first.chars().all(char::is_alphabetic) { capital(said) } else { said.into() }
}
