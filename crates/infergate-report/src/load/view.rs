//! A load run as sections and pictures look at it: names, the cells that each line begins with, and the
//! points that make a line of a chart.

use infergate_core::load::{Arrivals, RequestRecord};
use infergate_core::stats::samples_needed;
use infergate_load::summary::{of_target, scaling_efficiency};

use super::points::{Point, Series, points};
use crate::model::{Axis, Cell, Missing, Place, Rows, Unit};
use infergate_load::api::body::Api;
use infergate_receipts::{LevelRecord, LoadReceipt, Metric, TargetRecord};

#[derive(Clone)]
pub struct View {
    pub receipt: LoadReceipt,
    pub points: Vec<Point>,
}

impl From<LoadReceipt> for View {
    fn from(receipt: LoadReceipt) -> Self {
        Self { points: points(&receipt), receipt }
    }
}

impl View {
    /// The points of each level, one a target, the lowest load first.
    pub fn levels(&self) -> impl Iterator<Item = &[Point]> {
        self.points.chunk_by(|one, other| one.level == other.level)
    }

    /// The level that a point is of.
    pub fn record(&self, point: &Point) -> &LevelRecord {
        &self.receipt.levels[point.level]
    }

    pub fn series(&self) -> Vec<Series> {
        let mut series: Vec<Series> = self.points.iter().map(|point| point.series).collect();
        series.sort_unstable();
        series.dedup();
        series
    }

    /// Those that ran, by number.
    pub fn scenarios(&self) -> Vec<usize> {
        let mut scenarios: Vec<usize> = self.series().iter().map(|series| series.scenario).collect();
        scenarios.dedup();
        scenarios
    }

    pub fn scenario(&self, index: usize) -> &str {
        &self.receipt.scenarios[index].name
    }

    pub fn has_scenarios(&self) -> bool {
        self.scenarios().len() > 1
    }

    /// Whether answers are made of tokens. Embeddings come as a whole, each counted as one.
    pub fn has_tokens(&self) -> bool {
        let is_whole = |target: &TargetRecord| matches!(target, TargetRecord::Endpoint { api, .. } if api == Api::Embeddings.name());
        !self.receipt.targets.iter().any(is_whole)
    }

    pub fn has_targets(&self) -> bool {
        self.receipt.targets.len() > 1
    }

    /// A target's name; its number where it has none.
    pub fn target(&self, index: u32) -> String {
        match self.receipt.targets[index as usize].name() {
            "" if self.has_targets() => format!("target {}", index + 1),
            "" => "the target".into(),
            name => name.into(),
        }
    }

    /// A series' name: what tells it apart from the others of its run.
    pub fn series_name(&self, series: Series) -> String {
        match series.target.map(|target| self.target(target)) {
            None => self.scenario(series.scenario).into(),
            Some(target) if !self.has_scenarios() => target,
            Some(target) => format!("{}, {target}", self.scenario(series.scenario)),
        }
    }

    /// The points of a series that stand in charts, the lowest load first: those of users, or of rates where there are no users.
    pub fn line(&self, series: Series) -> Vec<&Point> {
        self.charted().filter(|point| point.series == series).collect()
    }

    pub fn charted(&self) -> impl Iterator<Item = &Point> {
        let closed = self.is_closed();
        self.points.iter().filter(move |point| point.users().is_some() == closed)
    }

    fn is_closed(&self) -> bool {
        self.points.iter().any(|point| point.users().is_some())
    }

    /// The loads of charts, the lowest first.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<f64> = self.charted().map(Point::load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// The axis of users or rates, with the ones that ran. Equal lengths are equal factors in every picture.
    pub fn axis(&self) -> Axis {
        let (label, unit) = if self.is_closed() { ("users", Unit::Count) } else { ("rate", Unit::RequestsPerS) };
        Axis { marks: self.loads(), ..Axis::new(label, unit).logarithmic() }
    }

    /// A row a point, that begins with its scenario, load and target.
    pub fn rows(&self, id: &str, title: &str) -> Rows<&Point> {
        self.lead_of_point(Rows::of(id, title, &self.points), |point| point)
    }

