//! Receipts, baselines and verdicts as files: read, refused with a sentence, written whole or not at all.

mod golden;
mod load_baseline;
mod pull_request;
mod schemas;
mod support;
mod written;
