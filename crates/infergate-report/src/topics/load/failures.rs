//! Requests that failed, by class. In a percentile they count as slower than all others.

use std::collections::BTreeMap;

use infergate_core::load::FailureClass;

use crate::inputs::Inputs;
use crate::load::{Point, Uptime, View};
use crate::model::{Cell, Column, Missing, Section, Tone, Unit};

/// A line a level and target with a failure or a request that was made again; nothing where all went well and one target was
/// asked.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let is_well = view.digest.points.iter().all(|point| point.failed() == 0 && point.retries == 0);
    if is_well && !view.has_targets() {
        return None;
    }
    let own = vec![
        Column::numbers("ended", "requests").about("that were not given up when the run ended"),
        Column::numbers("failed", "failed"),
        Column::numbers("rate", "error rate").about("with its 95 % interval by batch means"),
        Column::numbers("retries", "made again")
            .about("attempts that ended in 429, 5xx or a connection that the server had just closed"),
        Column::numbers("status_429", "429").about("requests that every attempt was refused: too many at once"),
        Column::numbers("down", "answered nobody").about(
            "from a request that failed to the next start of one that was answered (at a rate to the end of the last one that \
             failed), while no other was being answered",
        ),
        Column::numbers("uptime", "uptime").about("the rest of the time, as a part of all of it"),
        Column::words("classes", "how"),
    ];
    let table = view.table("failures", "", own, |point| {
        let ended = point.issued.saturating_sub(point.cancelled);
        let failed = point.failed();
        let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
        let count = |count: u64| Cell::of(count as f64, Unit::Count);
        let classes = classes(&point.failures);
        vec![
            count(ended),
            count(failed).toned(tone),
            Cell::of(failed as f64 / ended as f64, Unit::Fraction).within(point.failed_within).toned(tone),
            count(point.retries),
            count(point.failures.get(&FailureClass::Status429).copied().unwrap_or(0)),
            down(point),
            Cell::number(point.uptime.map(Uptime::share), Unit::Fraction, not_known(point)),
            Cell::text(if classes.is_empty() { "none".into() } else { classes }),
        ]
    });
    Some(Section::new("load_failures", "Errors").with([table]))
}

fn down(point: &Point) -> Cell {
    match point.uptime {
        Some(Uptime { down_ns: 0, .. }) => Cell::text("never"),
        uptime => Cell::number(uptime.map(|uptime| uptime.down_ns as f64), Unit::Ns, not_known(point)).toned(Tone::Bad),
    }
}

fn not_known(point: &Point) -> Missing {
    if point.target.is_some() { Missing::Shared } else { Missing::NotMeasured }
}

/// What became of requests that failed: `3 by timeout, 1 in the engine`.
pub fn classes(failures: &BTreeMap<FailureClass, u64>) -> String {
    let classes: Vec<String> = failures.iter().map(|(class, count)| format!("{count} {}", words(*class))).collect();
    classes.join(", ")
}

fn words(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Connect => "without a connection",
        FailureClass::Tls => "without a TLS session",
        FailureClass::Status4xx => "with a 4xx status",
        FailureClass::Status429 => "with status 429",
        FailureClass::Status5xx => "with a 5xx status",
        FailureClass::ErrorEvent => "with an error within the stream",
        FailureClass::Timeout => "by timeout",
        FailureClass::MalformedStream => "with a malformed stream",
        FailureClass::CutStream => "with a stream that was cut",
        FailureClass::WrongLength => "of the wrong length",
        FailureClass::Engine => "in the engine",
        FailureClass::Cancelled => "cancelled",
    }
}
