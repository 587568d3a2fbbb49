//! What is said of the machine code of base and head.

/// Nothing differs.
pub const SAME: &str =
    "base and head are the same machine code, so nothing was timed; --time-same-code times them all the same";

/// `up to 2 functions changed: engine::decode, engine::step`.
pub fn changed(functions: usize, named: &[String]) -> String {
    format!("up to {functions} function{} changed{}", plural(functions), names(functions, named))
}

/// `it runs none of the 2 functions that changed: ...`.
pub fn runs_nothing(changed: usize) -> String {
    let what = if changed == 1 {
        "does not run the function that changed".into()
    } else {
        format!("runs none of the {changed} functions that changed")
    };
    format!("it {what}: what differs is where the linker put the code; --time-same-code judges it all the same")
}

/// `it runs 1 of the 2 functions that changed: engine::decode`.
pub fn runs(functions: usize, changed: usize, named: &[String]) -> String {
    let which = if changed == 1 {
        "the function that changed".into()
    } else {
        format!("{functions} of the {changed} functions that changed")
    };
    format!("it runs {which}{}", names(functions, named))
}

fn names(functions: usize, named: &[String]) -> String {
    let more = functions.saturating_sub(named.len());
    let more = if more > 0 && !named.is_empty() { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!(": {}{more}", named.join(", ")) }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
