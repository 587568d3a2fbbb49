//! What pages say of themselves: their titles, and what stands in place of rows and pictures that show nothing.

use infergate_core::case::Case;

use crate::report::model::Table;
use crate::report::units;

/// A run whose times are no measure of the engine.
pub fn unusable(above: usize, cases: usize, cv: f64) -> String {
    let which = if above == cases { "these times".into() } else { format!("the times of {above} of {cases} cases") };
    format!("Do not use {which}: between processes they vary by up to {}", units::percent(Some(cv)))
}

/// A run without a verdict: its first token, and each further one.
pub fn of_run(first: Option<(Case, f64)>, further: Option<(Case, f64)>) -> Option<String> {
    let show = |ns| units::duration(Some(ns));
    let first = first.map(|(case, ns)| format!("{} after a prompt of {} tokens", show(ns), case.prompt_tokens()));
    let further = further.map(|(_, ns)| show(ns));
    match (first, further) {
        (Some(first), Some(further)) => {
            Some(format!("The first token comes {first}, each further one after {further}"))
        }
        (Some(first), None) => Some(format!("The first token comes {first}")),
        (None, Some(further)) => Some(format!("A token comes each {further}")),
        (None, None) => None,
    }
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

/// Rows of a table that are folded.
pub fn folded(table: &Table, rows: usize) -> String {
    match (rows < table.rows.len(), table.title.as_str()) {
        (true, _) => format!("{rows} more rows with nothing to look at"),
        (false, "") => format!("{rows} rows with nothing to look at"),
        (false, title) => format!("{title}: {rows} rows with nothing to look at"),
    }
}

/// How figures of cases are made.
pub const PERCENTILES: &str = "All samples of all processes. A percentile is printed from the number of samples on for which a 95 % interval of it \
                               exists: 6 for the median, 72 for P95, 368 for P99.";
/// Which tail of a rate is the slow one.
pub const RATES: &str = "Of rates the slow tail is P5 and P1.";

/// What stands in place of a picture of memory that does not grow.
pub const FLAT: &str = " Neither grows by what counts.";
