//! A load run as sections and pictures look at it: names, the cells that each line begins with, and the
//! points that make a line of a chart.

use infergate_core::load::{Arrivals, RequestRecord};
use infergate_core::receipt::file_word;
use infergate_core::stats::samples_needed;

use super::digest::Digest;
use super::point::{Point, Rank, Series};
use crate::inputs::Inputs;
use crate::model::{Axis, Cell, Column, Missing, Place, Table, Unit};
use crate::units::capital;
use infergate_receipts::Metric;
use infergate_receipts::Scenario;
use infergate_receipts::{LoadReceipt, Price};

#[derive(Clone, Copy)]
pub struct View<'a> {
    pub receipt: &'a LoadReceipt,
    pub digest: &'a Digest,
}

impl<'a> View<'a> {
    pub fn of(inputs: &'a Inputs) -> Option<Self> {
        Some(Self { receipt: inputs.load.as_ref()?, digest: inputs.load_digest()? })
    }

    pub fn scenarios(&self) -> impl Iterator<Item = (usize, &'a Scenario)> + use<'a> {
        let points = &self.digest.points;
        let all = self.receipt.scenarios.iter().enumerate();
        all.filter(move |(index, _)| points.iter().any(|point| point.scenario == *index))
    }

    pub fn scenario(&self, index: usize) -> String {
        self.receipt.scenarios.get(index).map_or_else(String::new, |scenario| scenario.name.clone())
    }

    /// A scenario's name as a part of a chart's id.
    pub fn scenario_id(&self, index: usize) -> String {
        file_word(&self.scenario(index)).replace('.', "-")
    }

    pub fn has_scenarios(&self) -> bool {
        self.scenarios().count() > 1
    }

    pub fn has_targets(&self) -> bool {
        self.receipt.targets.len() > 1
    }

    /// A target's name; its number where it has none.
    pub fn target(&self, index: usize) -> String {
        let name = self.receipt.targets.get(index).map_or("", |target| target.name());
        match (name, self.has_targets()) {
            ("", true) => format!("target {}", index + 1),
            ("", false) => "the target".into(),
            (name, _) => name.into(),
        }
    }

    /// Every target, or `None` for the only one.
    pub fn targets(&self) -> Vec<Option<usize>> {
        if self.has_targets() { (0..self.receipt.targets.len()).map(Some).collect() } else { vec![None] }
    }

    /// A series' name: what tells it apart from the others of its run.
    pub fn series_name(&self, series: Series) -> String {
        match series.target {
            None => self.scenario(series.scenario),
            Some(target) if !self.has_scenarios() => self.target(target),
            Some(target) => format!("{}, {}", self.scenario(series.scenario), self.target(target)),
        }
    }

    /// A series' name before what is said of it, `chatbot, `; empty for the only one.
    pub fn own_name(&self, series: Series) -> String {
        if self.series().len() > 1 { format!("{}, ", self.series_name(series)) } else { String::new() }
    }

    /// What a picture shows of a scenario; its name is left out where it is the only one.
    pub fn titled(&self, scenario: usize, what: &str) -> String {
        if self.has_scenarios() { format!("{}: {what}", self.scenario(scenario)) } else { capital(what) }
    }

    pub fn series(&self) -> Vec<Series> {
        let targets = self.targets();
        let of = |scenario| targets.iter().map(move |target| Series { scenario, target: *target });
        self.scenarios().flat_map(|(scenario, _)| of(scenario).collect::<Vec<_>>()).collect()
    }

    /// The points of a series that stand in charts, the lowest load first: those of users, or of rates where there are no users.
    pub fn line(&self, series: Series) -> Vec<&'a Point> {
        let closed = self.is_closed();
        let points = self.digest.points.iter();
        points
            .filter(|point| point.scenario == series.scenario && point.target == series.target)
            .filter(|point| point.users().is_some() == closed)
            .collect()
    }

    pub fn is_closed(&self) -> bool {
        self.digest.points.iter().any(|point| point.users().is_some())
    }

    /// The axis of users or rates, with the ones that ran. Equal lengths are equal factors in every picture.
    pub fn axis(&self) -> Axis {
        let closed = self.is_closed();
        let of_charts = self.digest.points.iter().filter(|point| point.users().is_some() == closed);
        let mut loads: Vec<f64> = of_charts.map(Point::load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let axis = match closed {
            true => Axis::new("users", Unit::Count),
            false => Axis::new("rate", Unit::RequestsPerS),
        };
        axis.marked(loads).logarithmic()
    }

    /// The columns that each line of a table over all levels begins with.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns = self.level_columns();
        if self.has_targets() {
            columns.push(Column::words("target", "target"));
        }
        columns
    }

