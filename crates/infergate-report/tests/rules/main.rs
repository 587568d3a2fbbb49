//! What a report says, and how each format says it.

mod report;
mod report_formats;