    /// With the columns that name the level of the point that `of` finds: its scenario, where there are several, and its load.
    pub fn lead<R>(&self, rows: Rows<R>, of: impl Fn(&R) -> &Point) -> Rows<R> {
        let scenario = |row: &R| Cell::foreign(self.scenario(of(row).series.scenario));
        let rows = rows.with_if(self.has_scenarios(), |rows| rows.words("scenario", scenario));
        self.loads_of(rows, |row| of(row).arrivals)
    }

    /// The same, and its target where there are several.
    pub fn lead_of_point<R>(&self, rows: Rows<R>, of: impl Fn(&R) -> &Point) -> Rows<R> {
        let target = |row: &R| Cell::foreign(&self.target_name(of(row)));
        self.lead(rows, &of).with_if(self.has_targets(), |rows| rows.words("target", target))
    }

    /// With the column of users or rates.
    pub fn loads_of<R>(&self, rows: Rows<R>, arrivals: impl Fn(&R) -> Arrivals) -> Rows<R> {
        let open = self.points.iter().any(|point| point.users().is_none());
        let (id, title) = match (self.is_closed(), open) {
            (true, true) => ("load", "users, or requests/s"),
            (_, false) => ("users", "users"),
            (false, true) => ("rate", "rate"),
        };
        rows.titled_numbers(id, title, |row| match arrivals(row) {
            Arrivals::Closed { users } => Cell::count(users),
            Arrivals::Open { requests_per_s, .. } => Cell::of(requests_per_s, Unit::RequestsPerS),
        })
    }

    /// Where a point of a series is, in words: `chatbot, 8 users`; what all have in common is left out.
    pub fn place_name(&self, point: &Point) -> String {
        if !self.has_scenarios() && point.series.target.is_none() {
            return point.arrivals.name();
        }
        format!("{}, {}", self.series_name(point.series), point.arrivals.name())
    }

    /// The name of one of several targets; empty where there is one.
    pub fn target_name(&self, point: &Point) -> String {
        point.series.target.map_or_else(String::new, |target| self.target(target))
    }

    /// The requests that a point is about: all of its level's, or those of its target.
    pub fn requests(&self, point: &Point) -> impl Iterator<Item = &RequestRecord> {
        of_target(self.record(point), point.series.target)
    }

    /// What one user alone gets out of a point's scenario.
    pub fn alone(&self, point: &Point) -> Option<&Point> {
        let is_it = |other: &&Point| other.series == point.series && other.users() == Some(1);
        self.points.iter().filter(is_it).find(|other| other.summary.system_tokens_per_s.is_some())
    }

    /// The output of all users against so many times that of one alone; `None` where nobody was, and for one of several targets.
    pub fn scaling(&self, point: &Point) -> Option<f64> {
        scaling_efficiency(&point.summary, &self.alone(point)?.summary)
    }

    /// A place of a chart over loads, and what is said of it.
    pub fn place(&self, point: &Point, value: f64, unit: Unit) -> Place {
        Place::new(point.load(), value, format!("{}: {}", self.place_name(point), unit.show(value)))
    }
}

/// A percentile of a metric, or why there is none.
pub fn percentile_cell(point: &Point, metric: Metric, p: f64) -> Cell {
    let values = point.summary.values(metric);
    let needed = samples_needed(p).unwrap_or(usize::MAX);
    let why = if point.summary.window.is_none() {
        Missing::NoWindow
    } else if values.requests == 0 && point.summary.measured > 0 {
        // Requests that have no such number: an answer of one token has no gap.
        Missing::Undefined
    } else if values.requests + values.failed >= needed {
        Missing::AmongFailed
    } else {
        Missing::TooFew { what: "requests", needed }
    };
    Cell::number(point.spread(metric).at(p), Unit::of(metric), why)
}

/// The median with the interval it lies in.
pub fn median_cell(point: &Point, metric: Metric) -> Cell {
    percentile_cell(point, metric, 0.5).within(point.spread(metric).p50_within)
}