    /// A table with a line a point: its scenario, load and target, and these of its own.
    pub fn table(&self, id: &str, title: &str, own: Vec<Column>, cells: impl Fn(&Point) -> Vec<Cell>) -> Table {
        let mut table = Table::new(id, title, [self.columns(), own].concat());
        for point in &self.digest.points {
            table.row([self.cells(point), cells(point)].concat());
        }
        table
    }

    /// The columns that name a level: its scenario, where there are several, and its load.
    pub fn level_columns(&self) -> Vec<Column> {
        let scenario = self.has_scenarios().then(|| Column::words("scenario", "scenario"));
        scenario.into_iter().chain([self.load_column()]).collect()
    }

    pub fn load_column(&self) -> Column {
        let open = self.digest.points.iter().any(|point| point.users().is_none());
        match (self.is_closed(), open) {
            (true, true) => Column::numbers("load", "users, or requests/s"),
            (_, false) => Column::numbers("users", "users"),
            (false, true) => Column::numbers("rate", "rate"),
        }
    }

    pub fn level_cells(&self, scenario: usize, arrivals: &Arrivals) -> Vec<Cell> {
        let scenario = self.has_scenarios().then(|| Cell::foreign(&self.scenario(scenario)));
        scenario.into_iter().chain([load_cell(arrivals)]).collect()
    }

    pub fn cells(&self, point: &Point) -> Vec<Cell> {
        let mut cells = self.level_cells(point.scenario, &point.arrivals);
        cells.extend(point.target.map(|target| Cell::foreign(&self.target(target))));
        cells
    }

    /// Where a point of a series is, in words: `chatbot, 8 users`; what all have in common is left out.
    pub fn place_name(&self, point: &Point) -> String {
        if !self.has_scenarios() && point.target.is_none() {
            return point.arrivals.name();
        }
        format!("{}, {}", self.series_name(point.series()), point.arrivals.name())
    }

    /// The name of one of several targets; empty where there is one.
    pub fn target_name(&self, point: &Point) -> String {
        point.target.map_or_else(String::new, |target| self.target(target))
    }

    /// The requests that a point is about: all of its level's, or those of its target.
    pub fn requests(&self, point: &Point) -> impl Iterator<Item = &'a RequestRecord> + use<'a> {
        let target = point.target;
        let all = self.receipt.levels.get(point.level).into_iter().flat_map(|level| &level.requests);
        all.filter(move |record| target.is_none_or(|target| usize::try_from(record.target) == Ok(target)))
    }

    /// What tokens of a point's target cost, where that was said.
    pub fn price(&self, point: &Point) -> Option<Price> {
        self.receipt.targets.get(point.target.unwrap_or(0))?.price()
    }

    /// A place of a chart over loads, and what is said of it.
    pub fn place(&self, point: &Point, value: f64, unit: Unit) -> Place {
        Place { x: point.load(), y: value, hover: format!("{}: {}", self.place_name(point), unit.show(value)) }
    }
}

pub fn load_cell(arrivals: &Arrivals) -> Cell {
    let (value, unit) = match *arrivals {
        Arrivals::Closed { users } => (f64::from(users), Unit::Count),
        Arrivals::Open { requests_per_s, .. } => (requests_per_s, Unit::RequestsPerS),
    };
    Cell::number(Some(value), unit, Missing::Undefined)
}

/// A percentile of a metric, or why there is none.
pub fn percentile_cell(point: &Point, metric: Metric, rank: Rank) -> Cell {
    Cell::number(point.spread(metric).at(rank), Unit::of(metric), why_missing(point, metric, rank))
}

/// The median with the interval it lies in.
pub fn median_cell(point: &Point, metric: Metric) -> Cell {
    percentile_cell(point, metric, Rank::P50).within(point.spread(metric).p50_within)
}

/// Why a percentile of a metric is not there.
fn why_missing(point: &Point, metric: Metric, rank: Rank) -> Missing {
    let (requests, failed) = (point.spread(metric).requests, point.spread(metric).failed);
    let needed = samples_needed(rank.share()).unwrap_or(usize::MAX);
    if point.window.is_none() {
        Missing::NoWindow
    } else if requests == 0 && point.measured > 0 {
        // Requests that have no such number: an answer of one token has no gap.
        Missing::Undefined
    } else if requests + failed >= needed {
        Missing::AmongFailed { failed, requests: requests + failed }
    } else if metric == Metric::Itl {
        Missing::TooFewRequests { needed, requests }
    } else {
        Missing::TooFewSamples { needed, samples: requests }
    }
}

pub fn has_p99(view: &View<'_>, metric: Metric) -> bool {
    view.digest.points.iter().any(|point| point.spread(metric).p99.is_some())
}
