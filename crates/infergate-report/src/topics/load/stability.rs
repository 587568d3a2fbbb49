//! Whether a run was the same from its begin to its end: the medians of each quarter of a level's measured requests.

use infergate_core::load::RequestRecord;
use infergate_core::stats::clopper_pearson;
use infergate_load::summary::counted_requests;
use infergate_load::summary::values::Values;

use crate::load::{Metric, Point, View};
use crate::model::{Cell, Finding, Rows, Section, Unit};
use crate::topics::ends;
use crate::units;

const ABOUT: &str = "Each level's requests in four equal parts, by their starts. A figure needs enough of them in \
                     each part for a median. It changed if the 95 % intervals of two parts are apart, as if requests were independent.";
/// What is followed over the run.
const FOLLOWED: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];
/// Parts of the requests that are compared with each other, as columns.
const QUARTERS: [&str; 4] = ["first", "second", "third", "fourth"];
/// Quarters whose medians differ by more than this part are worth a word.
const STEADY: f64 = 0.10;

/// A figure of a level in each quarter.
struct Course<'a> {
    point: &'a Point,
    metric: Metric,
    medians: Vec<f64>,
    /// From the smallest to the largest median.
    change: f64,
    /// The intervals of these two are apart.
    is_shown: bool,
}

impl<'a> Course<'a> {
    /// `None` where a quarter has too few requests.
    fn of(point: &'a Point, metric: Metric, quarters: &[Vec<&RequestRecord>]) -> Option<Self> {
        let median = |quarter: &Vec<&RequestRecord>| {
            let values = Values::of_metric(quarter, metric);
            Some((values.at(0.5)?, within(values.in_order())?))
        };
        let known: Vec<(f64, (f64, f64))> = quarters.iter().map(median).collect::<Option<_>>()?;
        let medians = known.iter().map(|(median, _)| *median).collect();
        let [((_, its), least), ((_, other), most)] = ends(&known, |(median, _)| Some(*median))?;
        let is_shown = its.1 < other.0;
        (least > 0.0).then(|| Self { point, metric, medians, change: most / least - 1.0, is_shown })
    }

    fn is_notable(&self) -> bool {
        self.change > STEADY && self.is_shown
    }
}

/// The order statistics between which a median lies, 95 %: of seven requests the least and the most.
fn within(mut values: Vec<f64>) -> Option<(f64, f64)> {
    let (half, count) = (values.len() as u64 / 2, values.len() as u64);
    let (low, _) = clopper_pearson(half, count, 0.95)?;
    let (_, high) = clopper_pearson(count - half, count, 0.95)?;
    values.sort_by(f64::total_cmp);
    let place = |part: f64| part * count as f64;
    Some((values[place(low) as usize], values[place(high).ceil() as usize - 1]))
}

pub fn topic(view: &View) -> Option<Section> {
    let courses = view.points.iter().flat_map(|point| {
        let quarters = quarters(view, point);
        FOLLOWED.into_iter().filter_map(move |metric| Course::of(point, metric, &quarters))
    });
    let courses: Vec<Course<'_>> = courses.collect();
    let mut rows = view
        .lead_of_point(Rows::of("quarters", "", &courses), |course| course.point)
        .words("figure", |course| format!("{} P50", course.metric.short()));
    for (at, quarter) in QUARTERS.into_iter().enumerate() {
        rows = rows.numbers(quarter, |course| Cell::of(course.medians[at], Unit::of(course.metric)));
    }
    let table = rows
        .titled_numbers("change", "from least to most", |course| Cell::of(course.change, Unit::Change))
        .notable(|course| course.is_notable())
        .table();
    let section = Section::new("load_stability", "Stability over the run").with([ABOUT]).with([table.folding()]);
    Some(section.with(finding(view, &courses)))
}

/// The measured requests of a point, by quarters of its level.
fn quarters<'a>(view: &'a View, point: &Point) -> [Vec<&'a RequestRecord>; QUARTERS.len()] {
    let counted = counted_requests(view.record(point), None);
    let mut quarters: [Vec<&RequestRecord>; QUARTERS.len()] = Default::default();
    for (place, record) in counted.iter().enumerate() {
        if point.series.has(record) {
            quarters[place * QUARTERS.len() / counted.len()].push(record);
        }
    }
    quarters
}

fn finding(view: &View, courses: &[Course<'_>]) -> Option<Finding> {
    let notable = courses.iter().filter(|course| course.is_notable());
    let [_, (course, change)] = ends(notable, |course| Some(course.change))?;
    Some(Finding::warn(format!(
        "At {} {} was unsteady: quarters of the level differ by {} (steady is up to {})",
        view.place_name(course.point),
        course.metric.short(),
        units::change(change),
        units::percent(STEADY)
    )))
}
