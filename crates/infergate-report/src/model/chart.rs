//! Charts as data: axes, and layers of marks in the axes' units. Who draws them decides how they look. There are three kinds: curves
//! over numbers, lanes with a name each, and spans of time.

use serde::Serialize;

use super::{Tone, Unit};

#[derive(Clone)]
pub struct Axis {
    pub label: String,
    pub unit: Unit,
    pub from_zero: bool,
    /// Names of whole positions 0, 1, ... in place of numbers; empty on an axis of numbers.
    pub names: Vec<String>,
    /// Whether equal lengths are equal factors. Values are above zero then.
    pub logarithmic: bool,
    /// Values that are labelled in place of round numbers, in ascending order; empty for round numbers.
    pub marks: Vec<f64>,
}

impl Axis {
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        let (names, marks) = (Vec::new(), Vec::new());
        Self { label: label.into(), unit, from_zero: false, names, logarithmic: false, marks }
    }

    /// An axis of names, one a position.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, Unit::Count) }
    }

    pub fn zero(self) -> Self {
        Self { from_zero: true, ..self }
    }

    /// The same with equal factors at equal lengths.
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }
}

/// The shape of a point: it tells series apart without colour.
#[derive(Clone, Copy)]
pub enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// How a series looks: a colour and, where there is no colour, a shape or dashes.
#[derive(Clone, Copy)]
pub struct Look {
    pub colour: usize,
    pub shape: Shape,
    pub dashed: bool,
}

/// Colours of series; after those they begin anew. Each further colour means one thing everywhere.
const SERIES: usize = 4;
const INK: usize = 3;
const GOOD: usize = 4;
const WARN: usize = 5;
const BAD: usize = 6;

impl Look {
    /// The look of the n-th series: where colours begin anew the shape and the line are others.
    pub fn nth(n: usize) -> Self {
        let shapes = [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle];
        let turn = n + n / SERIES;
        Self { colour: n % SERIES, shape: shapes[turn % shapes.len()], dashed: turn % 2 == 1 }
    }

    /// What is looked at: head, or the only run.
    pub fn head() -> Self {
        Self::nth(0)
    }

    /// A limit, or whatever else is no series.
    pub fn ink() -> Self {
        Self { colour: INK, shape: Shape::Diamond, dashed: true }
    }

    /// Good or bad news, each with a shape of its own.
    pub fn of(tone: Tone) -> Self {
        let (colour, shape) = match tone {
            Tone::Plain | Tone::Dim => (INK, Shape::Diamond),
            Tone::Good => (GOOD, Shape::Square),
            Tone::Warn => (WARN, Shape::Triangle),
            Tone::Bad => (BAD, Shape::Diamond),
        };
        Self { colour, shape, dashed: false }
    }
}

/// A point, and the words that are shown where somebody points at it; empty for none.
#[derive(Clone)]
pub struct Place {
    pub x: f64,
    pub y: f64,
    pub hover: String,
}

impl Place {
    pub fn new(x: f64, y: f64, hover: impl Into<String>) -> Self {
        Self { x, y, hover: hover.into() }
    }
}

/// A stretch up the chart at one x.
#[derive(Clone, Copy)]
pub struct Stretch {
    pub x: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone)]
pub enum Marks {
    /// From place to place. Pointed at, it shows the name of its layer.
    Line(Vec<Place>),
    /// The same with a shape at each place.
    MarkedLine(Vec<Place>),
    Points(Vec<Place>),
    /// Everything between the low and the high ends.
    Area(Vec<Stretch>),
    /// A filled bar between two x at one y. Its label is written on it where there is room.
    Span {
        from: f64,
        to: f64,
        y: f64,
        label: String,
        hover: String,
    },
}

/// One series. Its name stands in the legend, the same name once; empty for none.
#[derive(Clone)]
pub struct Layer {
    pub name: String,
    pub look: Look,
    pub marks: Marks,
}

impl Layer {
    pub fn new(name: impl Into<String>, look: Look, marks: Marks) -> Self {
        Self { name: name.into(), look, marks }
    }
}

/// In JSON it is what is said of it; the numbers are in the tables.
#[derive(Clone, Serialize)]
pub struct Chart {
    pub id: String,
    pub title: String,
    /// What it shows and what follows, for those who cannot see it too.
    pub caption: String,
    #[serde(skip)]
    pub x: Axis,
    #[serde(skip)]
    pub y: Axis,
    #[serde(skip)]
    pub layers: Vec<Layer>,
}
