//! Receipts as the judge's own tests make them.

#[path = "../../../infergate-judge/tests/rules/gate/load_runs.rs"]
pub mod load_runs;
#[path = "../../../infergate-judge/tests/rules/gate/support.rs"]
pub mod support;
