//! Charts as data: axes, and layers of lines, points and bars in the axes' units. Who draws them decides how they look.

use super::{Tone, Unit};

#[derive(Debug, Clone, PartialEq)]
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
    /// A value that is on the axis in any case.
    pub includes: Option<f64>,
}

impl Axis {
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            from_zero: false,
            names: Vec::new(),
            logarithmic: false,
            marks: Vec::new(),
            includes: None,
        }
    }

    /// An axis of names, one a position.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { names, ..Self::new(label, Unit::Count) }
    }

    #[must_use]
    pub fn zero(self) -> Self {
        Self { from_zero: true, ..self }
    }

    /// The same with equal factors at equal lengths.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }

    /// The same with labels at these values alone.
    #[must_use]
    pub fn marked(self, marks: Vec<f64>) -> Self {
        Self { marks, ..self }
    }

    /// The same with `value` on it in any case.
    #[must_use]
    pub fn including(self, value: f64) -> Self {
        Self { includes: Some(value), ..self }
    }
}

/// The shape of a point: it tells series apart without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// How a series looks: a colour and, where there is no colour, a shape or dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub colour: usize,
    pub shape: Shape,
    pub dashed: bool,
}

/// Colours of series; after those they begin anew. Each further colour means one thing everywhere.
const SERIES: usize = 4;
const BASE: usize = 4;
const INK: usize = 5;
const GOOD: usize = 6;
const WARN: usize = 7;
const BAD: usize = 8;

impl Look {
    /// The look of the n-th series: where colours begin anew the shape and the line are others.
    pub fn nth(n: usize) -> Self {
        let shapes = [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle];
        let again = n / SERIES;
        let (shape, dashed) = (shapes[(n + 2 * again) % shapes.len()], (n % 2 == 1) != (again % 2 == 1));
        Self { colour: n % SERIES, shape, dashed }
    }

    /// What is looked at: head, or the only run.
    pub fn head() -> Self {
        Self::nth(0)
    }

    pub fn base() -> Self {
        Self { colour: BASE, shape: Shape::Square, dashed: true }
    }

    /// A limit, or whatever else is no series.
    pub fn ink() -> Self {
        Self { colour: INK, shape: Shape::Diamond, dashed: true }
    }

    /// Good or bad news, each with a shape of its own.
    pub fn of(tone: Tone) -> Self {
        match tone {
            Tone::Plain | Tone::Dim => Self::ink().dashed(false),
            Tone::Good => Self { colour: GOOD, shape: Shape::Square, dashed: false },
            Tone::Warn => Self { colour: WARN, shape: Shape::Triangle, dashed: false },
            Tone::Bad => Self { colour: BAD, shape: Shape::Diamond, dashed: false },
        }
    }

    /// The same, with dashed lines or without.
    #[must_use]
    pub fn dashed(self, dashed: bool) -> Self {
        Self { dashed, ..self }
    }
}

/// A point, and what is said where it is pointed at.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
    /// What is said of it; empty for nothing.
    pub hover: String,
}

/// A stretch up the chart at one x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    pub x: f64,
    pub low: f64,
    pub high: f64,
}

/// One series, or one mark. Its name stands in the legend, the same name once; `hover` is said where somebody points at it.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    Line {
        name: String,
        points: Vec<Place>,
        look: Look,
        marked: bool,
    },
    /// Where nothing is said of any of them they are many, and are drawn as small discs or squares.
    Points {
        name: String,
        points: Vec<Place>,
        look: Look,
    },
    /// A bar from one x to another at one y, with ends.
    Interval {
        name: String,
        from: f64,
        to: f64,
        y: f64,
        hover: String,
        look: Look,
    },
    /// A filled bar from one x to another at one y: a span of time. Its label is written on it where there is room.
    Span {
        name: String,
        label: String,
        from: f64,
        to: f64,
        y: f64,
        hover: String,
        look: Look,
    },
    Area {
        name: String,
        stretches: Vec<Stretch>,
        look: Look,
    },
    /// Everything between two values of the axis up, the upper one perhaps infinite, over the whole width; or a line where both are
    /// the same. It makes no axis longer.
    Zone {
        name: String,
        from: f64,
        to: f64,
        look: Look,
    },
    /// A line across the chart at one x, or a short one at the position `y` where that is given.
    Limit {
        name: String,
        x: f64,
        y: Option<f64>,
        hover: String,
        look: Look,
    },
}

impl Layer {
    /// Its name and its look.
    pub fn named(&self) -> (&str, Look) {
        match self {
            Self::Line { name, look, .. }
            | Self::Points { name, look, .. }
            | Self::Interval { name, look, .. }
            | Self::Span { name, look, .. }
            | Self::Area { name, look, .. }
            | Self::Zone { name, look, .. }
            | Self::Limit { name, look, .. } => (name, *look),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub id: String,
    pub title: String,
    /// What it shows and what follows, for those who cannot see it too.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub layers: Vec<Layer>,
}
