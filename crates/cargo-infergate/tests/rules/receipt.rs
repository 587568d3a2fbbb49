//! Receipts, baselines and verdicts as files: read forever, refused with a sentence, written whole or not at all.

mod golden;
mod load_baseline;
mod refused;
mod schemas;
mod support;
mod verdict;
mod written;
