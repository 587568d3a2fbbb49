//! Whether a run was the same from its begin to its end: the medians of each quarter of a level's measured requests.

use infergate_core::load::RequestRecord;
use infergate_core::stats::samples_needed;
use infergate_load::summary::counted_requests;
use infergate_load::summary::values::Values;

use crate::load::{Metric, Point, View};
use crate::model::{Cell, Finding, Missing, Rows, Section, Unit};
use crate::units;

const ABOUT: &str = "The measured requests of each level in four parts of as many each, in the order of their starts.";
/// What is followed over the run.
const FOLLOWED: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];
/// Parts of the requests that are compared with each other, as columns.
const QUARTERS: [(&str, &str); 4] =
    [("first", "first quarter"), ("second", "second"), ("third", "third"), ("fourth", "fourth")];
/// Quarters whose medians differ by more than this part are worth a word.
const STEADY: f64 = 0.10;

/// A figure of a level in each quarter.
struct Course<'a> {
    point: &'a Point,
    metric: Metric,
    medians: [Cell; QUARTERS.len()],
}

impl Course<'_> {
    /// The largest of the four medians against the smallest; `None` where one of them is not known.
    fn change(&self) -> Option<f64> {
        let known = self.medians.iter().map(|median| Some(median.quantity()?.value)).collect::<Option<Vec<f64>>>()?;
        let (least, most) = (known.iter().copied().reduce(f64::min)?, known.iter().copied().reduce(f64::max)?);
        (least > 0.0).then(|| most / least - 1.0)
    }

    fn is_notable(&self) -> bool {
        self.change().is_some_and(|change| change > STEADY)
    }
}

pub fn topic(view: &View<'_>) -> Option<Section> {
    let measured = view.points.iter().filter(|point| point.summary.started > 0);
    let courses = measured.flat_map(|point| {
        let quarters = quarters(view, point);
        FOLLOWED.map(|metric| Course {
            point,
            metric,
            medians: quarters.each_ref().map(|quarter| median(quarter, metric)),
        })
    });
    let courses: Vec<Course<'_>> = courses.collect();
    let mut rows = view.lead_of_point(Rows::of("quarters", "", &courses), |course| course.point).words(
        "figure",
        "figure",
        |course| format!("{} P50", course.metric.short()),
    );
    for (at, (id, title)) in QUARTERS.iter().enumerate() {
        rows = rows.numbers(id, *title, |course| course.medians[at].clone());
    }
    let table = rows
        .numbers("change", "most / least", |course| Cell::number(course.change(), Unit::Change, Missing::Undefined))
        .about("of the four, less one")
        .notable(|course| course.is_notable())
        .table();
    let section = Section::new("load_stability", "Stability over the run").with([ABOUT]).with([table.folding()]);
    Some(section.with(finding(view, &courses)))
}

/// The measured requests of a point, by quarters of its level.
fn quarters<'a>(view: &View<'a>, point: &Point) -> [Vec<&'a RequestRecord>; QUARTERS.len()] {
    let mut counted = view.record(point).map_or_else(Vec::new, |level| counted_requests(level, None));
    counted.sort_by_key(|record| record.scheduled_ns);
    let mut quarters: [Vec<&RequestRecord>; QUARTERS.len()] = Default::default();
    for (place, record) in counted.iter().enumerate() {
        if point.series.has(record) {
            quarters[place * QUARTERS.len() / counted.len()].push(record);
        }
    }
    quarters
}

fn median(quarter: &[&RequestRecord], metric: Metric) -> Cell {
    let values = Values::of_metric(quarter, metric);
    let (needed, found) = (samples_needed(0.5).unwrap_or(usize::MAX), values.requests);
    let why = match found < needed {
        true => Missing::TooFew { what: "requests", needed, found },
        false => Missing::AmongFailed { failed: values.failed, requests: found + values.failed },
    };
    Cell::number(values.at(0.5), Unit::of(metric), why)
}

fn finding(view: &View<'_>, courses: &[Course<'_>]) -> Option<Finding> {
    let notable = courses.iter().filter(|course| course.is_notable());
    let known = notable.filter_map(|course| Some((course, course.change()?)));
    let (course, change) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let said = format!(
        "Between quarters of a level {} of {} changes most, by {} (steady is up to {})",
        course.metric.short(),
        view.place_name(course.point),
        units::change(change),
        Unit::Fraction.show(STEADY)
    );
    Some(Finding::warn(said))
}
