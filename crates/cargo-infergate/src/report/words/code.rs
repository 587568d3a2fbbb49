//! What is said of the machine code of base and head.

/// Nothing differs.
pub const SAME: &str =
    "base and head are the same machine code, so nothing was timed; --time-same-code times them all the same";

/// `up to 2 functions changed: engine::decode, engine::step`.
pub fn changed(functions: usize, named: &[String]) -> String {
    let plural = if functions == 1 { "" } else { "s" };
    let more = functions.saturating_sub(named.len());
    let more = if more > 0 && !named.is_empty() { format!(" and {more} more") } else { String::new() };
    let names = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    format!("up to {functions} function{plural} changed{names}{more}")
}
