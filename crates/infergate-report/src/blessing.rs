//! What a blessing changes in a baseline: the run, compared with the sessions that were there.

use std::path::Path;

use super::{terminal, units};
use infergate_judge::newest_of_each_day;
use infergate_receipts::{Outcome, Verdict, VerdictRow};

/// How many sessions there were (`before`) and are, and how the new one compares with those before; `None` for the first. `created` are
/// the times of all that there are now.
pub fn changes(compared: Option<&Verdict>, before: usize, created: &[&str], is_step: bool, path: &Path) -> String {
    let (path, after) = (path.display(), created.len());
    let days = newest_of_each_day(created.iter().map(|created| (*created, ()))).len();
    let mut text = format!("\n{path}\nsessions: {before} -> {after}, of {}\n", units::many(days, "day"));
    let Some(compared) = compared else { return text };
    text += &terminal::evidence(compared);
    let moves = |row: &&VerdictRow| {
        row.time().is_some() && matches!(row.outcome, Outcome::Regressed | Outcome::Improved | Outcome::Drifted)
    };
    let moved = units::listed(compared.rows.iter().filter(moves).map(|row| &row.subject));
    if !moved.is_empty() && !is_step {
        text += &format!(
            "\n{moved}: beyond what days differ by, which widens the limits; if a change did it, bless this receipt with --step\n"
        );
    }
    text
}
