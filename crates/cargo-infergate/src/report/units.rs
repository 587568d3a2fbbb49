//! Numbers as a person reads them. What is missing is an em dash, never 0.

/// Stands for a number that does not exist.
pub const MISSING: &str = "—";

/// Nanoseconds in the unit that leaves three digits: `121 ms`, `1.48 s`.
pub fn duration(ns: Option<f64>) -> String {
    let Some(ns) = ns else { return MISSING.into() };
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Tokens per second.
pub fn tokens_per_s(rate: Option<f64>) -> String {
    rate.map_or_else(|| MISSING.into(), |rate| format!("{} tok/s", three_digits(rate)))
}

/// A fraction as a percentage: `62 %`.
pub fn percent(fraction: Option<f64>) -> String {
    match fraction {
        None => MISSING.into(),
        Some(fraction) if fraction < 0.1 => format!("{:.1} %", fraction * 100.0),
        Some(fraction) => format!("{:.0} %", fraction * 100.0),
    }
}

/// Bytes in the unit that leaves three digits: `4.00 KiB`, `475 MiB`.
pub fn bytes(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else { return MISSING.into() };
    let (mut value, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB"] {
        if value.abs() < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{value:.0} B") } else { format!("{} {unit}", three_digits(value)) }
}

/// A change with its sign: `+1.7 %`.
pub fn signed_percent(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 0.0 => format!("-{}", three_digits(-value)),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
