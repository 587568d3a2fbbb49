//! Requests that failed, by class. In a percentile of a time they count as slower than all others; a speed has none of them.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::stats::share_interval;
use infergate_load::summary::{by_start, is_given_up};

use crate::load::{Point, View};
use crate::model::{Cell, Finding, Missing, Section, Tone, Unit};
use crate::topics::ends;
use crate::units::listed;

/// A line a level and target with a failure or a request that was made again; nothing where all went well and one target was
/// asked.
pub fn topic(view: &View) -> Option<Section> {
    let is_well = view.points.iter().all(|point| point.summary.failed() == 0 && point.summary.retries == 0);
    if is_well && !view.has_targets() {
        return None;
    }
    let table = view
        .rows("failures", "")
        .titled_numbers("rate", "error rate", |point| {
            let share = Cell::of(point.summary.failed_share(), Unit::Fraction);
            let within = share_interval(&failed(view, point), point.summary.queue());
            share.within(within).toned(Tone::bad_if(point.summary.failed() > 0))
        })
        .about("of requests that were not given up when the run ended, with its 95 % interval by batch means")
        .numbers("retries", |point| point.summary.retries)
        .about("attempts that ended in 429, 5xx or a closed connection")
        .titled_numbers("down", "nobody answered", |point| match uptime(view, point) {
            Some(Uptime { down_ns: 0, .. }) => Cell::text("never"),
            Some(uptime) => Cell::of(uptime.down_ns, Unit::Ns).toned(Tone::Bad),
            None => Cell::Missing(Missing::NotMeasured),
        })
        .about("time in which requests failed and none was being answered")
        .numbers("uptime", |point| {
            let share = uptime(view, point).map(|uptime| 1.0 - uptime.down_ns as f64 / uptime.all_ns as f64);
            Cell::of(share, Unit::Fraction)
        })
        .about("the rest of the time / all of it")
        .titled_words("classes", "how", |point| match classes(point) {
            classes if classes.is_empty() => "none".into(),
            classes => classes,
        })
        .table();
    let finding = worst(view).map(|(point, said)| Finding::new(Tone::Bad, format!("{said} ({})", classes(point))));
    Some(Section::new("load_failures", "Errors").with([table]).with(finding))
}

/// How many requests failed where most did, of those that were not given up; `None` where none failed.
pub fn sentence(view: &View) -> Option<String> {
    worst(view).map(|(_, said)| said)
}

/// The level, and target, with the largest part of requests that failed.
fn worst(view: &View) -> Option<(&Point, String)> {
    let [_, (point, share)] = ends(&view.points, |point| point.summary.failed_share())?;
    let (failed, ended) = (point.summary.failed(), point.summary.ended());
    (share > 0.0).then(|| (point, format!("{failed} of {ended} requests failed at {}", view.place_name(point))))
}

/// Which requests failed, in the order of their starts; not those that were given up when the run ended.
fn failed(view: &View, point: &Point) -> Vec<bool> {
    let all = by_start(view.record(point), point.series.target);
    all.into_iter().filter(|record| !is_given_up(record)).map(|record| record.failure.is_some()).collect()
}

/// What became of requests that failed: `3 by timeout, 1 in the engine`.
fn classes(point: &Point) -> String {
    listed(point.summary.failures.iter().map(|(class, count)| format!("{count} {}", words(*class))))
}

fn words(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Connect => "without a connection",
        FailureClass::Tls => "without a TLS session",
        FailureClass::Status4xx => "with a 4xx error",
        FailureClass::Status429 => "with status 429",
        FailureClass::Status5xx => "with a 5xx error",
        FailureClass::ErrorEvent => "with an error within the stream",
        FailureClass::Timeout => "by timeout",
        FailureClass::MalformedStream => "with a malformed stream",
        FailureClass::CutStream => "with a stream that was cut",
        FailureClass::WrongLength => "of the wrong length",
        FailureClass::Engine => "in the engine",
        FailureClass::Cancelled => "cancelled",
    }
}

struct Uptime {
    /// From each start of a request that failed to the next start of one that was answered, or to the last end, without the time
    /// in which one that was answered was under way. So it does not matter how soon a request fails. At a rate, and with several
    /// targets, nobody waits behind the last one that failed, and it ends with that. Those that were given up when the run ended say nothing.
    down_ns: u64,
    /// From the first start to the last end.
    all_ns: u64,
}

fn uptime(view: &View, point: &Point) -> Option<Uptime> {
    let mut requests: Vec<&RequestRecord> = view.requests(point).filter(|record| !is_given_up(record)).collect();
    requests.sort_by_key(|record| (record.scheduled_ns, record.failure.is_none()));
    let from_ns = requests.first()?.scheduled_ns;
    let to_ns = requests.iter().map(|record| record.ended_ns).max()?;
    // Users of several targets are with another one meanwhile.
    let is_closed = point.users().is_some() && !view.has_targets();
    let (mut answered, mut down) = (Vec::new(), Vec::new());
    // Starts of the next request that is answered, and of the next one that fails before that.
    let (mut answered_ns, mut failed_ns) = (to_ns, 0);
    for record in requests.iter().rev() {
        let start_ns = record.scheduled_ns;
        if record.failure.is_none() {
            answered.push((start_ns, record.ended_ns));
            (answered_ns, failed_ns) = (start_ns, 0);
            continue;
        }
        let until_ns = if is_closed { answered_ns } else { answered_ns.min(failed_ns.max(record.ended_ns)) };
        down.push((start_ns, until_ns));
        failed_ns = start_ns;
    }
    let down_ns = covered_ns([down, answered.clone()].concat()) - covered_ns(answered);
    (to_ns > from_ns).then(|| Uptime { down_ns, all_ns: to_ns - from_ns })
}

fn covered_ns(mut times: Vec<(u64, u64)>) -> u64 {
    times.sort_unstable();
    let (mut covered, mut until_ns) = (0_u64, 0_u64);
    for (from_ns, to_ns) in times {
        covered += to_ns.saturating_sub(from_ns.max(until_ns));
        until_ns = until_ns.max(to_ns);
    }
    covered
}
