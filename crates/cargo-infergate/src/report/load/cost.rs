//! What requests cost, where prices were given.

use std::fmt::Write as _;

use infergate_core::printable::printable;

use super::Row;
use crate::load::cost::cost;
use crate::load::summary::measured;
use crate::receipt::TargetRecord;
use crate::report::units;

/// A line a level and target; nothing without prices.
pub fn text(rows: &[Row<'_>], targets: &[TargetRecord]) -> String {
    let mut text = String::new();
    for Row { name, target, level, .. } in rows {
        let known = (0..).zip(targets).find(|(_, known)| known.name() == *target || targets.len() == 1);
        let Some((index, price)) = known.and_then(|(index, known)| Some((index, known.price()?))) else { continue };
        let requests = measured(level, Some(index));
        if requests.is_empty() {
            continue;
        }
        let cost = cost(&requests, price);
        let line = cost.and_then(|cost| Some((cost.request, cost.per_million_output_tokens?))).map_or_else(
            || "its cost is not known: the server sends no token counts".to_owned(),
            |(request, million)| {
                format!("{} a request, {} a million output tokens", units::price(request), units::price(million))
            },
        );
        let _ = writeln!(text, "{}: {line}", printable(name));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
